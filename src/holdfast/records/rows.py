"""Put cells together into rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.records.cells import Content, split_head
from holdfast.records.integers import integer_of
from holdfast.records.keys import cell_of, cells_range, row_prefix
from holdfast.records.kinds import CELL
from holdfast.records.paging import read_records
from holdfast.records.row_keys import Row, prefix_range
from holdfast.records.tables import Table
from holdfast.records.values import Value
from holdfast.transactions.base import SnapshotReader


def limit_of(given: int | None) -> int | None:
    """Return the limit of a scan as a plain integer.

    Raises:
        InvalidRequestError: it leaves no row, or is no integer of 63 bits.
    """
    if given is None:
        return None
    limit = integer_of(given)
    if limit is None or limit > sys.maxsize:
        raise InvalidRequestError("the limit of a scan is a number of rows: change it, or pass none", limit=given)
    if limit < 1:
        raise InvalidRequestError("a scan returns at least one row: pass a larger limit, or none", limit=limit)
    return limit


def rows_range(
    table: Table, start: Row | None = None, end: Row | None = None, prefix: Row | None = None
) -> tuple[bytes, bytes]:
    """Return the range of the cells of some rows.

    Raises:
        InvalidRequestError: a prefix is given, and a start or an end too.
    """
    first, last = cells_range(table.id)
    if prefix is not None:
        if start is not None or end is not None:
            raise InvalidRequestError("a scan has a prefix, or a start and an end: leave one of them out")
        start_of_rows, end_of_rows = prefix_range(prefix)
        return first + start_of_rows, first + end_of_rows
    return (
        first if start is None else row_prefix(table.id, start),
        last if end is None else row_prefix(table.id, end),
    )


def after_row(table: Table, row: Row) -> bytes:
    """Return a key behind all cells of a row, and before those of the next row: no column begins with this byte."""
    return row_prefix(table.id, row) + b"\xff"


def read_cells(reader: SnapshotReader, first: bytes, last: bytes) -> Iterator[tuple[bytes, Content]]:
    """Read a range of cells page by page."""
    for key, record in read_records(reader, first, last):
        yield key, Content(record.value, record.number)


def value_of(key: bytes, content: Content) -> Value:
    """Return the value of a cell.

    Raises:
        HoldfastError: see `decode_value`; the message names the row and the column.
    """
    try:
        return content.value()
    except HoldfastError as error:
        raise _named(error, *cell_of(key)) from error  # a cell that is in order needs no decoded key


def read_value(content: Content, row: Row, column: str) -> Value:
    """Return the value of a cell whose key is decoded.

    Raises:
        HoldfastError: see `value_of`.
    """
    try:
        return content.value()
    except HoldfastError as error:
        raise _named(error, row, column) from error


def present_value(table: Table, key: bytes, stored: Content) -> Value | None:
    """Return the value in the record of a cell; None if the cell is deleted.

    Raises:
        HoldfastError: see `value_of`.
    """
    content = _present(table, key, stored)
    return None if content is None else value_of(key, content)


def _present(table: Table, key: bytes, stored: Content) -> Content | None:
    if not table.history:
        return stored
    try:
        return split_head(stored)[1]
    except HoldfastError as error:
        raise _named(error, *cell_of(key)) from error


def naming_cell(error: InvalidRequestError, key: bytes | None = None) -> InvalidRequestError:
    """Return an error about a record as one about its cell, for people.

    Args:
        key: of the record; without it, the error names the key, if it is about a record.
    """
    rest = dict(error.variables)
    named = key or rest.pop("key", None)
    if not isinstance(named, bytes) or not named.startswith(CELL):
        return error
    row, column = cell_of(named)
    return type(error)(error.message, row=row, column=column, **rest)


def _named(error: HoldfastError, row: Row, column: str) -> HoldfastError:
    return type(error)(error.message, row=row, column=column, **error.variables)


def rows_of(table: Table, cells: Iterable[tuple[bytes, Content]]) -> Iterator[tuple[Row, dict[str, Value]]]:
    """Yield rows with their values by column, given cells in the order of their keys; deleted cells are left out."""
    for row, contents in contents_of(table, cells):
        yield row, {column: read_value(content, row, column) for column, content in contents.items()}


def contents_of(table: Table, cells: Iterable[tuple[bytes, Content]]) -> Iterator[tuple[Row, dict[str, Content]]]:
    """Yield rows like `rows_of`, with their values still encoded."""
    row: Row | None = None
    columns: dict[str, Content] = {}
    for key, stored in cells:
        content = _present(table, key, stored)
        if content is None:
            continue
        found, column = cell_of(key)
        if columns and found != row and row is not None:
            yield row, columns
            columns = {}
        row = found
        columns[column] = content
    if columns and row is not None:
        yield row, columns
