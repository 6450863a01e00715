"""Run ``holdfast read``: show the first rows of a destination."""

from __future__ import annotations

import sys
from typing import Annotated

import click

from holdfast.cli.arguments import parse_option_pairs
from holdfast.cli.command import CommandRun, ResourceKind, Url, command, option
from holdfast.cli.screen import escape_to_one_line, is_terminal
from holdfast.stores.provider import GivenOption
from holdfast.wording import format_count


@command(ResourceKind.STORES)
def read(
    run: CommandRun,
    url: Url,
    limit: Annotated[int, option("-n --limit", "Rows to show.", type=click.IntRange(min=0), default=20)],
    columns: Annotated[tuple[str, ...], option("--columns", "Columns to show, in this order.", metavar="A,B,…")],
    conditions: Annotated[tuple[str, ...], option("--where", "Only matching rows; repeatable.", metavar="CONDITION")],
    file_format: Annotated[str | None, option("--format", "Format, if neither the log nor the names tell it.")],
    options: Annotated[tuple[str, ...], option("--option", "Option of the format; repeatable.", metavar="KEY=VALUE")],
) -> None:
    """Show the first rows of the destination at URL.

    Examples:
      holdfast read s3://bucket/flights -n 5
      holdfast read ./flights --columns carrier,dest --where "month=12"
      holdfast read ./flights --json | jq '.rows[0]'
      holdfast read s3://bucket/in/x.parquet

    Shows committed jobs only, never the output of a job that is still running. Does not start Spark. URL may also be a
    single file. A condition compares a column with a value by =, !=, <, <=, > or >=; the value is read as the column's
    type. All conditions must hold.
    """
    from holdfast.cli.read_rows import cell_json, cell_text, python_rows, read_first_rows
    from holdfast.options.read import parse_read_options

    out = run.out
    names = [name.strip() for text in columns for name in text.split(",")] or None
    flags = [("path", "URL", url), ("fileFormat", "--format", file_format)]
    given = [GivenOption.of(name, text, spelled) for name, spelled, text in flags if text is not None]
    said = [*run.reach.options(url), *parse_option_pairs(options, reserved=_RESERVED, urls=[url])]
    request = parse_read_options([*given, *said])
    with request.store.open() as ctx, out.show_spinner("reading"):
        found = read_first_rows(ctx, request, limit, columns=names, conditions=conditions)
    header = found.rows.schema.names
    rows = python_rows(found)
    out.document(
        {
            "url": ctx.url,
            "columns": [{"name": field.name, "type": str(field.type)} for field in found.rows.schema],
            "rows": [{name: cell_json(value) for name, value in zip(header, row, strict=True)} for row in rows],
            "more": found.more,
            "files": found.files,
        }
    )
    texts = [[cell_text(value) for value in row] for row in rows]
    if is_terminal(sys.stdout) and not out.json and len(header) * _LEAST_WIDTH > out.width:
        for number, row in enumerate(texts, start=1):
            named = (f"{name}={value}" for name, value in zip(header, row, strict=True))
            out.say(f"row {number}: " + escape_to_one_line("  ".join(named)))
    elif header:
        out.table(header, texts)
    more = "; there are more rows: see --limit" if found.more else ""
    out.say(f"{format_count(len(rows), 'row')} of {format_count(found.files, 'file')}{more}")


_LEAST_WIDTH = 8  # narrower table cells are unreadable: each row becomes a line of name=value pairs instead
_RESERVED = {"path": "URL", "fileFormat": "--format", "columns": "--columns", "filters": "--where"}
