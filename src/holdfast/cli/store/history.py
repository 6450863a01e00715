"""Run ``holdfast store history``: show the earlier values of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.output import Output
from holdfast.cli.store.arguments import RowCommand, with_row
from holdfast.cli.store.session import on_store_of_tables

if TYPE_CHECKING:
    from holdfast.records import Row, Store, Value

_EPILOG = """\b
Examples:
  holdfast store history sqlite:///var/lib/shop.db prices apples
  holdfast store history sqlite:///var/lib/shop.db prices apples --json | jq '.history[-1]'

Each write of a cell has the next update counter, also a deletion. The oldest value that the table keeps comes first,
the present one last."""


@click.command(cls=RowCommand, epilog=_EPILOG)
@on_store_of_tables
@click.argument("table")
@with_row
@click.option("--column", default="value", show_default=True, help="Column of the cell.")
def history(store: Store, table: str, row: Row, column: str, out: Output) -> None:
    """Show the values of the cell at ROW in TABLE, each with its update counter."""
    from holdfast.cli.store.forms import json_row, type_name, value_text
    from holdfast.cli.store.missing import look_alike

    found = store.history(table, row, column=column)
    entries = [_entry(counter, value) for counter, value in found]
    out.document({"table": table, "row": json_row(row), "column": column, "history": entries})
    if not found:
        out.say("the cell was never written")
        if hint := look_alike(store, table, row):
            out.note(hint)
        return
    lines = [
        (str(counter), "deleted" if value is None else type_name(value), "" if value is None else value_text(value))
        for counter, value in found
    ]
    out.table(["counter", "type", "value"], lines, right=["counter"])


def _entry(counter: int, value: Value | None) -> dict[str, object]:
    from holdfast.cli.store.forms import json_value, type_name

    if value is None:
        return {"counter": counter, "deleted": True}
    return {"counter": counter, "deleted": False, "type": type_name(value), "value": json_value(value)}
