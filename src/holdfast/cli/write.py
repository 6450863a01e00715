"""``holdfast write``."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.arguments import Reach, on_store, reports
from holdfast.cli.output import Output, counted, size
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from holdfast.spark.options import WriteOptions
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

INPUT is anything that Spark reads: a file, a directory, a glob, a url that this Spark knows. CSV files need a header;
their types are inferred. All rows become visible at once, or none: also if you press Ctrl-C. Options are those of
docs/spark.md, e.g. maxRecordsPerFile=100000 or targetFileSize=256m."""


@click.command(epilog=_EPILOG)
@click.argument("input_path", metavar="INPUT")
@click.argument("url")
@click.option("--input-format", type=click.Choice(_INPUT_FORMATS), help="Format of INPUT, if its name does not tell.")
@click.option("--format", "file_format", default="parquet", show_default=True, help="Format of the files to write.")
@click.option("--partition-by", metavar="A,B,…", help="Columns that become directories, outermost first.")
@click.option(
    "--mode",
    type=click.Choice(_MODES),
    default="append",
    show_default=True,
    help="What becomes of data that is there.",
)
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Option of the write; repeatable.")
@click.option("--committer", default="two_phase", show_default=True, help="Commit protocol; see holdfast committers.")
@click.option("--master", metavar="URL", help="Spark master.  [default: all cores of this machine]")
@on_store
@reports
def write(
    input_path: str,
    url: str,
    input_format: str | None,
    file_format: str,
    partition_by: str | None,
    mode: str,
    options: tuple[str, ...],
    committer: str,
    master: str | None,
    reach: Reach,
    out: Output,
) -> None:
    """Write INPUT to URL with Spark, all of it or nothing."""
    known_format = input_format or _format_of(input_path)
    given: dict[str, Any] = dict(_option(text) for text in options)
    columns = [name.strip() for name in partition_by.split(",")] if partition_by else None
    if reach.endpoint_url:
        given.setdefault("endpoint", reach.endpoint_url)
    if reach.region:
        given.setdefault("region", reach.region)
    from holdfast.seams import SystemIds

    given["write_token"] = SystemIds().token()
    parsed = _check(url, given, columns, file_format, committer, mode)
    request = {"mode": mode, "partition_by": columns, "file_format": file_format, "committer": committer, **given}
    try:
        result = _write_with_spark(input_path, known_format, url, request, master, out)
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
        out.say(f"nothing written: {url} holds data and the mode is {mode}")
    else:
        rows = f"{counted(result.rows, 'row')} in " if result.rows or not result.files else ""
        out.say(f"committed: {rows}{counted(result.files, 'file')}, {size(result.bytes)}, job {result.job}")
    if not result.finished:
        out.note(f"the clean-up after the commit is pending: holdfast recover {url}")


def _check(
    url: str, options: dict[str, Any], columns: list[str] | None, file_format: str, committer: str, mode: str
) -> WriteOptions:
    """The request, parsed. Refuses what cannot be right before Spark starts: that takes several seconds."""
    from holdfast.commit import SaveMode, get_committer
    from holdfast.spark.options import joined_columns, option_strings, parse_write_options

    strings = {**option_strings(options), "path": url, "fileFormat": file_format, "committer": committer}
    if columns:
        strings["partitionBy"] = joined_columns(columns)
    parsed = parse_write_options(strings, overwrite=False)
    ctx = parsed.open()
    try:
        get_committer(committer).require_fit(ctx, SaveMode(mode))
    finally:
        ctx.close()
    return parsed


def _write_with_spark(
    input_path: str, input_format: str, url: str, request: dict[str, Any], master: str | None, out: Output
) -> WriteResult:
    from holdfast.cli.session import spark_session
    from holdfast.spark.write import write as write_rows

    with out.waiting("starting Spark") as stage, spark_session("holdfast write", master, debug=out.debug) as spark:
        stage(f"reading {input_path}")
        rows = _load(spark, input_path, input_format)
        stage(f"writing {url}")
        return write_rows(rows, url, **request)


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


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InvalidRequestError("an option is written as key=value", option=text)
    return name.strip(), value


def _load(spark: SparkSession, path: str, input_format: str) -> DataFrame:
    reader = spark.read.format(input_format)
    if input_format == "csv":
        separator = "\t" if ".tsv" in PurePosixPath(path).name.lower() else ","
        reader = reader.option("header", True).option("inferSchema", True).option("sep", separator)
    return reader.load(path)
