"""Implement the database of tables that `holdfast.open_database` opens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from types import TracebackType
from typing import TypeVar

from holdfast.errors import ConflictError, InvalidRequestError, NotFoundError
from holdfast.records.batches import (
    delete_dropped_tables,
    delete_old_commit_counts,
    iter_commit_checked_batches,
    iter_records,
    split_into_batches,
)
from holdfast.records.cell_transaction import CellAccessMethods, CellTransaction
from holdfast.records.cells import (
    VALUE,
    CellReader,
    apply_writes,
    decode_known_cell_value,
    decode_rows,
    parse_limit,
    rows_range,
    with_cell_named,
)
from holdfast.records.keys import (
    cell_key,
    column_bytes,
    counter_in_history_key,
    dropped_mark_key,
    history_range,
    new_table_id,
    table_key,
)
from holdfast.records.row_keys import Row
from holdfast.records.tables import (
    Table,
    check_table_name,
    list_tables,
    missing_table_error,
    parse_history_length,
    read_table,
)
from holdfast.records.values import Value, encode_value
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Record, SnapshotReader
from holdfast.transactions.registry import open_backend, public_url
from holdfast.transactions.transaction import Transaction, run_transaction

T = TypeVar("T")

_BATCH = 500
"""Cells that `put_many` writes in a transaction."""

_OLD_CALL_S = 7 * 24 * 3600.0


class Database(CellAccessMethods):
    """A database with tables of cells, made by `holdfast.open_database`.

    Guarantee: every call is one transaction: it takes effect completely and durably, or not at all; all transactions
    together are serializable. May be used by several threads, and after a fork.

    Attributes:
        url: of the database, without its password.
        full_url: with its password: for other processes, never to be shown.
        database: where the cells are records.

    Source: the global database of paper 003 (4.1).
    """

    def __init__(self, backend: Backend, url: str, environment: Environment) -> None:
        self.backend = backend
        self.url = public_url(url)
        self.full_url = url
        self.environment = environment

    # --- tables -------------------------------------------------------------------------------------------------------
    def create_table(self, name: str, *, history: bool | int = False, exist_ok: bool = False) -> Table:
        """Create a table, and return it.

        Args:
            history: how many values of each cell to keep: True for all. With a history, all writes to a cell wait for
                each other, even additions.
            exist_ok: whether to return the existing table, if its history is the same.

        Raises:
            ConflictError: the table exists.
        """
        check_table_name(name)
        length = parse_history_length(history)
        table_id = new_table_id(self.environment.ids)

        def insert_table(transaction: Transaction) -> Table | None:
            record = transaction.get(table_key(name))
            if record is not None:
                return Table.of(name, record)
            table = Table(name, table_id, length, version=0)
            transaction.insert(table.key, table.to_bytes())
            return None

        found = run_transaction(self.backend, insert_table, self.environment)
        if found is None:
            return self.table(name)
        if not exist_ok:
            raise ConflictError(
                "the table exists: choose another name, or allow that with exist_ok (--exist-ok)", table=name
            )
        if found.history != length:
            raise ConflictError(
                "the table exists with another history: pass its history, or drop it, which deletes its rows",
                table=name,
            )
        return found

    def table(self, name: str) -> Table:
        """Return the definition of a table.

        Raises:
            NotFoundError: no table has this name.
        """
        return read_table(name, self.backend, self.backend)

    def tables(self) -> list[Table]:
        """Return the definitions of all tables, by name."""
        return list_tables(self.backend)

    def drop_table(self, name: str) -> None:
        """Drop a table, with its history.

        Guarantee: the table is gone in one step; then its cells are deleted in small transactions. Units of running
        jobs that use the table meanwhile fail, and change nothing.

        Raises:
            NotFoundError: no table has this name.
            ConflictError: the database has lost the drop, as in a failover: drop it again.

        Crash: the next call of `drop_table` or `collect` deletes the rest of the cells.
        """
        check_table_name(name)

        def delete_table(transaction: Transaction) -> Table:
            record = transaction.get(table_key(name))
            if record is None:
                raise missing_table_error(self.backend, name)
            transaction.delete(table_key(name))
            dropped = Table.of(name, record)
            transaction.put(dropped_mark_key(dropped.id), b"")
            return dropped

        dropped = run_transaction(self.backend, delete_table, self.environment)
        self.collect()
        record = self.backend.get_many([dropped.key]).get(dropped.key)
        if record is not None and record.version == dropped.version:
            raise ConflictError("the database has lost the drop, perhaps in a failover: drop it again", table=name)

    def rename_table(self, name: str, to: str, *, replace: bool = False) -> Table:
        """Rename a table, and return it. Its cells stay where they are.

        Guarantee: the name changes in one step. Units of running jobs that use one of the two names meanwhile
        fail, and change nothing.

        Args:
            replace: whether to drop, in the same step, a table that has the new name.

        Raises:
            NotFoundError: no table has the old name.
            ConflictError: a table has the new name, and `replace` is False; or the database has lost the change, as in
                a failover: rename again.

        Crash: the next call of `drop_table` or `collect` deletes the rest of the cells of the replaced table.
        """
        old_key, new_key = table_key(check_table_name(name)), table_key(check_table_name(to))

        def move_definition(transaction: Transaction) -> int:
            found = transaction.get_many([old_key, new_key])
            if old_key not in found:
                raise missing_table_error(self.backend, name)
            renamed = Table.of(name, found[old_key])
            if new_key in found and (old_key == new_key or not replace):
                raise ConflictError("a table has this name: choose another one, or replace it", table=to)
            transaction.delete(old_key)
            transaction.put(new_key, renamed.to_bytes())
            if new_key in found:
                transaction.put(dropped_mark_key(Table.of(to, found[new_key]).id), b"")
            return renamed.id

        table_id = run_transaction(self.backend, move_definition, self.environment)
        self.collect()
        table = self.table(to)
        if table.id != table_id:
            raise ConflictError("the database has lost the new name, perhaps in a failover: rename again", table=name)
        return table

    def collect(self, *, calls_older_than_s: float = _OLD_CALL_S) -> int:
        """Delete the records of dropped tables and work lists, and of dead `put_many` calls; return their number.

        Args:
            calls_older_than_s: a `put_many` that began longer ago than this, by default a week, counts as dead.
        """
        deleted = delete_old_commit_counts(self.backend, self.environment, calls_older_than_s)
        return deleted + delete_dropped_tables(self.backend)

    # --- cells --------------------------------------------------------------------------------------------------------
    def put_many(self, table: str, values: Iterable[tuple[Row, Value]], *, column: str = VALUE) -> int:
        """Write the cells of many rows, and return how many were given.

        Guarantee: the cells are written by consecutive transactions of up to 500 cells, or 2 MiB, each; all of them are
        durable when this returns. Memory is bounded, however many values there are. If a row comes twice, the later
        value stays.

        Args:
            values: pairs of row and value.

        Raises:
            InvalidRequestError: an item is no such pair, or cannot be stored; cells before it may be written.
            ConflictError: the database has lost some cells meanwhile, as in a failover; the others are written. Proceed
                as after a crash.
            TransactionConflictError, UnavailableError, OutcomeUnknownError: see `transact`; earlier cells are written.
            UnsupportedError: the server does not let this user flush its log; the cells are written.

        Crash: the first cells are written, perhaps all. Call it again with the same values. This writes those cells
        again: if others have changed one meanwhile, or the table has a history, check first.
        """
        reads_first = bool(self.table(table).history)
        count = 0
        found = split_into_batches(map(_encode_pair, values), _BATCH, lambda pair: len(pair[1]))
        for batch, adds in iter_commit_checked_batches(found, self.backend, self.environment):
            put = partial(_put_cell_batch, table=table, column=column, batch=batch, reads_first=reads_first)
            self._transact_with_adds(put, adds=adds)
            count += len(batch)
        return count

    def scan(
        self,
        table: str,
        *,
        start: Row | None = None,
        end: Row | None = None,
        prefix: Row | None = None,
        limit: int | None = None,
    ) -> Iterator[tuple[Row, dict[str, Value]]]:
        """Yield rows of a table in order, each with its values by column: all from one snapshot.

        Args:
            start, end: the first row, and the first row that is not returned any more.
            prefix: only rows that begin with this text, these bytes, or these parts of a tuple.
            limit: the most rows to yield; None for all.
        """
        limit = parse_limit(limit)
        with self.snapshot() as snapshot:
            yield from islice(snapshot.scan(table, start=start, end=end, prefix=prefix), limit)

    def history(self, table: str, row: Row, *, column: str = VALUE) -> list[tuple[int, Value | None]]:
        """Return the values of a cell with their update counters, the oldest first; None where it was deleted.

        Raises:
            InvalidRequestError: the table has no history.
        """
        with self.snapshot() as snapshot:
            return snapshot.history(table, row, column=column)

    @contextmanager
    def snapshot(self) -> Iterator[DatabaseSnapshot]:
        """Open a snapshot of all tables for a ``with`` block; writers do not wait for it. End it within minutes."""
        with self.backend.snapshot() as reader:
            yield DatabaseSnapshot(reader, self.backend)

    # --- transactions -------------------------------------------------------------------------------------------------
    def transact(self, function: Callable[[CellTransaction], T], *, attempts: int = 10) -> T:
        """Run a function in one transaction, and return what it returns.

        Guarantee: its reads and writes take effect in one step, or not at all. The function may run several times, so
        it does nothing else that others can see.

        Raises:
            TransactionConflictError: every attempt conflicted with another transaction; nothing happened.
            InvalidRequestError: the function adds to a cell that holds no integer; nothing happened.
            OutcomeUnknownError: the reply was lost. Read before you repeat the call.
        """
        return self._transact_with_adds(function, attempts=attempts)

    def _read(self, call: Callable[[CellReader], T]) -> T:
        with self.snapshot() as snapshot:  # no locks: a reader waits for nothing
            return call(snapshot)

    def _write(self, call: Callable[[CellTransaction], T]) -> T:
        return self._transact_with_adds(call)

    def _transact_with_adds(
        self, function: Callable[[CellTransaction], T], *, attempts: int = 10, adds: Mapping[bytes, int] | None = None
    ) -> T:
        """Run a function in one transaction, which also adds to some records that are no cells; see `transact`."""

        def run_function(transaction: Transaction) -> T:
            cells = CellTransaction(transaction, partial(read_table, reader=transaction, database=self.backend))
            result = function(cells)
            cells.end_unit()
            cells.end()
            apply_writes(cells.writes, transaction)
            apply_writes(adds or {}, transaction)
            return result

        try:
            return run_transaction(self.backend, run_function, self.environment, attempts=attempts)
        except InvalidRequestError as error:
            named = with_cell_named(error)
            if named is error:
                raise
            raise named from error

    # --- the end ------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Release connections. May be called twice."""
        self.backend.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Database({self.url!r})"

    def __reduce__(self) -> tuple[object, ...]:
        raise InvalidRequestError("a database stays in its process: pass its URL, and open it there", url=self.url)


def _encode_pair(given: object) -> tuple[Row, bytes]:
    """Return a row and its value as it is now: whoever makes the pairs may use an array or a list again for the next.

    Raises:
        InvalidRequestError: it is something else: a text of two letters, which Python would take apart, too.
    """
    if not isinstance(given, tuple) or len(given) != 2:
        raise InvalidRequestError("rows come as pairs (row, value): make tuples", type=type(given).__name__)
    row, value = given
    return row, encode_value(value)


def _put_cell_batch(
    cells: CellTransaction, *, table: str, column: str, batch: Sequence[tuple[Row, bytes]], reads_first: bool
) -> None:
    if reads_first:  # the update counters, in one round trip
        cells.prefetch(cells.cell_key(table, row, column) for row, _encoded in batch)
    for row, encoded in batch:
        cells.put_encoded(table, row, encoded, column=column)


def open_database(url: str, *, create: bool = False, environment: Environment | None = None) -> Database:
    """Open a database of tables.

    Args:
        url: ``sqlite:///directory/file.db``, ``postgresql://user:password@host:port/database?schema=holdfast`` or
            ``mysql://…``; see docs/reference/options.md.
        create: whether to create the database's tables if there are none.

    Raises:
        InvalidRequestError: the URL is wrong.
        NotFoundError: the database does not exist or is empty, and `create` is False.
        UnsupportedError: the driver is not installed, or a newer release has made the tables.
        AccessDeniedError, UnavailableError: the database cannot be used; see the message.
    """
    environment = environment or Environment()
    try:
        return Database(open_backend(require_database_url(url), environment, create=create), url, environment)
    except NotFoundError as error:
        if create:
            raise
        what = error.message.partition(":")[0]
        hint = "check the url, or make the database with holdfast.open_database(url, create=True)"
        raise NotFoundError(f"{what}: {hint}", **error.variables) from error


def require_database_url(given: object) -> str:
    """Check that an argument is the URL of a database, and return it.

    Raises:
        InvalidRequestError: it is a path or another object.
    """
    if not isinstance(given, str):
        raise InvalidRequestError(
            "a database is named by its url: pass a text such as 'sqlite:///directory/file.db'",
            type=type(given).__name__,
        )
    return given


def require_open_database(given: object) -> None:
    """Check that an argument is an open `Database`, and not its URL.

    Raises:
        InvalidRequestError: it is something else.
    """
    if not isinstance(given, Database):
        raise InvalidRequestError(
            "this is not an open database: pass what holdfast.open_database(url) returns", type=type(given).__name__
        )


class DatabaseSnapshot(CellReader):
    """Reads the tables of a database as they were at one instant.

    Attributes:
        reader: reads the records of the snapshot.
    """

    def __init__(self, reader: SnapshotReader, database: Backend) -> None:
        self.reader = reader
        self._backend = database

    def table(self, name: str) -> Table:
        """Return the definition of a table.

        Raises:
            NotFoundError: no table had this name.
        """
        return self._table(name)

    def scan(
        self,
        table: str,
        *,
        start: Row | None = None,
        end: Row | None = None,
        prefix: Row | None = None,
        after: Row | None = None,
    ) -> Iterator[tuple[Row, dict[str, Value]]]:
        """Yield rows of a table in order, each with its values by column.

        Args:
            start, end, prefix: see `Database.scan`.
            after: yield only rows after this one, to continue a scan.
        """
        definition = self._table(table)
        return decode_rows(definition, self._cells(definition, *rows_range(definition, start, end, prefix, after)))

    def history(self, table: str, row: Row, *, column: str = VALUE) -> list[tuple[int, Value | None]]:
        """Return the values of a cell with their update counters, the oldest first; None where it was deleted.

        Raises:
            InvalidRequestError: the table has no history.
        """
        definition = self._table(table)
        if not definition.history:
            raise InvalidRequestError("the table keeps no history: create another one that does", table=table)
        first, last = history_range(cell_key(definition.id, row, column_bytes(column)))
        return [
            (counter_in_history_key(key), decode_known_cell_value(record, row, column) if record.value else None)
            for key, record in iter_records(self.reader, first, last)
        ]

    def _table(self, name: str) -> Table:
        return read_table(name, self.reader, self._backend)

    def _stored(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self.reader.get_many(list(keys))

    def _cells(
        self, table: Table, first: bytes, last: bytes, limit: int | None = None
    ) -> Iterator[tuple[bytes, Record]]:
        return iter_records(self.reader, first, last)
