"""Run ``holdfast store gc``: delete what interrupted drops have left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.output import Output
from holdfast.cli.store.session import on_store_of_tables
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.records import Store

_EPILOG = """\b
Examples:
  holdfast store gc sqlite:///var/lib/shop.db

Deletes what is left of dropped tables and work lists in small transactions. It is safe to interrupt, and several may
run side by side."""


@click.command(epilog=_EPILOG)
@on_store_of_tables
def gc(store: Store, out: Output) -> None:
    """Delete what is left of dropped tables and work lists at URL."""
    with out.waiting("deleting cells"):
        deleted = store.collect()
    out.document({"url": store.url, "records": deleted})
    out.say(f"deleted {counted(deleted, 'record')} of what was dropped" if deleted else "nothing to delete")
