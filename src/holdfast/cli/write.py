"""Run ``holdfast write``: check the request, load the input, write with Spark, report the committed job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, NamedTuple

from holdfast.cli.arguments import WordChoice, parse_key_value_pairs, parse_option_pairs
from holdfast.cli.command import CommandRun, ResourceKind, Url, argument, command, option
from holdfast.cli.output import Output, size_text
from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError
from holdfast.formats import format_of_path
from holdfast.stores.provider import GivenOption
from holdfast.wording import format_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from holdfast.commit.writes import EndedWrite
    from holdfast.options.write import WriteOptions, WriteRequest
    from holdfast.spark.write import JobResult

INPUT_FORMATS = ("csv", "json", "parquet", "orc", "text", "avro")
"""What Spark reads: Avro with its package spark-avro, Arrow not at all."""


SAVE_MODES = ("append", "overwrite", "overwrite-partitions", "fail", "ignore")
_FORMAT = option("--input-format", "Format of INPUT, if its name does not tell.", type=WordChoice(INPUT_FORMATS))
_OPTIONS = option("--input-option", "Option of Spark's reader; repeatable.", metavar="KEY=VALUE")
_SCHEMA = option("--input-schema", "Columns of INPUT, e.g. 'id long, name string'.", metavar="DDL")
_PARTITIONS = option("--partition-by", "Partition columns, outermost directory first.", metavar="A,B,…")
_MODE = option("--mode", "What to do if URL holds data.", type=WordChoice(SAVE_MODES), show_default="append")
_COMMITTER = option("--committer", "Commit protocol; see holdfast committers.", show_default="two_phase")
_MASTER = option("--master", "Spark master.  [default: all cores of this machine]", metavar="URL")


@command(ResourceKind.STORES)
def write(
    run: CommandRun,
    input_path: Annotated[str, argument("INPUT")],
    url: Url,
    input_format: Annotated[str | None, _FORMAT],
    input_options: Annotated[tuple[str, ...], _OPTIONS],
    input_schema: Annotated[str | None, _SCHEMA],
    file_format: Annotated[str | None, option("--format", "Format of the files.", show_default="parquet")],
    partition_by: Annotated[tuple[str, ...], _PARTITIONS],
    mode: Annotated[str | None, _MODE],
    options: Annotated[tuple[str, ...], option("--option", "Write option; repeatable.", metavar="KEY=VALUE")],
    committer: Annotated[str | None, _COMMITTER],
    master: Annotated[str | None, _MASTER],
) -> None:
    """Write INPUT to URL with Spark: all of it or nothing.

    Examples:
      holdfast write flights.csv s3://bucket/flights --partition-by month
      holdfast write events/ ./table --input-format json --mode overwrite
      holdfast write a.parquet ./out --format csv --option header=true
      holdfast write x.csv ./t --input-option "sep=;" --input-option header=false

    INPUT is anything that Spark can read: a file, a directory, a glob, or a URL that this Spark supports. A CSV file is
    read with a header and with inferred types, unless --input-option or --input-schema says otherwise. All rows become
    visible at once, or none do, even if you press Ctrl-C. Some write options are mergeSchema=true,
    maxRecordsPerFile=100000, targetFileSize=256m, writeId=NAME and compression=zstd; for a name that is wrong, the
    error suggests the nearest ones.
    """
    reader_options = dict(parse_key_value_pairs(input_options, reserved={"path": "INPUT"}))
    source = WriteInput(input_path, input_format or find_input_format(input_path), reader_options, input_schema)
    flags: list[tuple[str, str, str | None]] = [  # option, its value, and how the user named it
        ("path", "URL", url),
        ("fileFormat", "--format", file_format),
        ("partitionBy", "--partition-by", ",".join(partition_by) or None),
        ("committer", "--committer", committer),
    ]
    given = [GivenOption.of(name, text, spelled) for name, spelled, text in flags if text is not None]
    request = _parse_write_request([*given, *run.reach.options(url), *parse_option_pairs(options, urls=[url])], mode)
    try:
        result = _write_with_spark(source, request, master, run.out)
    except (KeyboardInterrupt, SystemExit):
        end_interrupted_write(request.options, run.out)
        raise
    _report_write(result, request.options, run.out)


def _parse_write_request(given: Sequence[GivenOption], mode: str | None) -> WriteRequest:
    """Parse the options of the write into a request.

    Requests that cannot work are refused here, before Spark starts, which takes seconds.
    """
    from holdfast.commit import get_committer, require_fit
    from holdfast.commit.destination import refuse_file_destination, refuse_taken_paths
    from holdfast.options.keywords import make_option_paths_absolute, option_from_text, options_from_mode
    from holdfast.options.write import parse_write_request
    from holdfast.runtime import SystemIds
    from holdfast.table.foreign import refuse_foreign_write

    overwrite, options = options_from_mode(mode, "--mode")
    options += [one for one in given if one.name != "writetoken"]
    options += option_from_text("writeToken", SystemIds().token(), "writeToken")
    request = parse_write_request(make_option_paths_absolute(options), overwrite)
    parsed = request.options
    with parsed.store.open(parsed.settings, committer=parsed.committer) as ctx:
        require_fit(get_committer(parsed.committer), ctx, parsed.mode)
        refuse_file_destination(ctx)
        refuse_taken_paths(ctx)
        refuse_foreign_write(ctx)
    return request


def _write_with_spark(source: WriteInput, request: WriteRequest, master: str | None, out: Output) -> JobResult:
    from holdfast.cli.spark_session import spark_session
    from holdfast.spark.write import run_write

    source.check()
    with out.show_spinner("starting Spark") as stage, spark_session("holdfast write", master, debug=out.debug) as spark:
        stage(f"reading {source.path}")
        rows = source.load(spark)
        stage(f"writing {request.options.store.url}")
        return run_write(rows, request)


def _report_write(result: JobResult, options: WriteOptions, out: Output) -> None:
    out.document(
        {
            "url": result.url,
            "job": result.job,
            "files": result.files,
            "rows": result.rows,
            "bytes": result.bytes,
            "finished": result.finished,
        }
    )
    url = options.store.url
    if result.job is None:
        out.say(f"nothing written: {url} already holds data and the mode is {options.mode.value}")
    else:
        rows = f"{format_count(result.rows, 'row')} in " if result.rows or not result.files else ""
        out.say(f"committed: {rows}{format_count(result.files, 'file')}, {size_text(result.bytes)}, job {result.job}")
    if not result.finished:
        out.note(f"the cleanup after the commit is pending: run holdfast recover {url}")


# --- the input --------------------------------------------------------------------------------------------------------
_PLAIN = re.compile(r"[^:*?\[\]{}\\]+")
"""A path that is neither a URL nor a pattern."""

_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")


class WriteInput(NamedTuple):
    """The input that Spark reads.

    Attributes:
        path: a file, a directory, a glob, or a url that the installed Spark supports.
        format: one of `INPUT_FORMATS`.
        options: the user's options for Spark's reader.
        schema: columns and types as DDL; None to infer them.
    """

    path: str
    format: str
    options: Mapping[str, str]
    schema: str | None

    def check(self) -> None:
        """Check, before Spark starts, that an input that is certainly a local file exists.

        Raises:
            NotFoundError: the input does not exist.
        """
        has_settings = any(name in os.environ for name in _SETTINGS)  # in which a plain path may mean HDFS
        if not has_settings and _PLAIN.fullmatch(self.path) and not Path(self.path).exists():
            raise NotFoundError("the input does not exist: check its path", input=self.path)

    def load(self, spark: SparkSession) -> DataFrame:
        """Return the rows of the input as a DataFrame of this Spark session."""
        reader = spark.read.format(self.format).options(**self._default_reader_options()).options(**self.options)
        if self.schema:
            reader = reader.schema(self.schema)
        return reader.load(self.path)

    def _default_reader_options(self) -> dict[str, str]:
        if self.format not in ("csv", "json"):
            return {}
        found = {"mode": "FAILFAST"}  # by default, Spark turns what it cannot parse into nulls
        if self.format == "json":
            return found
        # With a schema, Spark by default ignores the header: columns in another order would be swapped. Its escape
        # character is a backslash; other programs double quotes (RFC 4180).
        found |= {"header": "true", "inferSchema": "true", "enforceSchema": "false", "escape": '"'}
        if "delimiter" not in map(str.lower, self.options):  # given both names, Spark uses sep
            found["sep"] = "\t" if ".tsv" in PurePosixPath(self.path).name.lower() else ","
        return found


def find_input_format(path: str) -> str:
    """Return the input format that the extension of a file name indicates, ignoring the extension of a codec.

    Raises:
        InvalidRequestError: the name indicates no format.
    """
    name = PurePosixPath(path).name.lower()
    found = "csv" if ".tsv" in name else format_of_path(name)
    if found not in INPUT_FORMATS:
        raise InvalidRequestError(
            f"the file name does not tell the format of the input: give --input-format {'|'.join(INPUT_FORMATS)}",
            input=path,
        )
    return found


# --- after Ctrl-C -----------------------------------------------------------------------------------------------------
def end_interrupted_write(options: WriteOptions, out: Output) -> None:
    """Abort the write's job, or roll its commit forward if it is already decided, and print what was done.

    Requires: the Spark session of the write is stopped, so that no task on this machine is still writing.
    """
    from holdfast.commit import get_committer
    from holdfast.commit.writes import settle_write

    out.note("interrupted: ending the job, please wait")
    url = options.store.url
    try:
        with options.store.open(options.settings, committer=options.committer) as ctx:
            ended = settle_write(ctx, get_committer(options.committer), options.token)
    except HoldfastError as error:
        out.note(f"error: {error}")
        out.note(f"the job could not be ended: run holdfast recover {url}")
        return
    out.note(_describe_end(ended))


def _describe_end(ended: EndedWrite) -> str:
    from holdfast.commit.writes import WriteEnd

    if ended.end is WriteEnd.COMMITTED and ended.reason:
        return f"the job was already committed: job {ended.job}: {ended.reason}"
    if ended.end is WriteEnd.COMMITTED:
        return f"the job was already committed and its rows are visible: job {ended.job}"
    if ended.end is WriteEnd.KEPT:
        return f"the job was left as it is and you have to decide: job {ended.job}: {ended.reason}"
    if ended.visible_files:
        return (
            f"the job is aborted, but some of its files are visible ({ended.visible_files}): delete the files with "
            f"{ended.job} in their names"
        )
    if ended.job:
        return f"the job is aborted and none of its output is visible: job {ended.job}"
    return "the job is aborted or never started, none of its output is visible"
