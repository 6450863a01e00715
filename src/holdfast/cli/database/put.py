"""Run ``holdfast database put``: write a cell."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Word
from holdfast.cli.database.arguments import RowCommand, parse_integer, with_row
from holdfast.cli.database.session import on_database
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.errors import InvalidRequestError
from holdfast.records.json_text import parse_json

if TYPE_CHECKING:
    from holdfast.records import Database, Row, Value

_EPILOG = """\b
Examples:
  holdfast database put sqlite:///var/lib/shop.db stock apples 5 --type int
  holdfast database put sqlite:///var/lib/shop.db stock apples red --column color
  holdfast database put sqlite:///var/lib/shop.db images logo "$(base64 -w0 logo.png)" --type bytes

A value is a text unless --type says otherwise; a JSON value is a list, a dictionary, true or false, and bytes are given
in base64. A cell that exists is replaced."""

_TYPES = ("text", "int", "float", "json", "bytes")


@click.command(cls=RowCommand, epilog=_EPILOG)
@on_database
@click.argument("table")
@with_row
@click.argument("value")
@click.option("--column", default="value", show_default=True, help="Column of the cell.")
@click.option("--type", "kind", type=Word(_TYPES), default="text", show_default=True, help=f"{', '.join(_TYPES)}.")
def put(database: Database, table: str, row: Row, value: str, column: str, kind: str, out: Output) -> None:
    """Write VALUE to the cell at ROW in TABLE."""
    from holdfast.cli.database.forms import json_row, row_text

    database.put(table, row, _parse(value, kind), column=column)
    out.document({"table": table, "row": json_row(row), "column": column, "type": kind})
    out.say(f"put {kind} into {table}: {in_one_line(row_text(row))}, {in_one_line(column)}")


def _parse(text: str, kind: str) -> Value:
    if kind == "text":
        return text
    if kind == "int":
        return parse_integer(text, "value")
    if kind == "float":
        return _parse_float(text)
    if kind == "bytes":
        try:
            return base64.b64decode(text, validate=True)
        except ValueError as error:
            raise InvalidRequestError("the value is no base64: encode the bytes with base64 -w0") from error
    return parse_json(text)


def _parse_float(text: str) -> float:
    """Return the float that a text is; an infinity only for a text that says so."""
    try:
        number = float(text)
    except ValueError as error:
        raise InvalidRequestError("the value is no float: write one such as 1.5", given=text) from error
    if math.isinf(number) and "inf" not in text.lower():
        raise InvalidRequestError(
            "the value is too large for a float: store it as a text, or as an int", given=in_one_line(text)
        )
    return number
