"""Run ``holdfast database scan``: show rows with their values."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING

import click

from holdfast.cli.database.arguments import Bounds, with_bounds
from holdfast.cli.database.session import lists_from_database
from holdfast.cli.output import Output

if TYPE_CHECKING:
    from holdfast.records import Database

_EPILOG = """\b
Examples:
  holdfast database scan sqlite:///var/lib/shop.db stock --limit 20
  holdfast database scan sqlite:///var/lib/shop.db stock --start a --end b
  holdfast database scan sqlite:///var/lib/shop.db stock --json | jq .columns.value

All rows come from one snapshot. With --json, each row is a line, {"row": …, "columns": {…}}, from which every value can
be told again. To read a whole table, use holdfast database export."""


@click.command(epilog=_EPILOG)
@lists_from_database
@click.argument("table")
@with_bounds
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="The most rows to show.")
def scan(database: Database, table: str, bounds: Bounds, limit: int, out: Output) -> None:
    """Show the rows of TABLE with their values."""
    from holdfast.cli.database.forms import row_form, row_text, value_text

    shown = []
    is_more = False
    with database.snapshot() as snapshot:
        rows = snapshot.scan(table, **bounds)
        for row, columns in islice(rows, min(limit, sys.maxsize)):
            if out.json:
                out.line(row_form(row, columns))
            else:
                shown.append((row_text(row), {name: value_text(value) for name, value in columns.items()}))
        is_more = next(rows, None) is not None
    names = sorted({name for _row, columns in shown for name in columns})
    if shown:
        out.table(["row", *names], [[row, *(columns.get(name, "") for name in names)] for row, columns in shown])
    elif not out.json:
        out.say("no rows")
    if is_more:
        out.note(f"there are more rows than {limit:,}: see --limit, or holdfast database export")
