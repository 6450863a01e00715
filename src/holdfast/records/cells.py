"""Define the records of cells: what they hold, how writes change them, and how to read values and rows from them.

In a table without history, the record of a cell is the encoded value, and its number is what was added to it. In a
table with history it begins with the update counter (8 bytes); a deleted cell keeps its counter, without a value.

Source: paper 003 (4.1): cells are row : column : update counter, and a write is appended with the next counter.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import TypeAlias, TypeVar

from holdfast.errors import CorruptDataError, HoldfastError, InvalidRequestError
from holdfast.records.batches import iter_records
from holdfast.records.keys import (
    CELL,
    cell_key,
    cells_range,
    column_bytes,
    parse_cell_key,
    row_prefix,
    table_histories_range,
)
from holdfast.records.row_keys import Row, end_of_prefix, prefix_range, to_python_integer
from holdfast.records.tables import Table
from holdfast.records.values import Value, decode_value, encode_integer, encoded_type_name
from holdfast.transactions.base import ABSENT, Record, SnapshotReader, takes_adds
from holdfast.transactions.transaction import Transaction

VALUE = "value"
"""The column that is meant if none is named."""

_COUNTER = Struct(">Q")
E = TypeVar("E", bound=HoldfastError)


@dataclass(frozen=True, slots=True)
class PutWrite:
    """A write that replaces a record's bytes, and sets its number to 0."""

    value: bytes


@dataclass(frozen=True, slots=True)
class DeleteWrite:
    """A write that deletes a record."""


DELETED = DeleteWrite()

Write: TypeAlias = "PutWrite | DeleteWrite | int"
"""The outcome for a record; an integer is added to its number."""


def merge_writes(before: Write | None, write: Write) -> Write:
    """Return the single write to a record that has the same effect as two writes, `before` and then `write`.

    Raises:
        InvalidRequestError: a number is added to a value that is no integer.
    """
    if not isinstance(write, int) or before is None:
        return write
    if isinstance(before, int):
        return before + write
    if isinstance(before, DeleteWrite):
        return PutWrite(encode_integer(write))
    _require_integer(before.value)
    total = decode_value(before.value, write)
    assert isinstance(total, int), "an integer, and a number"
    return PutWrite(encode_integer(total))


def _require_integer(encoded: bytes) -> None:
    if not takes_adds(encoded):
        raise InvalidRequestError(
            "only an integer can be added to: put a new value instead", type=encoded_type_name(encoded)
        )


def record_after_write(record: Record | None, write: Write | None) -> Record | None:
    """Return a record as it is after a write; None if it is deleted or absent.

    Raises:
        InvalidRequestError: a number is added to a value that is no integer: the commit will refuse it, too.
    """
    if isinstance(write, PutWrite):
        return Record(ABSENT, write.value)
    if isinstance(write, DeleteWrite):
        return None
    if write is None:
        return record
    if record is None:
        return Record(ABSENT, b"", write)
    _require_integer(record.value)
    return Record(ABSENT, record.value, record.number + write)


def apply_writes(writes: Mapping[bytes, Write], transaction: Transaction) -> None:
    """Carry out writes of records, given by key, in a transaction."""
    for key, write in writes.items():
        if isinstance(write, PutWrite):
            transaction.put(key, write.value)
        elif isinstance(write, DeleteWrite):
            transaction.delete(key)
        else:
            transaction.add(key, write)


def encode_with_counter(counter: int, encoded: bytes) -> bytes:
    """Return the value of a cell's record in a table with history: the update counter, then the encoded value.

    Args:
        encoded: empty for a deleted cell.
    """
    return _COUNTER.pack(counter) + encoded


def split_update_counter(record: Record | None) -> tuple[int, Record | None]:
    """Split the record of a cell in a table with history into its update counter and the record of the value.

    The record of the value is None if the cell is deleted or absent.

    Raises:
        CorruptDataError: the record has no counter.
    """
    if record is None:
        return 0, None
    if len(record.value) < _COUNTER.size:
        raise CorruptDataError("a cell with history has no update counter: keep the database and report it")
    encoded = record.value[_COUNTER.size :]
    return int(_COUNTER.unpack_from(record.value)[0]), Record(record.version, encoded) if encoded else None


def parse_limit(given: int | None) -> int | None:
    """Check the limit of a scan, and return it as a plain integer; None for no limit.

    Raises:
        InvalidRequestError: the limit is less than 1, or is no integer of 63 bits.
    """
    limit = to_python_integer(given)
    if given is not None and (limit is None or not 1 <= limit <= sys.maxsize):
        raise InvalidRequestError("the limit of a scan is a number of rows, from 1: change it", limit=given)
    return limit


def rows_range(
    table: Table,
    start: Row | None = None,
    end: Row | None = None,
    prefix: Row | None = None,
    after: Row | None = None,
) -> tuple[bytes, bytes]:
    """Return the range of keys, from a start to an end, of the cells of some rows of a table.

    Args:
        start, end, prefix, after: see `DatabaseSnapshot.scan`.

    Raises:
        InvalidRequestError: a prefix is given, and a start or an end too.
    """
    first, last = cells_range(table.id)
    if prefix is not None:
        if start is not None or end is not None:
            raise InvalidRequestError("a scan has a prefix, or a start and an end: leave one of them out")
        low, high = prefix_range(prefix)
        first, last = first + low, first + high
    if start is not None:
        first = row_prefix(table.id, start)
    if end is not None:
        last = row_prefix(table.id, end)
    if after is not None:  # no column begins with this byte
        first = max(first, row_prefix(table.id, after) + b"\xff")
    return first, last


def decode_cell_value(key: bytes, record: Record) -> Value:
    """Decode the value of a cell from the key and the record of the value.

    Raises:
        HoldfastError: see `decode_value`; the message names the row and the column.
    """
    try:
        return decode_value(record.value, record.number)
    except HoldfastError as error:
        raise with_cell_named(error, key) from error  # a cell that is in order needs no decoded key


def decode_known_cell_value(record: Record, row: Row, column: str) -> Value:
    """Decode the value of a cell of a row and column that are known already.

    Raises:
        HoldfastError: see `decode_cell_value`.
    """
    try:
        return decode_value(record.value, record.number)
    except HoldfastError as error:
        raise type(error)(error.message, row=row, column=column, **error.variables) from error


def strip_update_counter(table: Table, key: bytes, stored: Record) -> Record | None:
    """Return the record of a cell's value, without the update counter of a table with history; None if it is deleted.

    Raises:
        CorruptDataError: see `split_update_counter`; the message names the row and the column.
    """
    if not table.history:
        return stored
    try:
        return split_update_counter(stored)[1]
    except HoldfastError as error:
        raise with_cell_named(error, key) from error


def with_cell_named(error: E, key: bytes | None = None) -> E:
    """Convert an error about a record's key into one that names the row and the column of the cell.

    Args:
        key: the key of the record; by default, the one in the error's variables, if any.
    """
    rest = dict(error.variables)
    named = key or rest.pop("key", None)
    if not isinstance(named, bytes) or not named.startswith(CELL):
        return error
    row, column = parse_cell_key(named)
    return type(error)(error.message, row=row, column=column, **rest)


def decode_rows(table: Table, cells: Iterable[tuple[bytes, Record]]) -> Iterator[tuple[Row, dict[str, Value]]]:
    """Yield rows with their values by column, given the keys and records of cells in order; without deleted cells."""
    for row, columns in group_rows(table, cells):
        yield row, {column: decode_known_cell_value(record, row, column) for column, record in columns.items()}


def group_rows(table: Table, cells: Iterable[tuple[bytes, Record]]) -> Iterator[tuple[Row, dict[str, Record]]]:
    """Yield rows with their encoded values by column, given the keys and records of cells in order.

    Deleted cells are left out.
    """
    row: Row | None = None
    columns: dict[str, Record] = {}
    for key, stored in cells:
        record = strip_update_counter(table, key, stored)
        if record is None:
            continue
        found, column = parse_cell_key(key)
        if columns and found != row and row is not None:
            yield row, columns
            columns = {}
        row = found
        columns[column] = record
    if columns and row is not None:
        yield row, columns


class CellReader(ABC):
    """Reads cells of tables as of one snapshot or one transaction.

    Subclasses define `_table`, `_stored` and `_cells`.
    """

    def get(self, table: str, row: Row, *, column: str = VALUE, default: Value | None = None) -> Value | None:
        """Return the value of a cell, or `default` if it does not exist."""
        definition = self._table(table)
        key = cell_key(definition.id, row, column_bytes(column))
        record = self._get_cells(definition, [key]).get(key)
        return default if record is None else decode_cell_value(key, record)

    def get_many(self, table: str, rows: Iterable[Row], *, column: str = VALUE) -> dict[Row, Value]:
        """Return the values of those rows that have the column, by row, in one round trip."""
        definition, name = self._table(table), column_bytes(column)
        keys: dict[Row, bytes] = {}
        for row in rows:
            keys[row] = cell_key(definition.id, row, name)
            self._check(len(keys))
        found = self._get_cells(definition, keys.values())
        return {row: decode_cell_value(key, found[key]) for row, key in keys.items() if key in found}

    def get_row(self, table: str, row: Row) -> dict[str, Value]:
        """Return the values of a row by column."""
        definition = self._table(table)
        return next((columns for _row, columns in decode_rows(definition, self._cells_of_row(definition, row))), {})

    def columns(self, table: str, row: Row) -> list[str]:
        """Return the names of the columns of a row, including those whose values cannot be read."""
        definition = self._table(table)
        found = group_rows(definition, self._cells_of_row(definition, row))
        return [column for _row, columns in found for column in columns]

    def _cells_of_row(self, table: Table, row: Row) -> Iterator[tuple[bytes, Record]]:
        prefix = row_prefix(table.id, row)
        return self._cells(table, prefix, end_of_prefix(prefix))

    def _get_cells(self, table: Table, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Return those cells that exist."""
        found = self._stored(keys)
        if not table.history:
            return found
        heads = ((key, strip_update_counter(table, key, stored)) for key, stored in found.items())
        return {key: record for key, record in heads if record is not None}

    def _check(self, reads: int) -> None:  # noqa: B027  # a snapshot has no limit
        """Check that so many cells may be read."""

    @abstractmethod
    def _table(self, name: str) -> Table:
        """Return a table."""

    @abstractmethod
    def _stored(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Return those records that exist."""

    @abstractmethod
    def _cells(
        self, table: Table, first: bytes, last: bytes, limit: int | None = None
    ) -> Iterator[tuple[bytes, Record]]:
        """Return the cells in a range, in the order of their keys; the caller takes no more than this many rows."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """The number of rows and cells of a table, and the size of its records.

    Attributes:
        versions: earlier and present values in the history; 0 without a history.
        size_bytes: size of the keys and values of all its records, without the database's overhead.
    """

    rows: int
    cells: int
    versions: int
    size_bytes: int


def measure_table_size(reader: SnapshotReader, table: Table) -> TableSize:
    """Count the rows, cells and bytes of a table. It reads the whole table, page by page."""
    rows = cells = size_bytes = 0
    row = b""
    for key, record in iter_records(reader, *cells_range(table.id)):
        size_bytes += len(key) + len(record.value)
        if table.history and split_update_counter(record)[1] is None:
            continue  # deleted; its counter is kept
        cells += 1
        found = key[: key.rindex(b"\0")]  # no column has a zero byte
        if found != row:
            rows += 1
            row = found
    versions = 0
    for key, record in iter_records(reader, *table_histories_range(table.id)) if table.history else ():
        versions += 1
        size_bytes += len(key) + len(record.value)
    return TableSize(rows, cells, versions, size_bytes)
