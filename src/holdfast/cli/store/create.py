"""Run ``holdfast store create``: create a table."""

from __future__ import annotations

import click

from holdfast.cli.arguments import reports
from holdfast.cli.output import Output
from holdfast.cli.store.session import open_url

_EPILOG = """\b
Examples:
  holdfast store create sqlite:///var/lib/shop.db stock
  holdfast store create postgresql://shop@db.example.org/shop prices --history 10
  holdfast store create sqlite:///var/lib/shop.db log --history all

The database must exist, except for an SQLite file; what the store needs in it is created. With --history, earlier
values of a cell stay, and all writers of a cell wait for each other. The history of a table cannot be changed."""


def _history(text: str) -> bool | int:
    """Parse a number of values, or ``all``."""
    if text == "all":
        return True
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise click.BadParameter(f"'{text}' is no number of values: write one, such as 10, or all")
    return int(text)


@click.command(epilog=_EPILOG)
@click.argument("url")
@click.argument("table")
@click.option(
    "--history",
    metavar="N|all",
    type=_history,
    default="0",
    help="Keep so many values of each cell, the present one among them.  [default: no history]",
)
@click.option("--exist-ok", is_flag=True, help="Accept a table that exists, if it has this history.")
@reports
def create(url: str, table: str, history: bool | int, exist_ok: bool, out: Output) -> None:
    """Create TABLE in the database at URL."""
    from holdfast.cli.store.tables import history_form, history_text
    from holdfast.records.tables import check_table_name

    check_table_name(table)  # before there is a new file
    with open_url(url, create=True) as store:
        made = store.create_table(table, history=history, exist_ok=exist_ok)
        out.document({"url": store.url, "table": made.name, "history": history_form(made)})
        kept = f"history: {history_text(made)}"
        out.say(f"table {made.name} exists now, {kept}" if exist_ok else f"created table {made.name}, {kept}")
