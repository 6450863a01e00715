"""Load rows into a table from many tasks, of which each may fail, be repeated, or go on after it was given up.

A load has a record, which every transaction of its tasks reads, and which its end changes. So whatever a task writes
after the end conflicts. There are two kinds of loads:

* One that makes or replaces a table writes into a *hidden* table: an id that no definition names. Its end counts what
  is there, and then defines the table with this id, in one transaction.
* One that appends to a table writes into the table itself. Together with each row it writes a *mark*, so that a task
  that is repeated leaves out what is done. The marks are in the range of the hidden table.

Each attempt at a task has a record in the range of the load's own id: how many batches it has written. Every batch
advances it. So if the database has crashed and lost one of them, and whatever this attempt has seen before, the next
batch shows it, or the end of the attempt, before which everything is made durable.

| state of the record | means | who ends it |
|---|---|---|
| open | tasks write | `finish_load` or `abort_load` |
| sealed | nobody writes anymore; the cells are counted | the same |
| committed | the load has taken effect | whoever sees it deletes the record |
| no record | the load has ended | |
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    FencedError,
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.cells import apply_writes, head_record
from holdfast.records.keys import (
    ID_BYTES,
    cell_key,
    cells_range,
    column_bytes,
    dropped_key,
    history_key,
    load_key,
    load_of,
    loads_range,
    row_prefix,
    table_key,
)
from holdfast.records.paging import read_records
from holdfast.records.row_keys import Row, decode_row
from holdfast.records.rows import read_cells
from holdfast.records.tables import Table, TablesRead, check_table_name
from holdfast.records.values import Value, encode_value
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Database, Record, TransactionStore
from holdfast.transactions.retry import run_transaction
from holdfast.transactions.transaction import Transaction
from holdfast.wording import counted

__all__ = ["Load", "LoadRow", "LoadTask", "Loaded", "abort_load", "abort_old_loads", "begin_load", "finish_load"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

LoadRow = tuple[Row, Mapping[str, "Value | None"]]
"""A row with its values by column; None for no value."""

_OPEN, _SEALED, _COMMITTED = "open", "sealed", "committed"
_ATTEMPTS = 50
_LOST_REPLIES = 5
_CRASHES = 5
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Load:
    """A load; a plain value, which may be sent to other processes.

    Attributes:
        table: the name of the table.
        hidden: the id under which rows, or marks, are written.
        history: how many values of each cell the table keeps; see `Table.history`.
        before: the id of the table that had the name when the load began, None if there was none.
        appends: whether the rows go into the table that is there.
        started_s: when it began, in seconds since the epoch.
    """

    id: int
    table: str
    hidden: int
    history: int
    before: int | None
    appends: bool
    started_s: float

    @property
    def key(self) -> bytes:
        """The key of the record."""
        return load_key(self.id)

    def to_bytes(self, state: str) -> bytes:
        """Return the value of the record."""
        fields = {name: getattr(self, name) for name in ("table", "hidden", "history", "before", "appends")}
        return json.dumps({**fields, "started_s": self.started_s, "state": state}).encode()


def _load_of(key: bytes, record: Record) -> tuple[Load, str]:
    """Return a load and its state.

    Raises:
        CorruptDataError: the record is damaged.
    """
    try:
        found = json.loads(record.value)
        state = found.pop("state")
        load = Load(id=load_of(key), **found)
        ids = [load.hidden, *(() if load.before is None else (load.before,))]
        valid = all(type(one) is int and 0 <= one < 2 ** (8 * ID_BYTES - 1) for one in ids)
        valid = valid and type(load.history) is int and load.history >= 0 and type(load.appends) is bool
        valid = valid and type(load.started_s) in (int, float) and state in (_OPEN, _SEALED, _COMMITTED)
        check_table_name(load.table)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptDataError("the record of a load cannot be read: report it", key=key) from error
    if not valid:
        raise CorruptDataError("the record of a load cannot be read: report it", key=key)
    return load, state


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was written: by a task's attempt, or altogether.

    Attributes:
        rows, cells: how many have a value.
        digest: the sum of the digests of all cells; it does not depend on their order.
    """

    rows: int = 0
    cells: int = 0
    digest: int = 0

    def __add__(self, other: Loaded) -> Loaded:
        digest = (self.digest + other.digest) % 2 ** (8 * _DIGEST_BYTES)
        return Loaded(self.rows + other.rows, self.cells + other.cells, digest)


# --- the beginning ----------------------------------------------------------------------------------------------------
def begin_load(database: Database, environment: Environment, table: str, *, overwrite: bool) -> Load:
    """Begin a load into a table. That is durable.

    Args:
        overwrite: whether the rows replace those of the table; else they are added to them. A table that does not
            exist is made, without history.

    Raises:
        UnavailableError: the database went away, or loses what it has committed. Repeat later.

    Crash: a record of the load remains; `abort_old_loads` finds it.
    """
    name = check_table_name(table)
    load_id, hidden = (int(environment.ids.token(), 16) for _ in range(2))
    now_s = environment.clock.now_s()

    def begin(transaction: Transaction) -> Load:
        record = transaction.get(table_key(name))
        found = None if record is None else Table.of(name, record)
        load = Load(
            id=load_id,
            table=name,
            hidden=hidden,
            history=0 if found is None else found.history,
            before=None if found is None else found.id,
            appends=found is not None and not overwrite,
            started_s=now_s,
        )
        transaction.insert(load.key, load.to_bytes(_OPEN))
        return load

    for _ in range(_CRASHES):
        load = run_transaction(database, begin, environment)
        database.make_durable()
        if _state(database, load) is not None:
            return load
    raise _losing(name)


# --- tasks ------------------------------------------------------------------------------------------------------------
class LoadTask:
    """One attempt at a task of a load.

    Guarantee: several attempts at a task, one after the other or at once, have the effect of one, if their rows are the
    same. If not, the end of a load that makes or replaces a table fails; one that appends keeps what was first.

    Args:
        task: the number of the task in the load: the same for all attempts.
    """

    def __init__(self, database: Database, environment: Environment, load: Load, task: int) -> None:
        self._loaded = Loaded()
        self._database = database
        self._environment = environment
        self._load = load
        self._task = task
        self._attempt = environment.ids.token()
        self._key = row_prefix(load.id, (task, self._attempt))
        self._batches = 0

    def write(self, rows: Sequence[LoadRow]) -> None:
        """Write rows in one transaction; call it with a few hundred.

        In a load that appends, a cell for which there is no value is deleted.

        Raises:
            FencedError: the load has ended: stop.
            ConflictError: the table was dropped or replaced meanwhile; or the database has lost what this attempt had
                written: run the task again.
            InvalidRequestError: a value cannot be stored, or a row occurs twice; the error names the row.
        """
        _refuse_twice(rows)
        self._loaded += self._append(rows) if self._load.appends else self._write_hidden(rows)
        self._batches += 1

    def finish(self) -> Loaded:
        """Return what was written, for `finish_load`: everything, and durably.

        Raises:
            FencedError: the load has ended: stop.
            ConflictError: the database has lost something of it: run the task again.
        """
        if self._batches:
            self._database.make_durable()
            found = self._database.get_many([self._load.key, self._key])
            if self._key not in found:
                _require_open(self._load, found.get(self._load.key))
            self._require_batches(found.get(self._key), self._batches)
        return self._loaded

    def _require_batches(self, record: Record | None, *counts: int) -> None:
        """Check that the database has as many batches of this attempt as it has written.

        Raises:
            ConflictError: it has fewer.
        """
        if (b"0" if record is None else record.value) not in [b"%d" % count for count in counts]:
            raise ConflictError(
                "the database has lost rows, perhaps in a crash: run the task again", table=self._load.table
            )

    def _advance(self, transaction: Transaction, record: Record | None) -> None:
        """Count a batch, together with its rows; it may be there already, if a reply was lost.

        Raises: like `_require_batches`.
        """
        self._require_batches(record, self._batches, self._batches + 1)
        transaction.put(self._key, b"%d" % (self._batches + 1))

    def _write_hidden(self, rows: Sequence[LoadRow]) -> Loaded:
        load, loaded = self._load, Loaded()
        records: dict[bytes, bytes] = {}
        for row, columns in rows:
            cells: dict[bytes, bytes] = {}
            for column, value in columns.items():
                if value is not None:
                    key, encoded = _encoded(load.hidden, row, column, value)
                    cells[key] = head_record(1, encoded) if load.history else encoded
                    if load.history:
                        records[history_key(key, 1)] = encoded
            records |= cells
            loaded += Loaded(bool(cells), len(cells), sum(_digest(*cell) for cell in cells.items()))

        def write(transaction: Transaction) -> None:
            found = transaction.get_many([load.key, self._key])
            _require_open(load, found.get(load.key))
            self._advance(transaction, found.get(self._key))
            for key, value in records.items():
                transaction.put(key, value)

        _until_known(self._database, write, self._environment)
        return loaded

    def _append(self, rows: Sequence[LoadRow]) -> Loaded:
        load = self._load
        marks = {row_prefix(load.hidden, row): row for row, _columns in rows}
        own = json.dumps([self._task, self._attempt, self._batches]).encode()
        for row, columns in rows:
            for column, value in columns.items():
                if value is not None:
                    _encoded(load.hidden, row, column, value)  # refuse it before anything is written

        def write(transaction: Transaction) -> None:
            found = transaction.get_many([load.key, self._key, table_key(load.table), *marks])
            _require_open(load, found.get(load.key))
            _require_table(load, found.get(table_key(load.table)))
            self._advance(transaction, found.get(self._key))
            done = {row for key, row in marks.items() if key in found and self._is_done(row, found[key], own)}
            cells = CellTransaction(transaction, TablesRead(transaction, self._database))
            fresh = [(row, columns) for row, columns in rows if row not in done]
            if load.history:  # which reads what it writes
                cells.prefetch(cells.cell_key(load.table, row, column) for row, columns in fresh for column in columns)
            for row, columns in fresh:
                for column, value in columns.items():
                    if value is None:
                        cells.delete(load.table, row, column=column)
                    else:
                        cells.put(load.table, row, value, column=column)
                transaction.put(row_prefix(load.hidden, row), own)
            cells.end_unit()
            apply_writes(cells.writes, transaction)

        _until_known(self._database, write, self._environment)
        counts = [sum(value is not None for value in columns.values()) for _row, columns in rows]
        return Loaded(sum(map(bool, counts)), sum(counts))

    def _is_done(self, row: Row, mark: Record, own: bytes) -> bool:
        """Check whether this task has written a row before: in an earlier attempt, or in a commit with a lost reply.

        Raises:
            InvalidRequestError: another task has written it, or this attempt has, in an earlier batch.
        """
        if mark.value == own:
            return True
        try:
            task, attempt, _batch = json.loads(mark.value)
        except (ValueError, TypeError) as error:
            raise CorruptDataError("the mark of a row cannot be read: report it", row=row) from error
        if task != self._task or attempt == self._attempt:
            raise _twice(row)
        return True


def _encoded(table_id: int, row: Row, column: str, value: Value) -> tuple[bytes, bytes]:
    """Return the key and the bytes of a cell.

    Raises:
        InvalidRequestError: it cannot be stored; the error names the row and the column.
    """
    try:
        return cell_key(table_id, row, column_bytes(column)), encode_value(value)
    except InvalidRequestError as error:
        given = {**error.variables, "row": row, "column": column}
        raise InvalidRequestError(error.message, **given) from error


def _refuse_twice(rows: Sequence[LoadRow]) -> None:
    seen: set[Row] = set()
    for row, _columns in rows:
        if row in seen:
            raise _twice(row)
        seen.add(row)


def _twice(row: Row) -> InvalidRequestError:
    return InvalidRequestError("two of the rows have the same name: aggregate them, or drop one", row=row)


def _require_open(load: Load, record: Record | None) -> None:
    if record is None or _load_of(load.key, record)[1] != _OPEN:
        raise FencedError("the load has ended, and takes no more rows: stop", table=load.table)


def _require_table(load: Load, record: Record | None) -> None:
    found = None if record is None else Table.of(load.table, record).id
    if found != load.before:
        raise ConflictError("another table has the name now: start the load again", table=load.table)


# --- the end ----------------------------------------------------------------------------------------------------------
def finish_load(database: Database, environment: Environment, load: Load, expected: Loaded) -> None:
    """End a load: what its tasks have written takes effect.

    Guarantee: a load that makes or replaces a table takes effect in one step, and only if the cells are exactly those
    that the tasks report. That is durable. May be repeated.

    Args:
        expected: the sum over one attempt of each task.

    Raises:
        InvalidRequestError: two tasks, or two batches of one, have written the same row.
        ConflictError: the cells are others than reported, or the table was made, replaced or dropped meanwhile.
        FencedError: the load was aborted.
        UnavailableError, OutcomeUnknownError: the database went away. Call this again, or `abort_load`.

    Crash: the load has taken effect, or goes on. The next collection deletes what it replaced, or the marks.
    """
    for _ in range(_CRASHES):
        if not load.appends and _end(database, environment, load, _SEALED) != _COMMITTED:
            found = _count(database, load)
            if found != expected:
                raise _difference(load, found, expected)
        if _end(database, environment, load, _COMMITTED) != _COMMITTED:
            continue  # a crash has undone the seal: what was counted may have changed
        database.make_durable()
        if _state(database, load) in (_COMMITTED, None):
            _forget(database, load)
            return
    raise _losing(load.table)


def _end(database: Database, environment: Environment, load: Load, state: str) -> str:
    """Advance the record of a load, and return its state: a load is not committed before it is sealed."""

    def end(transaction: Transaction) -> str:
        record = transaction.get(load.key)
        if record is None:
            raise FencedError("the load was aborted: start it again", table=load.table)
        present = _load_of(load.key, record)[1]
        if present in (state, _COMMITTED) or (state == _COMMITTED and present == _OPEN and not load.appends):
            return present
        transaction.put(load.key, load.to_bytes(state))
        if state == _COMMITTED:
            transaction.put(dropped_key(load.id), b"")
        if state == _COMMITTED and load.appends:
            transaction.put(dropped_key(load.hidden), b"")
        elif state == _COMMITTED:
            _require_table(load, transaction.get(table_key(load.table)))
            table = Table(load.table, load.hidden, load.history, version=0)
            transaction.put(table.key, table.to_bytes())
            if load.before is not None:
                transaction.put(dropped_key(load.before), b"")
        return state

    return _until_known(database, end, environment)


def abort_load(database: Database, environment: Environment, load: Load) -> bool:
    """Abort a load, unless it has taken effect. What a load that appends has written remains in the table.

    Guarantee: what was hidden is never seen, whoever goes on writing. May be repeated.

    Returns:
        Whether the load has taken effect, as far as its record still tells.

    Crash: the load goes on, or the next collection deletes what it has written.
    """

    def abort(transaction: Transaction) -> bool:
        record = transaction.get(load.key)
        if record is None:
            return False
        if _load_of(load.key, record)[1] == _COMMITTED:
            return True
        transaction.delete(load.key)
        transaction.put(dropped_key(load.id), b"")
        transaction.put(dropped_key(load.hidden), b"")
        return False

    committed = _until_known(database, abort, environment)
    if committed:
        _forget(database, load)
    return committed


def abort_old_loads(database: Database, environment: Environment, older_than_s: float) -> int:
    """Abort the loads that began long ago, whose driver has probably died. Return how many that were.

    Guarantee: a load that is aborted although it still runs fails, and leaves nothing hidden behind.
    """
    now_s = environment.clock.now_s()
    aborted = 0
    for key, record in read_records(database, *loads_range()):
        load, _state = _load_of(key, record)
        if now_s - load.started_s > older_than_s:
            aborted += not abort_load(database, environment, load)
    return aborted


def _state(database: TransactionStore, load: Load) -> str | None:
    """Return the state of a load; None if it has no record anymore."""
    record = database.get_many([load.key]).get(load.key)
    return None if record is None else _load_of(load.key, record)[1]


def _losing(table: str) -> UnavailableError:
    return UnavailableError("the database loses what it has committed: load the rows again later", table=table)


def _forget(database: TransactionStore, load: Load) -> None:
    """Delete the record of a load that has taken effect; if that fails, a collection does it."""
    try:
        database.commit(Commit(deletes=[load.key]))
    except HoldfastError as error:
        _log.info("the record of a load will be deleted by a collection: %s", error)


def _count(database: Database, load: Load) -> Loaded:
    rows = cells = digest = 0
    first, last = cells_range(load.hidden)
    row = b"\0"
    for key, content in read_cells(database, first, last):
        if not key.startswith(row):
            row = key[: decode_row(key, len(first))[1]]
            rows += 1
        cells += 1
        digest += _digest(key, content.encoded)
    return Loaded() + Loaded(rows, cells, digest)


def _digest(key: bytes, value: bytes) -> int:
    both = blake2b(len(key).to_bytes(2, "big") + key + value, digest_size=_DIGEST_BYTES)
    return int.from_bytes(both.digest(), "big")


def _difference(load: Load, found: Loaded, expected: Loaded) -> HoldfastError:
    if found.rows < expected.rows or found.cells < expected.cells:
        shared = counted(max(expected.rows - found.rows, 1), "row")
        return InvalidRequestError(
            f"several rows have the same name, {shared} too many: aggregate them, or drop some", table=load.table
        )
    return ConflictError(
        "the rows of a repeated task were not the same as the first time: store what is random, then load it",
        table=load.table,
        rows=found.rows,
        expected=expected.rows,
    )


def _until_known(database: Database, function: Callable[[Transaction], T], environment: Environment) -> T:
    """Run a transaction that may take effect twice, and repeat it while replies are lost."""
    for _ in range(_LOST_REPLIES):
        try:
            return run_transaction(database, function, environment, attempts=_ATTEMPTS)
        except OutcomeUnknownError as error:
            _log.info("a reply was lost, and the transaction is repeated: %s", error)
    return run_transaction(database, function, environment, attempts=_ATTEMPTS)
