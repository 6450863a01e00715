"""``holdfast read``."""

from __future__ import annotations

import click

from holdfast.cli.arguments import Reach, on_store, reports
from holdfast.cli.output import Output, counted

__all__ = ["read"]

_EPILOG = """\b
Examples:
  holdfast read s3://bucket/flights -n 5
  holdfast read ./flights --columns carrier,dest --where "month=12"
  holdfast read ./flights --json | jq '.rows[0]'

Shows whole jobs only: what a running job has written is not there yet. Does not start Spark. Conditions compare a
column with a value by =, !=, <, <=, > or >=; a value is taken as the column's type."""


@click.command(epilog=_EPILOG)
@click.argument("url")
@click.option("-n", "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows to show.")
@click.option("--columns", metavar="A,B,…", help="Columns to show, in this order.")
@click.option(
    "--where", "conditions", multiple=True, metavar="CONDITION", help="Only rows that meet it; repeat for and."
)
@click.option("--format", "file_format", help="Format of the files, where neither the log nor their names tell it.")
@on_store
@reports
def read(
    url: str,
    limit: int,
    columns: str | None,
    conditions: tuple[str, ...],
    file_format: str | None,
    reach: Reach,
    out: Output,
) -> None:
    """Show rows of the destination at URL."""
    from holdfast.cli.rows import as_text, as_value, first_rows

    names = [name.strip() for name in columns.split(",")] if columns else None
    with reach.open(url) as ctx, out.waiting("reading"):
        found = first_rows(ctx, limit, columns=names, conditions=conditions, file_format=file_format)
    rows = found.rows.to_pylist()
    out.document(
        {
            "url": ctx.url,
            "columns": [{"name": field.name, "type": str(field.type)} for field in found.rows.schema],
            "rows": [{name: as_value(value) for name, value in row.items()} for row in rows],
            "more": found.more,
            "files": found.files,
        }
    )
    if len(found.rows.schema) > _MANY_COLUMNS and not out.json:
        for number, row in enumerate(rows, start=1):
            out.say(f"row {number}: " + "  ".join(f"{name}={as_text(value)}" for name, value in row.items()))
    else:
        out.table(found.rows.schema.names, [[as_text(value) for value in row.values()] for row in rows])
    more = "; there are more: see --limit" if found.more else ""
    out.say(f"{counted(len(rows), 'row')} of {counted(found.files, 'file')}{more}")


_MANY_COLUMNS = 10  # a table of more has cells of a few characters on a screen of 80 columns
