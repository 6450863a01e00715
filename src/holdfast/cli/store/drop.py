"""Run ``holdfast store drop``: drop a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.output import Output
from holdfast.cli.store.session import on_store_of_tables
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.records import Store

_EPILOG = """\b
Examples:
  holdfast store drop sqlite:///var/lib/shop.db stock
  holdfast store drop sqlite:///var/lib/shop.db stock --yes

The table is gone in one step; then its cells and their history are deleted. If this is interrupted, holdfast store gc
deletes the rest. Programs that use the table fail, and change nothing."""


@click.command(epilog=_EPILOG)
@on_store_of_tables
@click.argument("table")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def drop(store: Store, table: str, yes: bool, out: Output) -> None:
    """Drop TABLE with all its cells."""
    store.table(table)
    if not yes:
        if out.json or sys.stdin is None or not sys.stdin.isatty():
            raise InvalidRequestError("cannot ask for confirmation here: run this command with --yes")
        click.confirm(f"Drop the table {table} of {store.url} with all its cells?", abort=True)
    with out.waiting("deleting cells"):
        store.drop_table(table)
    out.document({"table": table, "dropped": True})
    out.say(f"dropped {table}")
