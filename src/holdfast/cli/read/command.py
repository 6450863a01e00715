"""Run ``holdfast read``: show the first rows of a destination."""

from __future__ import annotations

import click

from holdfast.cli.arguments import Reach, on_store, option_pairs, reports
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line, is_terminal
from holdfast.wording import counted

_EPILOG = """\b
Examples:
  holdfast read s3://bucket/flights -n 5
  holdfast read ./flights --columns carrier,dest --where "month=12"
  holdfast read ./flights --json | jq '.rows[0]'
  holdfast read s3://bucket/in/x.csv.gz --option header=true --option "sep=;"
  holdfast read './in/*.csv' --schema "id long, name string"

Shows committed jobs only, never the output of a job that is still running. Does not start Spark. URL may also be a
single file, or a quoted pattern with *, ?, [a-c] or {a,b}. A condition compares a column with a value by =, !=, <, <=,
> or >=; the value is read as the column's type."""


@click.command(epilog=_EPILOG)
@click.argument("url")
@click.option("-n", "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows to show.")
@click.option("--columns", multiple=True, metavar="A,B,…", help="Columns to show, in this order.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Show only matching rows; repeatable: all conditions must hold.",
)
@click.option("--format", "file_format", help="Format of the files, if neither the log nor their names tell it.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Option of the format; repeatable.")
@click.option("--schema", "ddl", metavar="DDL", help="Columns and types as in SQL, e.g. 'id long, name string'.")
@on_store
@reports
def read(
    url: str,
    limit: int,
    columns: tuple[str, ...],
    conditions: tuple[str, ...],
    file_format: str | None,
    options: tuple[str, ...],
    ddl: str | None,
    reach: Reach,
    out: Output,
) -> None:
    """Show the first rows of the destination at URL."""
    from holdfast.cli.read.rows import as_text, as_value, cells, first_rows

    names = [name.strip() for text in columns for name in text.split(",")] or None
    reach, said = reach.taking(option_pairs(options, reserved=_RESERVED, urls=[url]), url)
    with reach.open(url) as ctx, out.waiting("reading"):
        found = first_rows(
            ctx, limit, columns=names, conditions=conditions, file_format=file_format, options=said, ddl=ddl
        )
    header = found.rows.schema.names
    rows = cells(found)
    out.document(
        {
            "url": ctx.url,
            "columns": [{"name": field.name, "type": str(field.type)} for field in found.rows.schema],
            "rows": [{name: as_value(value) for name, value in zip(header, row, strict=True)} for row in rows],
            "more": found.more,
            "files": found.files,
        }
    )
    texts = [[as_text(value) for value in row] for row in rows]
    if is_terminal() and not out.json and len(header) * _LEAST_WIDTH > out.width:
        for number, row in enumerate(texts, start=1):
            named = (f"{name}={value}" for name, value in zip(header, row, strict=True))
            out.say(f"row {number}: " + in_one_line("  ".join(named)))
    elif header:
        out.table(header, texts)
    more = "; there are more rows: see --limit" if found.more else ""
    out.say(f"{counted(len(rows), 'row')} of {counted(found.files, 'file')}{more}")


_LEAST_WIDTH = 8  # narrower table cells are unreadable: each row becomes a line of name=value pairs instead
_RESERVED = {"path": "URL", "fileFormat": "--format", "columns": "--columns", "filters": "--where"}
_RESERVED |= {"endpoint": "--endpoint-url", "region": "--region", "caBundle": "--ca-bundle"}
