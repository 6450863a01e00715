"""Run ``holdfast store ls``: list tables, or the rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.store.arguments import Bounds, with_bounds
from holdfast.cli.store.session import lists_from_store

if TYPE_CHECKING:
    from holdfast.records import Store

_EPILOG = """\b
Examples:
  holdfast store ls sqlite:///var/lib/shop.db
  holdfast store ls sqlite:///var/lib/shop.db stock --prefix app
  holdfast store ls sqlite:///var/lib/shop.db scores --row-type json --prefix '["user1"]'

Rows are read and printed page by page, so that the first ones appear at once, whatever the size of the table; each page
is as the table was when it was read. Rows that are no texts are shown in JSON,
and so are texts that look like it: the text "3" is not the integer 3."""


@click.command(epilog=_EPILOG)
@lists_from_store
@click.argument("table", required=False)
@with_bounds
@click.option("--limit", type=click.IntRange(min=1), help="The most rows to list.")
def ls(store: Store, table: str | None, bounds: Bounds, limit: int | None, out: Output) -> None:
    """List the tables at URL, or the rows of TABLE."""
    if table is not None:
        _list_rows(store, table, bounds, limit, out)
    elif bounds or limit is not None:
        raise click.UsageError("give a table, whose rows these options choose")
    else:
        _list_tables(store, out)


def _list_tables(store: Store, out: Output) -> None:
    from holdfast.cli.store.tables import history_form, history_text

    tables = store.tables()
    for table in tables:
        out.line({"table": table.name, "history": history_form(table)})
    if tables:
        out.table(["table", "history"], [(table.name, history_text(table)) for table in tables], right=["history"])
    else:
        out.say("no tables: make one with holdfast store create")


def _list_rows(store: Store, table: str, bounds: Bounds, limit: int | None, out: Output) -> None:
    from holdfast.cli.store.forms import json_row, row_text
    from holdfast.cli.store.pages import iter_pages

    for page in iter_pages(store, table, bounds, limit):
        for row in page:
            if out.json:
                out.line({"row": json_row(row)})
            else:
                out.say(in_one_line(row_text(row)))
