"""Run ``holdfast database create``: create a table."""

from __future__ import annotations

import click

from holdfast.cli.command import reports
from holdfast.cli.database.session import open_url
from holdfast.cli.output import Output

_EPILOG = """\b
Examples:
  holdfast database create sqlite:///var/lib/shop.db stock
  holdfast database create postgresql://shop@db.example.org/shop prices --history 10
  holdfast database create sqlite:///var/lib/shop.db log --history all

The database must exist, except for an SQLite file; what the database needs in it is created. With --history, earlier
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
    from holdfast.cli.database.tables import history_form, history_text
    from holdfast.records.tables import check_table_name

    check_table_name(table)  # before there is a new file
    with open_url(url, create=True) as database:
        made = database.create_table(table, history=history, exist_ok=exist_ok)
        out.document({"url": database.url, "table": made.name, "history": history_form(made)})
        kept = f"history: {history_text(made)}"
        out.say(f"table {made.name} exists now, {kept}" if exist_ok else f"created table {made.name}, {kept}")
