"""Run ``holdfast database drop``: drop a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.records import Database

_EPILOG = """\b
Examples:
  holdfast database drop sqlite:///var/lib/shop.db stock
  holdfast database drop sqlite:///var/lib/shop.db stock --yes

The table is gone in one step; then its cells and their history are deleted. If this is interrupted,
holdfast database gc deletes the rest. Programs that use the table fail, and change nothing."""


@click.command(epilog=_EPILOG)
@on_database
@click.argument("table")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def drop(database: Database, table: str, yes: bool, out: Output) -> None:
    """Drop TABLE with all its cells."""
    database.table(table)
    if not yes:
        if out.json or sys.stdin is None or not sys.stdin.isatty():
            raise InvalidRequestError("cannot ask for confirmation here: run this command with --yes")
        click.confirm(f"Drop the table {table} of {database.url} with all its cells?", abort=True)
    with out.waiting("deleting cells"):
        database.drop_table(table)
    out.document({"table": table, "dropped": True})
    out.say(f"dropped {table}")
