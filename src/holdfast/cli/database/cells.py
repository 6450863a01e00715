"""Run the commands that read and write cells: ``ls``, ``scan``, ``get``, ``put``, ``delete`` and ``history``."""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import Word, filled
from holdfast.cli.command import Run, Shape, Url, argument, command, option
from holdfast.cli.database.arguments import (
    Bounds,
    Column,
    End,
    Key,
    Prefix,
    RowCommand,
    RowType,
    Start,
    Table,
    open_url,
    parse_bounds,
    parse_integer,
    parse_row,
)
from holdfast.cli.screen import in_one_line
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.records import CellTransaction, Database, Row, Value

_TYPES = ("text", "int", "float", "json", "bytes")


# --- several rows -----------------------------------------------------------------------------------------------------
@command(shape=Shape.LINES)
def ls(
    run: Run,
    url: Url,
    table: Annotated[str | None, argument(required=False)],
    prefix: Prefix,
    start: Start,
    end: End,
    row_type: RowType,
    limit: Annotated[int | None, option("-n --limit", "The most rows to list.", type=click.IntRange(min=1))],
) -> None:
    """List the tables at URL, or the rows of TABLE.

    Examples:
      holdfast database ls sqlite:///var/lib/shop.db
      holdfast database ls sqlite:///var/lib/shop.db stock --prefix app
      holdfast database ls shop scores --row-type json --prefix '["user1"]'

    Rows are read and printed page by page, so that the first ones appear at once, whatever the size of the table; each
    page is as the table was when it was read. Rows that are no texts are shown in JSON, and so are texts that look like
    it: the text "3" is not the integer 3.
    """
    from holdfast.cli.database.forms import history_form, history_text, json_row, row_text

    bounds = parse_bounds(prefix, start, end, row_type)
    database = open_url(run, url)
    if table is not None:
        for page in _pages(database, table, bounds, limit):
            for row in page:
                run.out.line({"row": json_row(row)})
                run.out.say(in_one_line(row_text(row)))
        return
    if bounds or limit is not None:
        raise click.UsageError("give a table, whose rows these options choose")
    tables = database.tables()
    for one in tables:
        run.out.line({"table": one.name, "history": history_form(one)})
    if tables:
        run.out.table(["table", "history"], [(one.name, history_text(one)) for one in tables], right=["history"])
    else:
        run.out.say("no tables: make one with holdfast database create")


_FIRST, _MOST = 100, 2000


def _pages(database: Database, table: str, bounds: Bounds, limit: int | None) -> Iterator[list[Row]]:
    """Yield the names of the rows in order, each page from a snapshot of its own.

    So no snapshot lasts while a person reads the output.

    Args:
        limit: the most rows; None for all.
    """
    left, size = limit, _FIRST
    last: Row | None = None
    while left is None or left > 0:
        size = min(2 * size, _MOST)
        wanted = size if left is None else min(size, left)
        with database.snapshot() as snapshot:
            page = list(islice(snapshot.names(table, **bounds, after=last), wanted))
        yield page
        if len(page) < wanted:
            return
        last = page[-1]
        left = None if left is None else left - len(page)


@command(shape=Shape.LINES)
def scan(
    run: Run,
    url: Url,
    table: Table,
    prefix: Prefix,
    start: Start,
    end: End,
    row_type: RowType,
    limit: Annotated[int, option("-n --limit", "The most rows to show.", type=click.IntRange(min=1), default=100)],
) -> None:
    """Show the rows of TABLE with their values.

    Examples:
      holdfast database scan sqlite:///var/lib/shop.db stock --limit 20
      holdfast database scan sqlite:///var/lib/shop.db stock --start a --end b
      holdfast database scan shop stock --json | jq .columns.value

    All rows come from one snapshot. With --json, each row is a line, {"row": …, "columns": {…}}, which keeps the type
    of every value. To read a whole table, use holdfast database export.
    """
    from holdfast.cli.database.forms import row_form, row_text, value_text

    bounds = parse_bounds(prefix, start, end, row_type)
    shown = []
    with open_url(run, url).snapshot() as snapshot:
        rows = snapshot.scan(table, **bounds)
        for row, columns in islice(rows, min(limit, sys.maxsize)):
            if run.out.json:
                run.out.line(row_form(row, columns))
            else:
                shown.append((row_text(row), {name: value_text(value) for name, value in columns.items()}))
        is_more = next(rows, None) is not None
    names = sorted({name for _row, columns in shown for name in columns})
    if shown:
        run.out.table(["row", *names], [[row, *(columns.get(name, "") for name in names)] for row, columns in shown])
    else:
        run.out.say("no rows")
    if is_more:
        run.out.note(f"there are more rows than {limit:,}: see --limit, or holdfast database export")


# --- a cell -----------------------------------------------------------------------------------------------------------
@command(kind=RowCommand)
def get(
    run: Run,
    url: Url,
    table: Table,
    row: Key,
    row_type: RowType,
    column: Column,
    raw: Annotated[bool, option("--raw", "Print a text or bytes exactly as they are, without a line break.")],
) -> None:
    """Print the value of the cell at ROW in TABLE.

    Examples:
      holdfast database get sqlite:///var/lib/shop.db stock apples
      holdfast database get shop scores '["user1", 5]' --row-type json
      holdfast database get sqlite:///var/lib/shop.db images logo --raw > logo.png

    Bytes are shown in hexadecimal, and arrays of more than 16 elements by their shape; --json has all of them. The exit
    code is 2 if there is no such cell.
    """
    from holdfast.cli.database.forms import json_row, json_value, type_name, value_text

    if raw and run.out.json:
        raise InvalidRequestError("standard output takes the value or the document: leave out --raw or --json")
    key = parse_row(row, row_type)
    database = open_url(run, url)
    value = database.get(table, key, column=column)
    if value is None:
        raise _no_cell(database, table, key, column)
    if raw:
        run.out.data(_as_bytes(value))
        return
    about = {"table": table, "row": json_row(key), "column": column}
    run.out.document({**about, "type": type_name(value), "value": json_value(value)})
    run.out.say(in_one_line(value_text(value)))


def _as_bytes(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise InvalidRequestError("only a text or bytes can be printed as they are: leave out --raw, or use --json")


def _no_cell(database: Database, table: str, row: Row, column: str) -> NotFoundError:
    from holdfast.cli.database.forms import look_alike

    others = ", ".join(database.transact(lambda cells: cells.columns(table, row)))
    if others:
        hint = f"the row has the columns {others}, see --column"
    else:
        hint = look_alike(database, table, row) or "the table has no such row"
    return NotFoundError(f"there is no such cell: {hint}", row=row, column=column)


@command(kind=RowCommand)
def put(
    run: Run,
    url: Url,
    table: Table,
    row: Key,
    value: Annotated[str, argument()],
    row_type: RowType,
    column: Column,
    kind: Annotated[str, option("--type", f"{', '.join(_TYPES)}.", type=Word(_TYPES), default="text")],
) -> None:
    """Write VALUE to the cell at ROW in TABLE.

    Examples:
      holdfast database put sqlite:///var/lib/shop.db stock apples 5 --type int
      holdfast database put shop stock apples red --column color
      holdfast database put shop images logo "$(base64 -w0 logo.png)" --type bytes

    A value is a text unless --type says otherwise; a JSON value is a list, a dictionary, true or false, and bytes are
    given in base64. A cell that exists is replaced.
    """
    from holdfast.cli.database.forms import json_row, row_text

    key = parse_row(row, row_type)
    open_url(run, url).put(table, key, _parse(value, kind), column=column)
    run.out.document({"table": table, "row": json_row(key), "column": column, "type": kind})
    run.out.say(f"put {kind} into {table}: {in_one_line(row_text(key))}, {in_one_line(column)}")


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
    from holdfast.records.values import parse_json

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


@command(kind=RowCommand)
def delete(
    run: Run,
    url: Url,
    table: Table,
    row: Key,
    row_type: RowType,
    column: Annotated[str | None, option("--column", "Delete only this cell.", type=filled, metavar="NAME")],
) -> None:
    """Delete ROW from TABLE, or one cell of it.

    Examples:
      holdfast database delete sqlite:///var/lib/shop.db stock apples
      holdfast database delete shop stock apples --column color

    All cells of the row go in one transaction, also those whose values cannot be read. A row that does not exist is no
    error. In a table with history, the earlier values stay in the history.
    """
    from holdfast.cli.database.forms import json_row, look_alike

    key = parse_row(row, row_type)
    database = open_url(run, url)

    def remove(cells: CellTransaction) -> list[str]:
        chosen = [name for name in cells.columns(table, key) if column in (None, name)]
        for name in chosen:
            cells.delete(table, key, column=name)
        return chosen

    deleted = database.transact(remove)
    run.out.document({"table": table, "row": json_row(key), "deleted": deleted})
    run.out.say(f"deleted {counted(len(deleted), 'cell')}" if deleted else "there was nothing to delete")
    if not deleted and (hint := look_alike(database, table, key)):
        run.out.note(hint)


@command(kind=RowCommand)
def history(run: Run, url: Url, table: Table, row: Key, row_type: RowType, column: Column) -> None:
    """Show the earlier values of the cell at ROW in TABLE.

    Examples:
      holdfast database history sqlite:///var/lib/shop.db prices apples
      holdfast database history shop prices apples --json | jq '.history[-1]'

    Each write of a cell has the next update counter, also a deletion. The oldest value that the table keeps comes
    first, the present one last.
    """
    from holdfast.cli.database.forms import json_row, json_value, look_alike, type_name, value_text

    key = parse_row(row, row_type)
    database = open_url(run, url)
    found = database.history(table, key, column=column)
    entries = [
        {"counter": counter, "deleted": value is None}
        | ({} if value is None else {"type": type_name(value), "value": json_value(value)})
        for counter, value in found
    ]
    run.out.document({"table": table, "row": json_row(key), "column": column, "history": entries})
    if found:
        lines = [
            (str(counter), "deleted" if value is None else type_name(value), "" if value is None else value_text(value))
            for counter, value in found
        ]
        run.out.table(["counter", "type", "value"], lines, right=["counter"])
        return
    run.out.say("the cell was never written")
    if hint := look_alike(database, table, key):
        run.out.note(hint)
