"""``holdfast write``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.arguments import Reach, Word, on_store, option_pairs, parse_options, reports
from holdfast.cli.output import Output, size
from holdfast.errors import InvalidRequestError
from holdfast.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from holdfast.options.parsing import WriteOptions
    from holdfast.spark.write import WriteResult

__all__ = ["write"]

_MODES = ("append", "overwrite", "overwrite-partitions", "fail", "ignore")
_INPUT_FORMATS = ("csv", "json", "parquet", "orc", "text", "avro")
_EXTENSIONS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "txt": "text"}
_EXTENSIONS |= {"parquet": "parquet", "orc": "orc", "avro": "avro"}
_CODECS = ("gz", "bz2", "zst", "snappy", "lz4", "deflate", "crc")

_EPILOG = """\b
Examples:
  holdfast write flights.csv s3://bucket/flights --partition-by month
  holdfast write events/ ./table --input-format json --mode overwrite
  holdfast write a.parquet ./out --format csv --option header=true
  holdfast write x.csv ./t --input-option "sep=;" --input-option header=false

INPUT is anything that Spark reads: a file, a directory, a glob, a url that this Spark knows. CSV files have a header,
and their types are inferred, unless --input-option or --input-schema says otherwise. All rows become visible at once,
or none: also if you press Ctrl-C. Options of the write are those of docs/reference/options.md, e.g.
maxRecordsPerFile=100000 or targetFileSize=256m."""


@click.command(epilog=_EPILOG)
@click.argument("input_path", metavar="INPUT")
@click.argument("url")
@click.option("--input-format", type=Word(_INPUT_FORMATS), help="Format of INPUT, if its name does not tell.")
@click.option(
    "--input-option", "input_options", multiple=True, metavar="KEY=VALUE", help="Option of Spark's reader; repeatable."
)
@click.option("--input-schema", metavar="DDL", help="Columns and types of INPUT, e.g. 'id long, name string'.")
@click.option("--format", "file_format", show_default="parquet", help="Format of the files to write.")
@click.option(
    "--partition-by", multiple=True, metavar="A,B,…", help="Columns that become directories, outermost first."
)
@click.option(
    "--mode",
    type=Word(_MODES),
    show_default="append",
    help="What becomes of data that is there.",
)
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Option of the write; repeatable.")
@click.option("--committer", show_default="two_phase", help="Commit protocol; see holdfast committers.")
@click.option("--master", metavar="URL", help="Spark master.  [default: all cores of this machine]")
@on_store
@reports
def write(
    input_path: str,
    url: str,
    input_format: str | None,
    input_options: tuple[str, ...],
    input_schema: str | None,
    file_format: str | None,
    partition_by: tuple[str, ...],
    mode: str | None,
    options: tuple[str, ...],
    committer: str | None,
    master: str | None,
    reach: Reach,
    out: Output,
) -> None:
    """Write INPUT to URL with Spark, all of it or nothing."""
    given = parse_options(input_options, reserved={"path": "INPUT"})
    source = _Input(input_path, input_format or _format_of(input_path), given, input_schema)
    said: list[tuple[str, str, str | None]] = [  # option, its value, and how the user named it
        ("path", "URL", url),
        ("fileFormat", "--format", file_format),
        ("partitionBy", "--partition-by", ",".join(partition_by) or None),
        ("committer", "--committer", committer),
        *reach.given,
        *((name, f"--option {name}", value) for name, value in option_pairs(options)),
    ]
    parsed, strings = _check(said, mode)
    request = {"mode": mode, **strings}
    try:
        result = _write_with_spark(source, request, master, out)
    except (KeyboardInterrupt, SystemExit):
        from holdfast.cli.interrupted import end_write

        end_write(parsed, out)
        raise
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
    if result.job is None:
        out.say(f"nothing written: {url} holds data and the mode is {parsed.mode.value}")
    else:
        rows = f"{counted(result.rows, 'row')} in " if result.rows or not result.files else ""
        out.say(f"committed: {rows}{counted(result.files, 'file')}, {size(result.bytes)}, job {result.job}")
    if not result.finished:
        out.note(f"the clean-up after the commit is pending: holdfast recover {url}")


def _check(said: Sequence[tuple[str, str, str | None]], mode: str | None) -> tuple[WriteOptions, dict[str, str]]:
    """The request, parsed, and its options. Refuses what cannot be right before Spark starts: that takes seconds."""
    from holdfast.commit import get_committer, require_fit
    from holdfast.commit.destination import refuse_file, refuse_taken
    from holdfast.options.parsing import parse_write_options
    from holdfast.options.said import say_mode, settled
    from holdfast.options.values import Saying
    from holdfast.runtime import SystemIds
    from holdfast.table.foreign import refuse_foreign_write

    overwrite, sayings = say_mode(mode, "--mode")
    sayings += [Saying.of(name, text, spelled) for name, spelled, text in said if text is not None]
    sayings = [one for one in sayings if one.name != "writetoken"]
    sayings.append(Saying.of("writeToken", SystemIds().token(), "writeToken"))
    parsed = parse_write_options(sayings, overwrite)
    ctx = parsed.open()
    try:
        require_fit(get_committer(parsed.committer), ctx, parsed.mode)
        refuse_file(ctx)
        refuse_taken(ctx)
        refuse_foreign_write(ctx)
    finally:
        ctx.close()
    return parsed, settled(sayings)


@dataclass(frozen=True)
class _Input:
    path: str
    format: str
    options: Mapping[str, str]
    schema: str | None

    def load(self, spark: SparkSession) -> DataFrame:
        reader = spark.read.format(self.format).options(**self._defaults()).options(**self.options)
        if self.schema:
            reader = reader.schema(self.schema)
        return reader.load(self.path)

    def _defaults(self) -> dict[str, str]:
        if self.format != "csv":
            return {}
        # With a schema, Spark would by default not look at the header: columns in another order would be exchanged.
        found = {"header": "true", "inferSchema": "true", "enforceSchema": "false"}
        if "delimiter" not in map(str.lower, self.options):  # of the two names Spark takes sep
            found["sep"] = "\t" if ".tsv" in PurePosixPath(self.path).name.lower() else ","
        return found


def _write_with_spark(source: _Input, request: dict[str, Any], master: str | None, out: Output) -> WriteResult:
    from holdfast.cli.session import spark_session
    from holdfast.spark.write import write as write_rows

    with out.waiting("starting Spark") as stage, spark_session("holdfast write", master, debug=out.debug) as spark:
        stage(f"reading {source.path}")
        rows = source.load(spark)
        stage(f"writing {request['path']}")
        return write_rows(rows, request["path"], **request)


def _format_of(path: str) -> str:
    """By the extension, behind that of a codec.

    Raises:
        InvalidRequestError: the name does not tell.
    """
    words = PurePosixPath(path).name.lower().split(".")[1:]
    while words and words[-1] in _CODECS:
        words.pop()
    if not words or words[-1] not in _EXTENSIONS:
        raise InvalidRequestError(
            f"the name does not tell the format of the input: give --input-format {'|'.join(_INPUT_FORMATS)}",
            input=path,
        )
    return _EXTENSIONS[words[-1]]
