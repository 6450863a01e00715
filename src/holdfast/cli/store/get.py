"""Run ``holdfast store get``: print the value of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.store.arguments import RowCommand, with_row
from holdfast.cli.store.session import on_store_of_tables
from holdfast.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    from holdfast.records import Row, Store, Value

_EPILOG = """\b
Examples:
  holdfast store get sqlite:///var/lib/shop.db stock apples
  holdfast store get sqlite:///var/lib/shop.db scores '["user1", 5]' --row-type json
  holdfast store get sqlite:///var/lib/shop.db images logo --raw > logo.png

Bytes are shown in hexadecimal, and arrays of more than 16 elements by their shape; --json has all of them. The exit
code is 2 if there is no such cell."""


@click.command(cls=RowCommand, epilog=_EPILOG)
@on_store_of_tables
@click.argument("table")
@with_row
@click.option("--column", default="value", show_default=True, help="Column of the cell.")
@click.option("--raw", is_flag=True, help="Print a text or bytes exactly as they are, without a line break.")
def get(store: Store, table: str, row: Row, column: str, raw: bool, out: Output) -> None:
    """Print the value of the cell at ROW in TABLE."""
    from holdfast.cli.store.forms import json_row, json_value, type_name, value_text

    if raw and out.json:
        raise InvalidRequestError("standard output takes the value or the document: leave out --raw or --json")
    value = store.get(table, row, column=column)
    if value is None:
        raise _no_cell(store, table, row, column)
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


def _no_cell(store: Store, table: str, row: Row, column: str) -> NotFoundError:
    from holdfast.cli.store.missing import look_alike

    others = ", ".join(store.transact(lambda cells: cells.columns(table, row)))
    if others:
        hint = f"the row has the columns {others}, see --column"
    else:
        hint = look_alike(store, table, row) or "the table has no such row"
    return NotFoundError(f"there is no such cell: {hint}", row=row, column=column)
