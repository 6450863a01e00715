"""Run units: their functions over cells, then one commit for all of them.

The commit takes the record of the task's progress along (`Change`), so a unit and the knowledge that it is done take
effect in one step. That is what makes retries, twins and zombies harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from holdfast.errors import (
    CorruptDataError,
    DeadlockError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.keys import tables_range
from holdfast.records.tables import TableCache
from holdfast.runtime import Alarm, Environment, SystemAlarm, TimeIsUp
from holdfast.transactions.base import Commit, Committed, Conflict, LockingStore, Outcome
from holdfast.transactions.transaction import Transaction
from holdfast.units.locked_reads import LockedReads
from holdfast.units.metered_store import MeteredStore
from holdfast.units.settings import SERVER, UnitSettings
from holdfast.units.statistics import Statistics
from holdfast.units.unit import Unit, UnitFunction, UnitReads
from holdfast.units.unit_transaction import UnitTransaction
from holdfast.units.work_list import WorkList

__all__ = ["Attempt", "Change", "UnitExecution"]

_MOST_BYTES = 4 * 1024 * 1024
_MOST_RECORDS = 4000
"""What a group writes at most: then it is committed, however few units it has."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit does besides the units' own writes.

    Attributes:
        reads: versions that records must have, or the units belong to somebody else by now.
        puts, deletes, adds: records of the progress.
    """

    reads: Mapping[bytes, int]
    puts: Mapping[bytes, bytes] = field(default_factory=dict)
    deletes: Sequence[bytes] = ()
    adds: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What an attempt to run several units came to.

    Attributes:
        done: how many units, from the first, took effect.
        version: of the records that their commit wrote.
        conflict: keys that others had changed; nothing took effect.
        unknown: whether the reply of the commit was lost. Read the progress.
        failure: the error of the unit after those that are done; what it had read was true.
    """

    done: int = 0
    version: int = 0
    conflict: tuple[bytes, ...] = ()
    unknown: bool = False
    failure: Exception | None = None


class _Ran(NamedTuple):
    """How many units have run, and the error of the one after them."""

    done: int
    failure: Exception | None = None


class UnitExecution:
    """Runs units of one job in this process.

    Args:
        reads: names cells that a unit will read, so that those of a whole group are read in one round trip.
        emit_to: the work list to which units add.

    Attributes:
        alarm: ends functions that run for too long; whoever runs many units makes it ready first.
    """

    def __init__(
        self,
        function: UnitFunction,
        store: LockingStore,
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
        self.alarm: Alarm = alarm or SystemAlarm()
        self.store = MeteredStore(store, environment.clock, self.statistics, self.alarm)
        self._function = function
        self._reads = reads
        self._emit_to = emit_to
        self._tables = TableCache(self.store)

    def attempt(self, units: Sequence[Unit], change: Callable[[int], Change], *, locked: bool = False) -> Attempt:
        """Run units one after the other, and commit them together.

        Guarantee: those that are done took effect in one step, together with their change; the others did nothing.

        Args:
            change: called with the number of units that are to take effect.
            locked: whether to lock whatever is read, for a single unit.

        Raises:
            UnavailableError: nothing happened: repeat it.
            CorruptDataError: a record cannot be read.
        """
        try:
            with self._begun(locked) as (cells, end):
                ran = self._run(cells, units)
                if ran.failure is not None:
                    outcome = end(cells.to_validation())
                    if isinstance(outcome, Conflict):
                        self.statistics.stale += 1
                        return self._conflict(outcome.keys)
                    if ran.done == 0:
                        return Attempt(failure=ran.failure)
                commit = _with_change(cells.to_commit(), change(ran.done))
                outcome = end(commit)
        except DeadlockError:
            return self._conflict((b"",))
        except OutcomeUnknownError:
            self.statistics.unknown += 1
            return Attempt(unknown=True)
        if isinstance(outcome, Committed):
            self.statistics.groups += 1
            self.statistics.units += ran.done
            return Attempt(done=ran.done, version=outcome.version, failure=ran.failure)
        assert isinstance(outcome, Conflict), "the commit is in no series"
        failure = self._hopeless(commit, outcome)
        return self._conflict(outcome.keys) if failure is None else Attempt(failure=failure)

    @contextmanager
    def _begun(self, locked: bool) -> Iterator[tuple[CellTransaction, Callable[[Commit], Outcome]]]:
        most = self.settings.max_reads
        if locked or self.settings.buffering == SERVER:
            self.statistics.locked += locked
            with self.store.locked() as transaction:
                cells = CellTransaction(LockedReads(transaction, exclusive=locked), self._tables, most)
                yield cells, transaction.apply
        else:
            yield CellTransaction(Transaction(self.store), self._tables, most), self.store.commit

    def _run(self, cells: CellTransaction, units: Sequence[Unit]) -> _Ran:
        failure = self._fetch(cells, units)
        if failure is not None:
            return _Ran(0, failure)
        for count, unit in enumerate(units):
            failure = self._call(cells, unit)
            if failure is not None:
                cells.drop_unit()
                return _Ran(count, failure)
            cells.end_unit()
            if len(cells.writes) >= _MOST_RECORDS or cells.written_bytes > _MOST_BYTES:
                return _Ran(count + 1)
        return _Ran(len(units))

    def _call(self, cells: CellTransaction, unit: Unit) -> Exception | None:
        """Run a unit's function; return its error.

        Raises:
            UnavailableError, OutcomeUnknownError, DeadlockError, CorruptDataError: the store failed, not the function.
        """
        transaction = UnitTransaction(cells, self._emit_to)
        clock = self.environment.clock
        before_s, calls_s = clock.elapsed_s(), self.store.calls_s
        try:
            with self.alarm.limit(self.settings.timeout_s):
                self._function(transaction, unit.key, unit.value)
        except TimeIsUp:
            return InvalidRequestError(
                "the unit did not end in time: make it shorter, or raise the limit timeout_s",
                timeout_s=self.settings.timeout_s,
            )
        except (UnavailableError, OutcomeUnknownError, DeadlockError, CorruptDataError):
            raise
        except Exception as error:  # noqa: BLE001 # whatever the user's function raises is looked at, then raised
            return transaction.failure or error
        finally:
            self.statistics.function_s += clock.elapsed_s() - before_s - (self.store.calls_s - calls_s)
        if transaction.failure is not None:
            raise transaction.failure
        return None

    def _fetch(self, cells: CellTransaction, units: Sequence[Unit]) -> Exception | None:
        """Read what the units of a group will read in one round trip; return an error of the function that names it."""
        if self._reads is None:
            return None
        try:
            wanted = [cells.cell_key(*cell) for unit in units for cell in self._reads(unit.key, unit.value)]
        except (UnavailableError, CorruptDataError):
            raise
        except Exception as error:  # noqa: BLE001 # whatever the user's function raises is looked at, then raised
            return error
        cells.prefetch(wanted)
        return None

    def _conflict(self, keys: tuple[bytes, ...]) -> Attempt:
        self.statistics.conflicts += 1
        first, last = tables_range()
        if any(first <= key < last for key in keys):
            self._tables.forget()
        return Attempt(conflict=keys)

    def _hopeless(self, commit: Commit, outcome: Conflict) -> HoldfastError | None:
        """Return the error of a conflict that would occur again in every attempt."""
        if self._emit_to is not None and self._emit_to.definition_key in outcome.keys:
            return NotFoundError(
                "the work list was dropped: create it, and add the work again", list=self._emit_to.name
            )
        guards = {one.guard for one in commit.ranges}
        if all(key in commit.adds and key not in commit.reads and key not in guards for key in outcome.keys):
            # Nothing else makes an add conflict whose record was not read.
            return InvalidRequestError("a counter would leave the range of 62 bits: put a new value")
        return None


def _with_change(commit: Commit, change: Change) -> Commit:
    return replace(
        commit,
        reads={**commit.reads, **change.reads},
        puts={**commit.puts, **change.puts},
        deletes=[*commit.deletes, *change.deletes],
        adds={**commit.adds, **change.adds},
    )
