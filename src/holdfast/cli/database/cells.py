"""Run the commands that read and write cells: ``ls``, ``scan``, ``get``, ``put`` and ``delete``."""

from __future__ import annotations

import base64
import math
import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import click

from holdfast.cli.arguments import WordChoice, refuse_empty_value
from holdfast.cli.command import CommandRun, OutputForm, Url, argument, command, option
from holdfast.cli.database import rows
from holdfast.cli.database.rows import Key, RowType, Table, open_given_database
from holdfast.cli.output import ResultColumn, to_documents
from holdfast.cli.screen import escape_to_one_line
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.wording import format_count

if TYPE_CHECKING:
    from holdfast.records import CellTransaction, Database, Row, Value

_TYPES = ("text", "int", "float", "json", "bytes")
_MOST_SHOWN = 100
_PREFIX = option("--prefix", "Only rows that begin so.", metavar="ROW", type=refuse_empty_value)
_START = option("--start", "The first row.", metavar="ROW", type=refuse_empty_value)
_END = option("--end", "The row before which to stop.", metavar="ROW", type=refuse_empty_value)
_LIMIT = option("-n --limit", "The most rows.  [default: 100; with --json all]", type=click.IntRange(min=1))
ColumnName = Annotated[str, option("--column", "Column of the cell.", default="value")]


# --- several rows -----------------------------------------------------------------------------------------------------
@command(shape=OutputForm.LINES)
def ls(run: CommandRun, url: Url) -> None:
    """List the tables at URL.

    Examples:
      holdfast database ls sqlite:///var/lib/shop.db
      holdfast database ls shop --json

    holdfast database scan shows the rows of a table, and stats counts them.
    """
    columns = (
        ResultColumn("table", "table", lambda one: one.name),
        ResultColumn("history", None, rows.history_limit),
        ResultColumn("", "history", rows.history_text),
    )
    run.out.lines(
        columns, open_given_database(run, url).tables(), nothing="no tables: make one with holdfast database create"
    )


@command(shape=OutputForm.LINES)
def scan(
    run: CommandRun,
    url: Url,
    table: Table,
    prefix: Annotated[str | None, _PREFIX],
    start: Annotated[str | None, _START],
    end: Annotated[str | None, _END],
    row_type: RowType,
    limit: Annotated[int | None, _LIMIT],
) -> None:
    """Show the rows of TABLE with their values.

    Examples:
      holdfast database scan sqlite:///var/lib/shop.db stock --limit 20
      holdfast database scan sqlite:///var/lib/shop.db stock --start a --end b
      holdfast database scan shop stock --json > stock.jsonl

    All rows come from one snapshot, and writers do not wait. With --json, each row is a line, {"row": …, "columns":
    {…}}, which keeps the type of every value, and the whole table is printed. Row keys that are not text are shown
    in JSON, and so is text that looks like JSON: the text "3" is not the integer 3.
    """
    given = {"prefix": prefix, "start": start, "end": end}
    if prefix is not None and (start is not None or end is not None):
        raise click.UsageError("give --prefix, or --start and --end, not both")
    bounds: dict[str, Any] = {
        name: rows.parse_row(text, row_type, is_prefix=name == "prefix")
        for name, text in given.items()
        if text is not None
    }
    if limit is None and not run.out.json:
        limit = _MOST_SHOWN
    shown = []
    with open_given_database(run, url).snapshot() as snapshot:
        found = snapshot.scan(table, **bounds)
        for row, columns in islice(found, None if limit is None else min(limit, sys.maxsize)):
            if run.out.json:
                run.out.line(rows.json_row_with_values(row, columns))
            else:
                shown.append(
                    (rows.format_row_key(row), {name: rows.format_cell_value(value) for name, value in columns.items()})
                )
        is_more = next(found, None) is not None
    names = sorted({name for _row, columns in shown for name in columns})
    if shown:
        run.out.table(["row", *names], [[row, *(columns.get(name, "") for name in names)] for row, columns in shown])
    else:
        run.out.say("no rows")
    if is_more:
        run.out.note(f"there are more rows than {limit:,}: see --limit, or --json for all")


# --- a cell -----------------------------------------------------------------------------------------------------------
@command(takes_hyphens=True)
def get(
    run: CommandRun,
    url: Url,
    table: Table,
    row: Key,
    row_type: RowType,
    column: ColumnName,
    raw: Annotated[bool, option("--raw", "Print a text or bytes exactly as they are, without a line break.")],
    history: Annotated[bool, option("--history", "Show the earlier values too, the oldest first.")],
) -> None:
    """Print the value of the cell at ROW in TABLE.

    Examples:
      holdfast database get sqlite:///var/lib/shop.db stock apples
      holdfast database get shop scores '["user1", 5]' --row-type json
      holdfast database get sqlite:///var/lib/shop.db images logo --raw > logo.png
      holdfast database get shop prices apples --history

    Bytes are shown in hexadecimal, and arrays of more than 16 elements by their shape; --json has all of them. The exit
    code is 2 if there is no such cell. In a history, the writes of the cell, deletions included, are numbered.
    """
    if raw and (run.out.json or history):
        raise InvalidRequestError("standard output takes the value alone: leave out --raw, or --json and --history")
    key = rows.parse_row(row, row_type)
    database = open_given_database(run, url)
    about = {"table": table, "row": rows.row_key_to_json(key), "column": column}
    if history:
        found = database.history(table, key, column=column)
        if not found:
            raise _missing_cell_error(database, table, key, column)
        run.out.document({**about, "history": to_documents(_VERSION, found)})
        run.out.show(_VERSION, found)
        return
    value = database.get(table, key, column=column)
    if value is None:
        raise _missing_cell_error(database, table, key, column)
    if raw:
        run.out.data(_value_to_bytes(value))
        return
    run.out.document({**about, "type": rows.type_name(value), "value": rows.cell_value_to_json(value)})
    run.out.say(escape_to_one_line(rows.format_cell_value(value)))


_VERSION = (
    ResultColumn("counter", "counter", lambda one: one[0]),
    ResultColumn("deleted", None, lambda one: one[1] is None),
    ResultColumn(
        "type", "type", lambda one: None if one[1] is None else rows.type_name(one[1]), lambda name: name or "deleted"
    ),
    ResultColumn("value", None, lambda one: None if one[1] is None else rows.cell_value_to_json(one[1])),
    ResultColumn("", "value", lambda one: "" if one[1] is None else rows.format_cell_value(one[1])),
)


def _value_to_bytes(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise InvalidRequestError("only a text or bytes can be printed as they are: leave out --raw, or use --json")


def _missing_cell_error(database: Database, table: str, row: Row, column: str) -> NotFoundError:
    others = ", ".join(database.transact(lambda cells: cells.columns(table, row)))
    if others:
        hint = f"the row has the columns {others}, see --column"
    else:
        hint = rows.hint_at_row_of_other_type(database, table, row) or "the table has no such row"
    return NotFoundError(f"there is no such cell: {hint}", row=row, column=column)


@command(takes_hyphens=True)
def put(
    run: CommandRun,
    url: Url,
    table: Table,
    row: Key,
    value: Annotated[str, argument()],
    row_type: RowType,
    column: ColumnName,
    kind: Annotated[str, option("--type", f"{', '.join(_TYPES)}.", type=WordChoice(_TYPES), default="text")],
) -> None:
    """Write VALUE to the cell at ROW in TABLE.

    Examples:
      holdfast database put sqlite:///var/lib/shop.db stock apples 5 --type int
      holdfast database put shop stock apples red --column color
      holdfast database put shop images logo "$(base64 -w0 logo.png)" --type bytes

    A value is a text unless --type says otherwise; a JSON value is a list, a dictionary, true or false, and bytes are
    given in base64. A cell that exists is replaced.
    """
    key = rows.parse_row(row, row_type)
    open_given_database(run, url).put(table, key, _parse_value(value, kind), column=column)
    run.out.document({"table": table, "row": rows.row_key_to_json(key), "column": column, "type": kind})
    run.out.say(
        f"put {kind} into {table}: {escape_to_one_line(rows.format_row_key(key))}, {escape_to_one_line(column)}"
    )


def _parse_value(text: str, kind: str) -> Value:
    if kind == "text":
        return text
    if kind == "int":
        return rows.parse_integer(text, "value")
    if kind == "float":
        return _parse_float(text)
    if kind == "bytes":
        try:
            return base64.b64decode(text, validate=True)
        except ValueError as error:
            raise InvalidRequestError("the value is not base64: encode the bytes with base64 -w0") from error
    from holdfast.records.values import parse_json

    return parse_json(text)


def _parse_float(text: str) -> float:
    """Return the float that a text is; an infinity only for a text that says so."""
    try:
        number = float(text)
    except ValueError as error:
        raise InvalidRequestError("the value is not a float: write one such as 1.5", given=text) from error
    if math.isinf(number) and "inf" not in text.lower():
        raise InvalidRequestError(
            "the value is too large for a float: store it as a text, or as an int", given=escape_to_one_line(text)
        )
    return number


@command(takes_hyphens=True)
def delete(
    run: CommandRun,
    url: Url,
    table: Table,
    row: Key,
    row_type: RowType,
    column: Annotated[
        str | None, option("--column", "Delete only this cell.", type=refuse_empty_value, metavar="NAME")
    ],
) -> None:
    """Delete ROW from TABLE, or one cell of it.

    Examples:
      holdfast database delete sqlite:///var/lib/shop.db stock apples
      holdfast database delete shop stock apples --column color

    All cells of the row go in one transaction, also those whose values cannot be read. A row that does not exist is no
    error. In a table with history, the earlier values stay in the history.
    """
    key = rows.parse_row(row, row_type)
    database = open_given_database(run, url)

    def delete_cells(cells: CellTransaction) -> list[str]:
        chosen = [name for name in cells.columns(table, key) if column in (None, name)]
        for name in chosen:
            cells.delete(table, key, column=name)
        return chosen

    deleted = database.transact(delete_cells)
    run.out.document({"table": table, "row": rows.row_key_to_json(key), "deleted": deleted})
    run.out.say(f"deleted {format_count(len(deleted), 'cell')}" if deleted else "there was nothing to delete")
    if not deleted and (hint := rows.hint_at_row_of_other_type(database, table, key)):
        run.out.note(hint)
