"""Run ``holdfast database ls``: list tables, or the rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.database.arguments import Bounds, with_bounds
from holdfast.cli.database.session import lists_from_database
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line

if TYPE_CHECKING:
    from holdfast.records import Database

_EPILOG = """\b
Examples:
  holdfast database ls sqlite:///var/lib/shop.db
  holdfast database ls sqlite:///var/lib/shop.db stock --prefix app
  holdfast database ls sqlite:///var/lib/shop.db scores --row-type json --prefix '["user1"]'

Rows are read and printed page by page, so that the first ones appear at once, whatever the size of the table; each page
is as the table was when it was read. Rows that are no texts are shown in JSON,
and so are texts that look like it: the text "3" is not the integer 3."""


@click.command(epilog=_EPILOG)
@lists_from_database
@click.argument("table", required=False)
@with_bounds
@click.option("--limit", type=click.IntRange(min=1), help="The most rows to list.")
def ls(database: Database, table: str | None, bounds: Bounds, limit: int | None, out: Output) -> None:
    """List the tables at URL, or the rows of TABLE."""
    if table is not None:
        _list_rows(database, table, bounds, limit, out)
    elif bounds or limit is not None:
        raise click.UsageError("give a table, whose rows these options choose")
    else:
        _list_tables(database, out)


def _list_tables(database: Database, out: Output) -> None:
    from holdfast.cli.database.tables import history_form, history_text

    tables = database.tables()
    for table in tables:
        out.line({"table": table.name, "history": history_form(table)})
    if tables:
        out.table(["table", "history"], [(table.name, history_text(table)) for table in tables], right=["history"])
    else:
        out.say("no tables: make one with holdfast database create")


def _list_rows(database: Database, table: str, bounds: Bounds, limit: int | None, out: Output) -> None:
    from holdfast.cli.database.forms import json_row, row_text
    from holdfast.cli.database.pages import iter_pages

    for page in iter_pages(database, table, bounds, limit):
        for row in page:
            if out.json:
                out.line({"row": json_row(row)})
            else:
                out.say(in_one_line(row_text(row)))
