"""Read and write cells in a transaction, which several units of work may share.

`CellTransaction` is the computation database of paper 003 (4.3): it keeps what was read, with versions, and what is
written, and serves reads from both. Several units can share one: each sees what those before it wrote, and a unit that
fails takes only its own writes with it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.records.cells import (
    DELETED,
    VALUE,
    CellReader,
    DeleteWrite,
    PutWrite,
    Write,
    decode_rows,
    encode_with_counter,
    merge_writes,
    parse_limit,
    record_after_write,
    rows_range,
    split_update_counter,
    with_cell_named,
)
from holdfast.records.keys import cell_key, column_bytes, history_key
from holdfast.records.row_keys import Row, to_python_integer
from holdfast.records.tables import Table
from holdfast.records.values import Value, encode_integer, encode_value
from holdfast.transactions.base import MAX_NUMBER, Commit, Record, takes_adds

T = TypeVar("T")

_LARGEST_PAGE = 4096


class TransactionReader(Protocol):
    """Reads records for a transaction, so that they are unchanged when it commits.

    The versions are kept and validated (`holdfast.transactions.transaction.Transaction`), or the records are locked.
    """

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Record]:
        """Return the existing records of `keys`; a second read of one returns the first result."""
        ...

    def scan(self, start: bytes, end: bytes, limit: int | None, *, guard: bytes) -> list[tuple[bytes, Record]]:
        """Return the first `limit` records of a range, which no other transaction changes before the commit."""
        ...

    def to_validation(self) -> Commit:
        """Return a commit that writes nothing, and is valid only if everything that was read is unchanged."""
        ...


def too_many_reads_error(most: int) -> InvalidRequestError:
    """Return the error for a unit of work that reads more than `most` cells."""
    return InvalidRequestError(
        "the unit reads more cells than it may: read fewer, or raise the limit max_reads", max_reads=most
    )


class CellTransaction(CellReader):
    """A transaction over cells of tables, shared by units of work: its reads and writes take effect together.

    Guarantee: what it reads, apart from its own writes, was true at one instant if the commit succeeds. Until then a
    function may see records that never existed together: its loops must end even so.

    The instance belongs to one thread of one process. After `end`, or in a forked child, where what it writes would
    never be committed, every call is refused.

    Args:
        tables: returns a table by its name.
        most_reads: how many records one unit of work may read.
    """

    def __init__(
        self, read_set: TransactionReader, tables: Callable[[str], Table], most_reads: int | None = None
    ) -> None:
        self._read_set = read_set
        self._tables = tables
        self._most_reads = most_reads
        self._no_integers: set[bytes] = set()  # records that were read
        self._pid = os.getpid()
        self._is_over = False
        self._reads = 0  # of the unit that runs
        self._all_reads = 0
        self._used: dict[str, Table] = {}
        self._required: dict[bytes, int] = {}
        self._shared: dict[bytes, Write] = {}  # of the units that have ended
        self._bytes = 0  # of their values
        self._own: dict[bytes, Write] = {}  # of the unit that runs

    # --- reads --------------------------------------------------------------------------------------------------------
    def scan(
        self,
        table: str,
        *,
        start: Row | None = None,
        end: Row | None = None,
        prefix: Row | None = None,
        limit: int | None = None,
    ) -> list[tuple[Row, dict[str, Value]]]:
        """Return rows of a table in order, each with its values by column.

        Guarantee: when the commit takes effect, the range holds these rows and no others.

        Args:
            start, end: the first row, and the first row that is not returned any more.
            prefix: only rows that begin with this text, these bytes, or these parts of a tuple.
            limit: the most rows to return.
        """
        limit = parse_limit(limit)
        definition = self._table(table)
        first, last = rows_range(definition, start, end, prefix)
        return list(islice(decode_rows(definition, self._cells(definition, first, last, limit)), limit))

    # --- writes -------------------------------------------------------------------------------------------------------
    def put(self, table: str, row: Row, value: Value, *, column: str = VALUE) -> None:
        """Write a cell, whether it exists or not."""
        self.put_encoded(table, row, encode_value(value), column=column)

    def put_encoded(self, table: str, row: Row, encoded: bytes, *, column: str = VALUE) -> None:
        """Write a cell with a value that `encode_value` has encoded already."""
        definition = self._table(table)
        self._put_cell(definition, cell_key(definition.id, row, column_bytes(column)), encoded)

    def add(self, table: str, row: Row, amount: int = 1, *, column: str = VALUE) -> None:
        """Add to the integer in a cell; a cell that does not exist counts as 0.

        Adds of several transactions do not conflict with each other, unless the table has a history.

        Raises:
            InvalidRequestError: the amount is no integer; or the cell holds no integer, and the transaction has read or
                written the cell. If it has not, the commit is refused instead.
        """
        number = to_python_integer(amount)
        if number is None or not -MAX_NUMBER <= number <= MAX_NUMBER:
            raise InvalidRequestError(
                f"an amount is an integer of at most {MAX_NUMBER}: put a float, or the sum", type=type(amount).__name__
            )
        definition = self._table(table)
        key = cell_key(definition.id, row, column_bytes(column))
        if definition.history:
            _counter, record = self._read_counter(key)
            base = PutWrite(encode_integer(0) if record is None else record.value)
            total = merge_writes(base, number)
            assert isinstance(total, PutWrite), "a value, and a number"
            self._put_cell(definition, key, total.value)
            return
        before = self._write(key)
        if key in self._no_integers and not isinstance(before, PutWrite | DeleteWrite):
            raise InvalidRequestError("only an integer can be added to: put a new value instead", table=table, row=row)
        self._own[key] = merge_writes(before, number)

    def delete(self, table: str, row: Row, *, column: str = VALUE) -> None:
        """Delete a cell, if it exists."""
        definition = self._table(table)
        key = cell_key(definition.id, row, column_bytes(column))
        if not definition.history:
            self._own[key] = DELETED
        elif self._read_counter(key)[1] is not None:
            self._put_cell(definition, key, b"")

    def put_record(self, key: bytes, value: bytes | None) -> None:
        """Write a record that is no cell, such as a table's definition, by its key; None deletes it."""
        self._require_open_transaction()
        self._own[key] = DELETED if value is None else PutWrite(value)

    def require_version(self, key: bytes, version: int) -> None:
        """Require at the commit that a record that is no cell still has a version; otherwise the commit conflicts."""
        self._required[key] = version

    # --- units --------------------------------------------------------------------------------------------------------
    def prefetch(self, keys: Iterable[bytes]) -> None:
        """Read the records of cells (`cell_key`) that several units will need, in one round trip."""
        self._read_set.get_many([key for key in keys if not isinstance(self._write(key), PutWrite)])

    def cell_key(self, table: str, row: Row, column: str = VALUE) -> bytes:
        """Return the key of the record of a cell, for `prefetch`."""
        return cell_key(self._table(table).id, row, column_bytes(column))

    def end_unit(self) -> None:
        """End the present unit of work and keep its writes for the commit; later calls belong to the next."""
        shared = self._shared
        for key, write in self._own.items():
            self._bytes += _write_size(write) - _write_size(shared.get(key))
            shared[key] = write
        self.drop_unit()

    def drop_unit(self) -> None:
        """End the present unit of work and drop its writes; later calls belong to the next."""
        self._own.clear()
        self._reads = 0

    def end(self) -> None:
        """Refuse further calls, which would write what is never committed."""
        self._is_over = True

    @property
    def writes(self) -> Mapping[bytes, Write]:
        """Return the writes of the units that have ended, by key of the record."""
        return self._shared

    @property
    def written_bytes(self) -> int:
        """Return the total size of the values that finished units of work have put."""
        return self._bytes

    @property
    def reads(self) -> int:
        """Return how many cells all units have read."""
        return self._all_reads

    # --- the end ------------------------------------------------------------------------------------------------------
    def to_validation(self) -> Commit:
        """Return a commit that writes nothing, and only checks whether everything that was read is still true."""
        commit = self._read_set.to_validation()
        return replace(commit, reads={**commit.reads, **self._list_required_versions()})

    def to_commit(self) -> Commit:
        """Return the reads and writes of all units that have ended as a `Commit`, to be validated and applied."""
        puts: dict[bytes, bytes] = {}
        adds: dict[bytes, int] = {}
        deletes: list[bytes] = []
        for key, write in self._shared.items():
            if isinstance(write, PutWrite):
                puts[key] = write.value
            elif isinstance(write, int):
                adds[key] = write
            else:
                deletes.append(key)
        return replace(self.to_validation(), puts=puts, adds=adds, deletes=deletes)

    # --- the state ----------------------------------------------------------------------------------------------------
    def _list_required_versions(self) -> dict[bytes, int]:
        """Every transaction that may create a cell reads the guard of the table; and no table may be dropped."""
        return {**self._required, **{table.key: table.version for table in self._used.values()}}

    def _require_open_transaction(self) -> None:
        """Check that what is written can still be committed.

        Raises:
            InvalidRequestError: the transaction is over, or this is a forked child.
        """
        if self._is_over:
            raise InvalidRequestError(
                "the transaction is over: use it only while its function runs, and do not keep it"
            )
        if os.getpid() != self._pid:
            raise InvalidRequestError(
                "a transaction belongs to the process that began it: let the child return what it has found, and write"
                " it there"
            )

    def _table(self, name: str) -> Table:
        self._require_open_transaction()
        found = self._used.get(name)
        if found is None:
            found = self._used[name] = self._tables(name)
        return found

    def _count_reads(self, reads: int) -> None:
        """Count reads of the present unit.

        Raises:
            InvalidRequestError: these are too many.
        """
        self._check(reads)
        self._reads += reads
        self._all_reads += reads

    def _check(self, reads: int) -> None:
        if self._most_reads is not None and self._reads + reads > self._most_reads:
            raise too_many_reads_error(self._most_reads)

    def _limit_page_by_reads(self, size: int | None) -> int | None:
        """Return how many records to read at once: a page, but not many more than the unit may read."""
        if self._most_reads is None:
            return size
        left = max(1, self._most_reads - self._reads + 1)
        return left if size is None else min(size, left)

    def _write(self, key: bytes) -> Write | None:
        own = self._own.get(key)
        return self._shared.get(key) if own is None else own

    def _stored(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        wanted = [key for key in keys if not isinstance(self._write(key), PutWrite | DeleteWrite)]
        self._count_reads(len(wanted))
        records = self._read_set.get_many(wanted) if wanted else {}
        found = ((key, self._apply_own_write(key, records.get(key))) for key in keys)
        return {key: record for key, record in found if record is not None}

    def _apply_own_write(self, key: bytes, record: Record | None) -> Record | None:
        if record is not None and not takes_adds(record.value):
            self._no_integers.add(key)
        try:
            return record_after_write(record, self._write(key))
        except InvalidRequestError as error:
            raise with_cell_named(error, key) from error

    def _read_counter(self, key: bytes) -> tuple[int, Record | None]:
        return split_update_counter(self._stored([key]).get(key))

    def _put_cell(self, table: Table, key: bytes, encoded: bytes) -> None:
        if not table.history:
            self._own[key] = PutWrite(encoded)
            return
        counter = self._read_counter(key)[0] + 1
        self._own[key] = PutWrite(encode_with_counter(counter, encoded))
        self._own[history_key(key, counter)] = PutWrite(encoded)
        if counter > table.history:
            self._own[history_key(key, counter - table.history)] = DELETED

    def _cells(
        self, table: Table, first: bytes, last: bytes, limit: int | None = None
    ) -> Iterator[tuple[bytes, Record]]:
        """Read a range page by page, as far as the caller goes, with the writes so far."""
        size = None if limit is None else limit + 1  # with one cell more than needed, the last row is known to be whole
        while first < last:
            most = self._limit_page_by_reads(size)
            page = self._read_set.scan(first, last, most, guard=table.key)
            self._count_reads(len(page))
            end = page[-1][0] + b"\0" if most is not None and len(page) >= most else last
            records = dict(page)
            keys = {key for writes in (self._shared, self._own) for key in writes if first <= key < end}
            for key in sorted(keys.union(records)):
                record = self._apply_own_write(key, records.get(key))
                if record is not None:
                    yield key, record
            first = end
            size = None if size is None else min(2 * size, _LARGEST_PAGE)


def _write_size(write: Write | None) -> int:
    return len(write.value) if isinstance(write, PutWrite) else 0


class CellAccessMethods(ABC):
    """The methods to read and write cells that a database and the transaction of a unit have in common.

    Subclasses define `_read` and `_write`, which run a call of `CellTransaction`.
    """

    __slots__ = ()

    def get(self, table: str, row: Row, *, column: str = VALUE, default: Value | None = None) -> Value | None:
        """Return the value of a cell, or `default` if it does not exist."""
        return self._read(lambda cells: cells.get(table, row, column=column, default=default))

    def get_many(self, table: str, rows: Iterable[Row], *, column: str = VALUE) -> dict[Row, Value]:
        """Return the values of those rows that have the column, by row, in one round trip."""
        return self._read(lambda cells: cells.get_many(table, rows, column=column))

    def get_row(self, table: str, row: Row) -> dict[str, Value]:
        """Return the values of a row by column."""
        return self._read(lambda cells: cells.get_row(table, row))

    def put(self, table: str, row: Row, value: Value, *, column: str = VALUE) -> None:
        """Write a cell, whether it exists or not."""
        self._write(lambda cells: cells.put(table, row, value, column=column))

    def add(self, table: str, row: Row, amount: int = 1, *, column: str = VALUE) -> None:
        """Add to the integer in a cell; a cell that does not exist counts as 0.

        Transactions that only add never conflict, unless the table has a history.

        Raises:
            InvalidRequestError: the cell holds something else; nothing happened.
        """
        self._write(lambda cells: cells.add(table, row, amount, column=column))

    def delete(self, table: str, row: Row, *, column: str = VALUE) -> None:
        """Delete a cell, if it exists."""
        self._write(lambda cells: cells.delete(table, row, column=column))

    @abstractmethod
    def _read(self, call: Callable[[CellReader], T]) -> T: ...

    @abstractmethod
    def _write(self, call: Callable[[CellTransaction], T]) -> T: ...
