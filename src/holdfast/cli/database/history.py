"""Run ``holdfast database history``: show the earlier values of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.database.arguments import RowCommand, with_row
from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output

if TYPE_CHECKING:
    from holdfast.records import Database, Row, Value

_EPILOG = """\b
Examples:
  holdfast database history sqlite:///var/lib/shop.db prices apples
  holdfast database history sqlite:///var/lib/shop.db prices apples --json | jq '.history[-1]'

Each write of a cell has the next update counter, also a deletion. The oldest value that the table keeps comes first,
the present one last."""


@click.command(cls=RowCommand, epilog=_EPILOG)
@on_database
@click.argument("table")
@with_row
@click.option("--column", default="value", show_default=True, help="Column of the cell.")
def history(database: Database, table: str, row: Row, column: str, out: Output) -> None:
    """Show the values of the cell at ROW in TABLE, each with its update counter."""
    from holdfast.cli.database.forms import json_row, type_name, value_text
    from holdfast.cli.database.missing import look_alike

    found = database.history(table, row, column=column)
    entries = [_entry(counter, value) for counter, value in found]
    out.document({"table": table, "row": json_row(row), "column": column, "history": entries})
    if not found:
        out.say("the cell was never written")
        if hint := look_alike(database, table, row):
            out.note(hint)
        return
    lines = [
        (str(counter), "deleted" if value is None else type_name(value), "" if value is None else value_text(value))
        for counter, value in found
    ]
    out.table(["counter", "type", "value"], lines, right=["counter"])


def _entry(counter: int, value: Value | None) -> dict[str, object]:
    from holdfast.cli.database.forms import json_value, type_name

    if value is None:
        return {"counter": counter, "deleted": True}
    return {"counter": counter, "deleted": False, "type": type_name(value), "value": json_value(value)}
