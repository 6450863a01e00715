"""Run ``holdfast database get``: print the value of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.database.arguments import RowCommand, with_row
from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    from holdfast.records import Database, Row, Value

_EPILOG = """\b
Examples:
  holdfast database get sqlite:///var/lib/shop.db stock apples
  holdfast database get sqlite:///var/lib/shop.db scores '["user1", 5]' --row-type json
  holdfast database get sqlite:///var/lib/shop.db images logo --raw > logo.png

Bytes are shown in hexadecimal, and arrays of more than 16 elements by their shape; --json has all of them. The exit
code is 2 if there is no such cell."""


@click.command(cls=RowCommand, epilog=_EPILOG)
@on_database
@click.argument("table")
@with_row
@click.option("--column", default="value", show_default=True, help="Column of the cell.")
@click.option("--raw", is_flag=True, help="Print a text or bytes exactly as they are, without a line break.")
def get(database: Database, table: str, row: Row, column: str, raw: bool, out: Output) -> None:
    """Print the value of the cell at ROW in TABLE."""
    from holdfast.cli.database.forms import json_row, json_value, type_name, value_text

    if raw and out.json:
        raise InvalidRequestError("standard output takes the value or the document: leave out --raw or --json")
    value = database.get(table, row, column=column)
    if value is None:
        raise _no_cell(database, table, row, column)
    if raw:
        out.data(_as_bytes(value))
        return
    form = json_value(value)
    out.document({"table": table, "row": json_row(row), "column": column, "type": type_name(value), "value": form})
    out.say(in_one_line(value_text(value)))


def _as_bytes(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise InvalidRequestError("only a text or bytes can be printed as they are: leave out --raw, or use --json")


def _no_cell(database: Database, table: str, row: Row, column: str) -> NotFoundError:
    from holdfast.cli.database.missing import look_alike

    others = ", ".join(database.transact(lambda cells: cells.columns(table, row)))
    if others:
        hint = f"the row has the columns {others}, see --column"
    else:
        hint = look_alike(database, table, row) or "the table has no such row"
    return NotFoundError(f"there is no such cell: {hint}", row=row, column=column)
