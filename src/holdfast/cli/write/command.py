"""Run ``holdfast write``: check the request, write with Spark, report the committed job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.arguments import Reach, Word, on_store, option_pairs, reports, save_modes
from holdfast.cli.output import Output, size
from holdfast.cli.write.input import INPUT_FORMATS, Input, format_of
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.options.parsing import WriteOptions
    from holdfast.options.values import Saying
    from holdfast.spark.write import WriteResult

__all__ = ["write"]

_EPILOG = """\b
Examples:
  holdfast write flights.csv s3://bucket/flights --partition-by month
  holdfast write events/ ./table --input-format json --mode overwrite
  holdfast write a.parquet ./out --format csv --option header=true
  holdfast write x.csv ./t --input-option "sep=;" --input-option header=false

INPUT is anything that Spark can read: a file, a directory, a glob, or a URL that this Spark supports. A CSV file is
read with a header and with inferred types, unless --input-option or --input-schema says otherwise. All rows become
visible at once, or none do, even if you press Ctrl-C. The write options, such as maxRecordsPerFile=100000 or
targetFileSize=256m, are listed in docs/reference/options.md."""


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
    from holdfast.options.values import Given, Saying

    reader_options = Given(option_pairs(input_options, "--input-option", reserved={"path": "INPUT"}), known=()).rest
    source = Input(input_path, input_format or format_of(input_path), reader_options, input_schema)
    flags: list[tuple[str, str, str | None]] = [  # option, its value, and how the user named it
        ("path", "URL", url),
        ("fileFormat", "--format", file_format),
        ("partitionBy", "--partition-by", ",".join(partition_by) or None),
        ("committer", "--committer", committer),
        *reach.given,
    ]
    said = [Saying.of(name, text, spelled) for name, spelled, text in flags if text is not None]
    parsed, strings = _check([*said, *option_pairs(options)], mode)
    request = {"mode": mode, **strings}
    try:
        result = _write_with_spark(source, request, master, out)
    except (KeyboardInterrupt, SystemExit):
        from holdfast.cli.write.interrupted import end_interrupted_write

        end_interrupted_write(parsed, out)
        raise
    _report(result, parsed, out)


def _check(said: Sequence[Saying], mode: str | None) -> tuple[WriteOptions, dict[str, str]]:
    """Parse the request and return it with its option strings.

    Refuse here whatever cannot work: Spark takes seconds to start.
    """
    from holdfast.commit import get_committer, require_fit
    from holdfast.commit.destination import refuse_file, refuse_taken
    from holdfast.options.parsing import parse_write_options
    from holdfast.options.said import say_mode, settled
    from holdfast.options.values import Saying
    from holdfast.runtime import SystemIds
    from holdfast.table.foreign import refuse_foreign_write

    overwrite, request = say_mode(mode, "--mode")
    request += [one for one in said if one.name != "writetoken"]
    request.append(Saying.of("writeToken", SystemIds().token(), "writeToken"))
    parsed = parse_write_options(request, overwrite)
    with parsed.open() as ctx:
        require_fit(get_committer(parsed.committer), ctx, parsed.mode)
        refuse_file(ctx)
        refuse_taken(ctx)
        refuse_foreign_write(ctx)
    return parsed, settled(request)


def _write_with_spark(source: Input, request: dict[str, Any], master: str | None, out: Output) -> WriteResult:
    from holdfast.cli.write.spark_session import spark_session
    from holdfast.spark.write import write as write_rows

    with out.waiting("starting Spark") as stage, spark_session("holdfast write", master, debug=out.debug) as spark:
        stage(f"reading {source.path}")
        rows = source.load(spark)
        stage(f"writing {request['path']}")
        return write_rows(rows, request["path"], **request)


def _report(result: WriteResult, options: WriteOptions, out: Output) -> None:
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
