"""Run ``holdfast write``: check the request, write with Spark, report the committed job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Reach, Word, on_store, option_pairs, parse_pairs, reports, save_modes
from holdfast.cli.output import Output, size
from holdfast.cli.write.input import INPUT_FORMATS, Input, format_of
from holdfast.stores.given import GivenOption, contradiction
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.options.write import WriteOptions, WriteRequest
    from holdfast.spark.write import JobResult

_EPILOG = """\b
Examples:
  holdfast write flights.csv s3://bucket/flights --partition-by month
  holdfast write events/ ./table --input-format json --mode overwrite
  holdfast write a.parquet ./out --format csv --option header=true
  holdfast write x.csv ./t --input-option "sep=;" --input-option header=false

INPUT is anything that Spark can read: a file, a directory, a glob, or a URL that this Spark supports. A CSV file is
read with a header and with inferred types, unless --input-option or --input-schema says otherwise. All rows become
visible at once, or none do, even if you press Ctrl-C. Some write options are mergeSchema=true,
maxRecordsPerFile=100000, targetFileSize=256m, writeId=NAME and compression=zstd; for a name that is wrong, the error
suggests the nearest ones."""


@click.command(epilog=_EPILOG)
@click.argument("input_path", metavar="INPUT")
@click.argument("url")
@click.option("--input-format", type=Word(INPUT_FORMATS), help="Format of INPUT, if its name does not tell.")
@click.option(
    "--input-option", "input_options", multiple=True, metavar="KEY=VALUE", help="Option of Spark's reader; repeatable."
)
@click.option("--input-schema", metavar="DDL", help="Columns and types of INPUT, e.g. 'id long, name string'.")
@click.option("--format", "file_format", show_default="parquet", help="Format of the files to write.")
@click.option(
    "--partition-by", multiple=True, metavar="A,B,…", help="Partition columns, outermost directory first; repeatable."
)
@click.option(
    "--mode",
    type=Word(save_modes),
    show_default="append",
    help="What to do if URL already holds data.",
)
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Write option; repeatable.")
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
    """Write INPUT to URL with Spark: all of it or nothing."""
    source = Input(input_path, input_format or format_of(input_path), _reader_options(input_options), input_schema)
    flags: list[tuple[str, str, str | None]] = [  # option, its value, and how the user named it
        ("path", "URL", url),
        ("fileFormat", "--format", file_format),
        ("partitionBy", "--partition-by", ",".join(partition_by) or None),
        ("committer", "--committer", committer),
    ]
    given = [GivenOption.of(name, text, spelled) for name, spelled, text in flags if text is not None]
    request = _check([*given, *reach.options(url), *option_pairs(options, urls=[url])], mode)
    try:
        result = _write_with_spark(source, request, master, out)
    except (KeyboardInterrupt, SystemExit):
        from holdfast.cli.write.interrupted import end_interrupted_write

        end_interrupted_write(request.options, out)
        raise
    _report(result, request.options, out)


def _reader_options(texts: Sequence[str]) -> dict[str, str]:
    """Parse the options of Spark's reader. Names stay as they were written: Hadoop's settings are case-sensitive.

    Raises:
        InvalidRequestError: a string is refused for a reason of `parse_pairs`, or an option is given twice with
            different values.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, value in parse_pairs(texts, reserved={"path": "INPUT"}):
        first, given = found.setdefault(name.lower(), (name, value))
        if given != value:
            raise contradiction(f"--input-option {first}", f"--input-option {name}")
    return dict(found.values())


def _check(given: Sequence[GivenOption], mode: str | None) -> WriteRequest:
    """Parse the options of the write into a request.

    Requests that cannot work are refused here, before Spark starts, which takes seconds.
    """
    from holdfast.commit import get_committer, require_fit
    from holdfast.commit.destination import refuse_file, refuse_taken
    from holdfast.options.keywords import from_mode, from_text, with_absolute_paths
    from holdfast.options.write import parse_write_request
    from holdfast.runtime import SystemIds
    from holdfast.table.foreign import refuse_foreign_write

    overwrite, options = from_mode(mode, "--mode")
    options += [one for one in given if one.name != "writetoken"]
    options += from_text("writeToken", SystemIds().token(), "writeToken")
    request = parse_write_request(with_absolute_paths(options), overwrite)
    parsed = request.options
    with parsed.store.open(parsed.settings, committer=parsed.committer) as ctx:
        require_fit(get_committer(parsed.committer), ctx, parsed.mode)
        refuse_file(ctx)
        refuse_taken(ctx)
        refuse_foreign_write(ctx)
    return request


def _write_with_spark(source: Input, request: WriteRequest, master: str | None, out: Output) -> JobResult:
    from holdfast.cli.write.spark_session import spark_session
    from holdfast.spark.write import run_write

    source.check()
    with out.waiting("starting Spark") as stage, spark_session("holdfast write", master, debug=out.debug) as spark:
        stage(f"reading {source.path}")
        rows = source.load(spark)
        stage(f"writing {request.options.store.url}")
        return run_write(rows, request)


def _report(result: JobResult, options: WriteOptions, out: Output) -> None:
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
        rows = f"{counted(result.rows, 'row')} in " if result.rows or not result.files else ""
        out.say(f"committed: {rows}{counted(result.files, 'file')}, {size(result.bytes)}, job {result.job}")
    if not result.finished:
        out.note(f"the cleanup after the commit is pending: run holdfast recover {url}")
