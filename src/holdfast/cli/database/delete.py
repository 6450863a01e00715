"""Run ``holdfast database delete``: delete a row, or one cell of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import filled
from holdfast.cli.database.arguments import RowCommand, with_row
from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.records import CellTransaction, Database, Row

_EPILOG = """\b
Examples:
  holdfast database delete sqlite:///var/lib/shop.db stock apples
  holdfast database delete sqlite:///var/lib/shop.db stock apples --column color

All cells of the row go in one transaction. A row that does not exist is no error. In a table with history, the earlier
values stay in the history."""


@click.command(cls=RowCommand, epilog=_EPILOG)
@on_database
@click.argument("table")
@with_row
@click.option("--column", type=filled, metavar="NAME", help="Delete only the cell in this column.")
def delete(database: Database, table: str, row: Row, column: str | None, out: Output) -> None:
    """Delete ROW from TABLE, or one cell of it."""
    from holdfast.cli.database.forms import json_row
    from holdfast.cli.database.missing import look_alike

    def remove(cells: CellTransaction) -> list[str]:
        chosen = [name for name in cells.columns(table, row) if column in (None, name)]
        for name in chosen:
            cells.delete(table, row, column=name)
        return chosen

    deleted = database.transact(remove)
    out.document({"table": table, "row": json_row(row), "deleted": deleted})
    out.say(f"deleted {counted(len(deleted), 'cell')}" if deleted else "there was nothing to delete")
    if not deleted and (hint := look_alike(database, table, row)):
        out.note(hint)
