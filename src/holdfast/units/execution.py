"""Run groups of units: their functions over cells, then one commit for all of them.

The commit takes the record of the progress along (the *change*), so a unit and the knowledge that it is done take
effect in one step. That is what makes retries, concurrent attempts and zombies harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import CoroutineType
from typing import Any, NamedTuple, TypeVar

from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    DeadlockError,
    FencedError,
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast.records.cell_transaction import CellTransaction, too_many_reads_error
from holdfast.records.cells import VALUE, with_cell_named
from holdfast.records.keys import cell_key, column_bytes, tables_range
from holdfast.records.row_keys import Row
from holdfast.records.tables import TableCache
from holdfast.runtime import Alarm, Environment, TimeIsUp
from holdfast.transactions.base import (
    ABSENT,
    Backend,
    Commit,
    Committed,
    Conflict,
    Outcome,
    Record,
    ScanPage,
)
from holdfast.transactions.transaction import Transaction, error_of_refused_add
from holdfast.units.progress import LIST_DROPPED, Statistics
from holdfast.units.unit import SERVER, Cell, Unit, UnitFunction, UnitReads, UnitSettings, UnitTransaction
from holdfast.units.work_list import WorkList

T = TypeVar("T")

_MOST_BYTES = 4 * 1024 * 1024
_MOST_RECORDS = 4000
_MOST_READ = 10_000
"""What a group writes and reads at most: then it is committed, however few units it has."""

_NAMELESS = (b"",)
"""Stands for the keys that a group conflicted with, if they are unknown."""

_OF_PROCESS = (KeyboardInterrupt,)
"""What ends the process. Everything else, such as `SystemExit` or the `CancelledError` of asyncio, a function may raise
on what it has read; Spark would take it for its own."""

_OF_STORE = (UnavailableError, OutcomeUnknownError, DeadlockError, CorruptDataError, AccessDeniedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """The result of running a group of units and committing them together.

    Attributes:
        done: how many units, from the first, took effect.
        version: the version of the records that their commit wrote.
        conflict: keys that other transactions had changed; then nothing took effect.
        unknown: whether the reply of the commit was lost; then read the progress.
        failure: the error of the first unit that is not done; its reads were consistent.
    """

    done: int = 0
    version: int = 0
    conflict: tuple[bytes, ...] = ()
    unknown: bool = False
    failure: BaseException | None = None


class _RunResult(NamedTuple):
    """How many units have run, and the error of the one after them."""

    done: int
    failure: BaseException | None = None


class _DeclaredReads(NamedTuple):
    """How many units, from the first, have named the cells that they will read; the error of the one after them."""

    done: int
    keys: Sequence[bytes] = ()
    failure: BaseException | None = None


class _PrefetchedRecords(NamedTuple):
    """What was read for units before they run: all that they are known to read."""

    units: Collection[bytes]
    records: Mapping[bytes, Record | None]


_NOTHING_AHEAD = _PrefetchedRecords((), {})

_EXCLUSIVE_UNITS = 100
"""So many units lock exclusively what they read, after one was in a deadlock: several that have read a record, and want
to write it, wait for each other, and a database takes up to a second to notice."""


class UnitExecution:
    """Runs groups of units of one job in this process, each group in one commit.

    Args:
        reads: names cells that a unit will read, so that those of a whole group are read in one round trip.
        emit_to: the work list to which units add.

    Attributes:
        alarm: ends functions that run for too long; enter `alarm.ready()` around a run of many units.
    """

    def __init__(
        self,
        function: UnitFunction,
        database: Backend,
        settings: UnitSettings,
        environment: Environment,
        *,
        reads: UnitReads | None = None,
        emit_to: WorkList | None = None,
        alarm: Alarm | None = None,
    ) -> None:
        self.statistics = Statistics()
        self.settings = settings
        self.environment = environment
        self.alarm: Alarm = alarm or Alarm()
        self.database = database
        self._calls_s = 0.0  # seconds in all calls of the database so far
        self._function = function
        self._reads = reads
        self._emit_to = emit_to
        self._measured_reads = MeasuredReads(database, self._time_read)
        self._tables = TableCache(self._measured_reads)
        self._ahead = _NOTHING_AHEAD
        self._exclusive = 0  # units that lock exclusively what they read

    @property
    def reads_ahead(self) -> bool:
        """Return whether `run_group` makes use of `following`, because reading ahead saves round trips."""
        return self._reads is not None and self.database.reads_ahead and self.settings.buffering != SERVER

    def run_group(
        self,
        units: Sequence[Unit],
        change: Callable[[int], Commit],
        *,
        locked: bool = False,
        following: Sequence[Unit] = (),
    ) -> GroupResult:
        """Run units one after the other, and commit them together.

        Guarantee: the first `GroupResult.done` units took effect in one step with `change`; the others had no effect.

        Args:
            change: called with the number of units that are to take effect; returns the reads and writes of progress
                records that the commit adds to the units' own. If no unit takes effect, only its reads count.
            locked: whether to lock every record that is read; only for a single unit.
            following: units that will probably run next: the cells that they declare to read are read with this commit,
                if that needs no extra round trip.

        Raises:
            UnavailableError: nothing happened: repeat it.
            CorruptDataError: a record cannot be read.
            FencedError: the work list to which units add was dropped.
        """
        ahead, self._ahead = self._ahead, _NOTHING_AHEAD
        try:
            with self._begin_transaction(locked, ahead) as (cells, end):
                ran = self._run_units(cells, units, ahead)
                try:
                    commit = _make_commit(cells, change(ran.done), ran.done)
                    outcome = end(commit, following if ran.failure is None else ())
                except InvalidRequestError as error:
                    if type(error) is not InvalidRequestError:
                        raise  # about the database, not about the commit
                    if ran.done > 1:
                        return self._record_conflict(_NAMELESS)  # one by one, the units show which of them it is
                    ran = _RunResult(0, error if ran.done else ran.failure or error)
                    commit = _make_commit(cells, change(0), 0)
                    try:
                        outcome = end(commit, ())
                    except InvalidRequestError as again:
                        if type(again) is not InvalidRequestError:
                            raise
                        return GroupResult(failure=ran.failure)  # the call that it broke off has ended everything
        except DeadlockError:
            self._exclusive = _EXCLUSIVE_UNITS
            return self._record_conflict(_NAMELESS)
        except OutcomeUnknownError:
            self.statistics.unknown += 1
            return GroupResult(unknown=True)
        if isinstance(outcome, Conflict):
            self.statistics.stale += ran.failure is not None
            self._require_unchanged_work_list(outcome)
            failure = error_of_refused_add(self.database, commit, outcome) if ran.done == 1 else None
            return (
                self._record_conflict(outcome.keys)
                if failure is None
                else GroupResult(failure=with_cell_named(failure))
            )
        assert isinstance(outcome, Committed), "the commit is in no series"
        if ran.done:
            self.statistics.groups += 1
            self.statistics.units += ran.done
        return GroupResult(done=ran.done, version=outcome.version, failure=ran.failure)

    @contextmanager
    def _begin_transaction(
        self, locked: bool, ahead: _PrefetchedRecords
    ) -> Iterator[tuple[CellTransaction, Callable[[Commit, Sequence[Unit]], Outcome]]]:
        most = self.settings.max_reads
        if locked or self.settings.buffering == SERVER:
            self.statistics.locked += locked
            exclusive = locked or self._exclusive > 0
            self._exclusive = max(0, self._exclusive - 1)
            with self.database.begin_locking_transaction() as transaction:
                measured = MeasuredReads(transaction, self._time_read)
                tables = self._tables.share_with_reader(UnlockedReads(measured)).get
                cells = CellTransaction(LockedReads(measured, exclusive=exclusive), tables, most)
                yield cells, lambda commit, following: self._measure_commit(lambda: transaction.apply(commit))
        else:
            yield (
                CellTransaction(Transaction(self._measured_reads, ahead.records), self._tables.get, most),
                self._commit_and_read_ahead,
            )

    def _commit_and_read_ahead(self, commit: Commit, following: Sequence[Unit]) -> Outcome:
        """Commit, and read what the following units will read, if that takes no round trip of its own."""
        keys = self._find_hinted_keys(following) if self.reads_ahead else []
        if not keys:
            return self._measure_commit(lambda: self.database.commit(commit))
        outcome, records = self._measure_commit(lambda: self.database.commit_and_read(commit, keys))
        if records is not None:
            self._ahead = _PrefetchedRecords({unit.id for unit in following}, {key: records.get(key) for key in keys})
        return outcome

    def _measure_commit(self, commit: Callable[[], T]) -> T:
        """Call what commits, and note how long that takes."""
        clock = self.environment.clock
        before_s = clock.elapsed_s()
        try:
            return commit()
        finally:
            self.statistics.commit_s += clock.elapsed_s() - before_s

    @contextmanager
    def _time_read(self) -> Iterator[None]:
        """Note how long reads take. No alarm breaks off this block, which would make the connection unusable."""
        clock = self.environment.clock
        before_s = clock.elapsed_s()
        try:
            with self.alarm.shielded():
                yield
        finally:
            took_s = clock.elapsed_s() - before_s
            self._calls_s += took_s
            self.statistics.read_s += took_s

    def _find_hinted_keys(self, units: Sequence[Unit]) -> Sequence[bytes]:
        """Return the keys of what units will read; none if the function that names it fails."""
        named = self._ask_for_cells(units, self._cell_key)
        return named.keys if named.failure is None and named.done == len(units) else []

    def _cell_key(self, table: str, row: Row, column: str = VALUE) -> bytes:
        return cell_key(self._tables.get(table).id, row, column_bytes(column))

    def _run_units(self, cells: CellTransaction, units: Sequence[Unit], ahead: _PrefetchedRecords) -> _RunResult:
        named = _RunResult(len(units))
        if not all(unit.id in ahead.units for unit in units):
            found = self._ask_for_cells(units, cells.cell_key)
            cells.prefetch(found.keys)
            named = _RunResult(found.done, found.failure)
        for count, unit in enumerate(units[: named.done]):
            failure = self._call_unit(cells, unit)
            if failure is not None:
                cells.drop_unit()
                return _RunResult(count, failure)
            cells.end_unit()
            if _is_transaction_full(cells):
                return _RunResult(count + 1)
        return named

    def _call_unit(self, cells: CellTransaction, unit: Unit) -> BaseException | None:
        """Run a unit's function; return its error.

        Raises:
            UnavailableError, OutcomeUnknownError, DeadlockError, CorruptDataError, AccessDeniedError: the database
                failed, not the function, whatever the function has made of it.
        """
        transaction = UnitTransaction(cells, self._emit_to)
        clock = self.environment.clock
        before_s, calls_s = clock.elapsed_s(), self._calls_s
        error = self._call_with_timeout(partial(_run_function, self._function, transaction, unit))
        transaction.end()
        self.statistics.function_s += clock.elapsed_s() - before_s - (self._calls_s - calls_s)
        failure = transaction.failure
        if isinstance(failure, Exception) and not isinstance(failure, _OF_STORE):
            return failure
        if failure is not None:
            raise failure
        return error

    def _call_with_timeout(self, call: Callable[[], object]) -> BaseException | None:
        """Call what a user has written; return its error."""
        try:
            self.alarm.run_with_time_limit(self.settings.timeout_s, call)
        except TimeIsUp as up:
            return InvalidRequestError(
                "the unit did not end in time: make it shorter, or raise the limit timeout_s",
                timeout_s=self.settings.timeout_s,
            ).with_traceback(up.__traceback__)
        except _OF_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001 # the unit is validated, and fails with its key in the message
            return error
        return None

    def _ask_for_cells(self, units: Sequence[Unit], key_of: Callable[..., bytes]) -> _DeclaredReads:
        """Ask which cells units will read."""
        if self._reads is None:
            return _DeclaredReads(len(units))
        reads, most = self._reads, self.settings.max_reads
        wanted: list[bytes] = []
        for count, unit in enumerate(units):
            cells_of_unit: list[Cell] = []
            failure = self._call_with_timeout(partial(_list_declared_reads, reads, unit, most, cells_of_unit))
            if failure is None:
                try:
                    wanted += [key_of(*cell) for cell in cells_of_unit]
                except _OF_STORE:
                    raise
                except (HoldfastError, TypeError) as error:
                    failure = error
            if failure is not None:
                return _DeclaredReads(count, wanted, failure)
            if len(wanted) >= _MOST_READ:
                return _DeclaredReads(count + 1, wanted)
        return _DeclaredReads(len(units), wanted)

    def _record_conflict(self, keys: tuple[bytes, ...]) -> GroupResult:
        self.statistics.conflicts += 1
        first, last = tables_range()
        if any(first <= key < last for key in keys):
            self._tables.forget()
        return GroupResult(conflict=keys)

    def _require_unchanged_work_list(self, outcome: Conflict) -> None:
        """Check that a conflict is not about the definition of the work list: it would occur again in every attempt.

        Raises:
            FencedError: it is.
        """
        if self._emit_to is not None and self._emit_to.definition_key in outcome.keys:
            raise FencedError(LIST_DROPPED, list=self._emit_to.name)


def _run_function(function: UnitFunction, transaction: UnitTransaction, unit: Unit) -> None:
    """Run the function of a unit.

    Raises:
        InvalidRequestError: it has returned something, perhaps what would run: the unit must not count as done.
    """
    returned = function(transaction, unit.key, unit.value)
    if returned is None:
        return
    if isinstance(returned, CoroutineType):
        returned.close()  # or Python warns that nothing has awaited it
    raise InvalidRequestError(
        "the function of a unit must return None, because a result may be code that has not run yet: put results into "
        "a table, leave out yield and async, write loops instead of map, and wait for what runs elsewhere",
        returned=type(returned).__name__,
    )


def _list_declared_reads(reads: UnitReads, unit: Unit, most: int, found: list[Cell]) -> None:
    """Ask which cells a unit will read.

    Raises:
        InvalidRequestError: these are too many.
    """
    for cell in reads(unit.key, unit.value):
        found.append(cell)
        if len(found) > most:
            raise too_many_reads_error(most)


def _make_commit(cells: CellTransaction, change: Commit, done: int) -> Commit:
    """Return what takes effect. If nothing does, it says whether what was read is true, and the unit not done yet."""
    if done:
        return _add_change(cells.to_commit(), change)
    return _add_change(cells.to_validation(), Commit(reads=change.reads))


def _add_change(commit: Commit, change: Commit) -> Commit:
    return replace(
        commit,
        reads={**commit.reads, **change.reads},
        puts={**commit.puts, **change.puts},
        deletes=[*commit.deletes, *change.deletes],
        adds={**commit.adds, **change.adds},
    )


def _is_transaction_full(cells: CellTransaction) -> bool:
    return len(cells.writes) >= _MOST_RECORDS or cells.written_bytes > _MOST_BYTES or cells.reads >= _MOST_READ


_PAGE = 1000


class MeasuredReads:
    """Wraps a database or a locked transaction, and measures the time of its reads, which no alarm interrupts."""

    def __init__(self, inner: Any, reading: Callable[[], AbstractContextManager[None]]) -> None:
        self._inner = inner
        self._time_read = reading

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        with self._time_read():
            found: dict[bytes, Record] = self._inner.get_many(keys)
        return found

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        with self._time_read():
            found: dict[bytes, Record] = self._inner.read(keys, exclusive=exclusive)
        return found

    def scan(self, start: bytes, end: bytes, limit: int, *guards: Collection[bytes]) -> ScanPage:
        with self._time_read():
            page: ScanPage = self._inner.scan(start, end, limit, *guards)
        return page


class LockedReads:
    """Reads records of one unit in a locked transaction, so that they stay locked until the unit's commit.

    Guarantee: no other transaction changes a record that was read. An absent record cannot be locked, so the commit
    validates that it is still absent (`to_validation`). Only the keys of absent records are kept in memory.

    Args:
        exclusive: whether to take exclusive instead of shared locks, so that units that write what they read do not
            deadlock.
    """

    def __init__(self, locked: MeasuredReads, *, exclusive: bool) -> None:
        self._locked = locked
        self._exclusive = exclusive
        self._absent: set[bytes] = set()

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Record]:
        """Lock the records of `keys`, and return those that exist."""
        if not keys:
            return {}
        found = self._locked.read(keys, exclusive=self._exclusive)
        self._absent.update(key for key in keys if key not in found)
        return found

    def scan(self, start: bytes, end: bytes, limit: int | None, *, guard: bytes) -> list[tuple[bytes, Record]]:
        """Lock the range's guard against inserts by other transactions; then lock and return the range's records."""
        if guard not in self._locked.read([guard], exclusive=True):
            raise InvalidRequestError("the table was dropped: create it")
        found: list[tuple[bytes, Record]] = []
        more = True
        while more and start < end and (limit is None or len(found) < limit):
            page = self._locked.scan(start, end, _PAGE if limit is None else min(_PAGE, limit - len(found)))
            keys = [key for key, _record in page.records]
            # Between the scan and the lock, others may have changed or deleted a record, but none has appeared.
            now = self._locked.read(keys, exclusive=self._exclusive) if keys else {}
            found += [(key, now[key]) for key in keys if key in now]
            more = page.more
            start = keys[-1] + b"\0" if keys else end
        return found

    def to_validation(self) -> Commit:
        """Return a commit that checks what the locks do not guarantee: that absent records are still absent."""
        return Commit(reads=dict.fromkeys(self._absent, ABSENT))


class UnlockedReads:
    """Reads records without locks on the connection of a locked transaction: for the definitions of tables.

    No lock is needed, since the commit validates the definitions. Another connection might not be free.
    """

    def __init__(self, locked: MeasuredReads) -> None:
        self._locked = locked

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Return the existing records of `keys`, each as it is now."""
        return dict(record for key in keys for record in self.scan(key, key + b"\0", 1).records)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """Return the first `limit` records that the range has now; `guards` is ignored."""
        return self._locked.scan(start, end, limit)
