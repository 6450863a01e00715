"""Run ``holdfast database gc``: delete what interrupted drops have left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.records import Database

_EPILOG = """\b
Examples:
  holdfast database gc sqlite:///var/lib/shop.db

Deletes what is left of dropped tables and work lists in small transactions. It is safe to interrupt, and several may
run side by side."""


@click.command(epilog=_EPILOG)
@on_database
def gc(database: Database, out: Output) -> None:
    """Delete what is left of dropped tables and work lists at URL."""
    with out.waiting("deleting cells"):
        deleted = database.collect()
    out.document({"url": database.url, "records": deleted})
    out.say(f"deleted {counted(deleted, 'record')} of what was dropped" if deleted else "nothing to delete")
