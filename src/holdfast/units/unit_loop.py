"""Run many units: in groups, one by one if they conflict, and at last those that conflict then.

The order of work is that of paper 003 (4.5.3): a unit that conflicts is deferred until the others are done. A
`UnitLedger`, the progress of a task or the claim of a worker, records which units are done, and which ones may run.

The error of a function arrives in `UnitLoop._attempt_units`, validated. The next commit records the ids that are
deferred, but not how often they were tried. `UnitLoop.drain` runs them: at the end of a task, of each claim of a
worker, and as soon as there are too many.
"""

from __future__ import annotations

import enum
import os
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Protocol, TypeVar

from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    StorageFullError,
    TransactionConflictError,
    UnavailableError,
)
from holdfast.records.keys import CELL, parse_cell_key, table_name_in_key, tables_range
from holdfast.runtime import Backoff, Environment
from holdfast.transactions.base import Commit
from holdfast.units.execution import GroupResult, UnitExecution
from holdfast.units.progress import Statistics
from holdfast.units.unit import SERVER, Unit, format_key

T = TypeVar("T")

_LOCKED_ROUNDS = 10
_MOST_UNKNOWN = 10
_NAMED_KEYS = 3
_ROUNDS = Backoff(0.004, 0.25)
"""Waits between the rounds in which units that were deferred are tried again."""
_AWAY = Backoff(0.05, 2.0)
"""Waits for a database that is not available."""
_CLEAN_GROUPS = 10
_LONGEST_S = 1.0
_FIRST = 16
_MOST_CHARACTERS = 300
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


class UnitStatus(enum.Enum):
    """Whether a unit is to do, deferred or done, according to the ledger."""

    TO_DO = enum.auto()
    DEFERRED = enum.auto()
    DONE = enum.auto()
    """It is done, or another task has it."""


class UnitLedger(Protocol):
    """Records which units are done, in the same commit as their writes: in a task's progress, or a worker's claim."""

    @property
    def keys(self) -> Collection[bytes]:
        """Return the keys of the records that every commit validates; after a conflict on one, call `load`."""
        ...

    def change(self, done: Sequence[Unit], deferred: Collection[bytes]) -> Commit:
        """Return a commit that records that units are done, and that others are deferred."""
        ...

    def committed(self, version: int) -> None:
        """Update the state after the commit that `change` returned last took effect."""
        ...

    def load(self) -> None:
        """Read the records again, because others have written them, or the outcome of a commit is unknown."""
        ...

    def status(self, unit: Unit) -> UnitStatus:
        """Return the state of a unit (to do, deferred or done) as of the last `load` or `committed`."""
        ...


class UnitLoop:
    """Runs units in groups, runs those that conflict one by one, and defers those that conflict again.

    Guarantee: a unit takes effect in the same step in which the ledger records it. When `drain` returns, all units that
    were passed to `run` or `defer` are done, or belong to another worker.

    Attributes:
        deferred: units that were deferred, by id.
    """

    def __init__(self, execution: UnitExecution, ledger: UnitLedger) -> None:
        self.deferred: dict[bytes, Unit] = {}
        self._execution = execution
        self._ledger = ledger
        self._settings = execution.settings
        self._environment = execution.environment
        self._statistics = execution.statistics
        self._size = AdaptiveGroupSize(1 if self._settings.buffering == SERVER else self._settings.group)
        self._unknown = 0  # commits in a row with an unknown outcome
        self._began_s = self._environment.clock.elapsed_s()

    @property
    def group_size(self) -> int:
        """Return how many units the next group has."""
        return self._size.now

    def run(self, units: Sequence[Unit], following: Sequence[Unit] = ()) -> None:
        """Run units in groups; after a conflict, run the group's units one by one, and defer those that conflict again.

        Args:
            following: units that will run next.

        Raises:
            InvalidRequestError: a unit's function failed. Those before it have taken effect.
        """
        clock = self._environment.clock
        left = list(units)
        alone = 0  # units that run one by one
        while left:
            size = 1 if alone else self._size.now
            part, rest = left[:size], left[size:] or following
            before_s = clock.elapsed_s()
            attempt = self._attempt_units(part, following=rest[:size])
            if attempt.done:
                left = left[attempt.done :]
                if not alone:  # units that run one by one say nothing about groups
                    self._size.committed(clock.elapsed_s() - before_s)
                alone = max(0, alone - attempt.done)
            elif self._is_ledger_behind(attempt):
                self._reload_ledger()
                left = self.filter_remaining(left)
            elif len(part) > 1:
                alone = len(part)
                self._size.note_conflict()
            else:
                self._statistics.deferred += 1
                self.defer_unit(part[0])
                left = left[1:]
                alone = max(0, alone - 1)
                if len(self.deferred) >= self._settings.most_deferred:
                    self.drain()
                    left = self.filter_remaining(left)  # the ledger may have been read again, and others have run them

    def defer_unit(self, unit: Unit) -> None:
        """Keep a unit to run in `drain`."""
        self.deferred[unit.id] = unit

    def filter_remaining(self, units: Iterable[Unit]) -> list[Unit]:
        """Return the units whose state in the ledger is "to do"; keep those that are deferred for `drain`."""
        left: list[Unit] = []
        for unit in units:
            status = self._ledger.status(unit)
            if status is UnitStatus.TO_DO:
                left.append(unit)
            elif status is UnitStatus.DEFERRED:
                self.defer_unit(unit)
            else:
                self._statistics.skipped += 1
        return left

    def drain(self) -> None:
        """Run the deferred units again and again, at last with locks, until none is left.

        Raises:
            InvalidRequestError: a unit's function failed.
            TransactionConflictError: a unit conflicts however often it is tried, also with locks.
        """
        round_number = 0
        while self.deferred:
            if round_number:
                _ROUNDS.wait(round_number, self._environment.clock, self._environment.chance)
            for unit in list(self.deferred.values()):
                if unit.id in self.deferred:
                    self._rerun_deferred_unit(unit, round_number)
            round_number += 1

    def retry_while_unavailable(self, call: Callable[[], T]) -> T:
        """Return the result of a call, which is repeated while the database is not available."""
        return retry_while_unavailable(call, self._settings.patience_s, self._environment, self._statistics)

    def measure(self) -> None:
        """Update `run_s` in the statistics; done before each commit, since the attempt may die after it."""
        self._statistics.run_s = self._environment.clock.elapsed_s() - self._began_s

    # --- attempts -----------------------------------------------------------------------------------------------------
    def _rerun_deferred_unit(self, unit: Unit, round_number: int) -> None:
        attempt = self._attempt_units([unit], locked=round_number >= self._settings.rounds)
        if self._is_ledger_behind(attempt):
            self._reload_ledger()
        elif attempt.conflict and round_number >= self._settings.rounds + _LOCKED_ROUNDS:
            raise TransactionConflictError(
                "a unit conflicts however often it is tried: let it read less that other units change, and write "
                "nothing by other ways than its transaction",
                unit=format_key(unit.key),
                cells=[format_cell_key(key) for key in attempt.conflict[:_NAMED_KEYS]],
            )

    def _attempt_units(
        self, units: Sequence[Unit], *, locked: bool = False, following: Sequence[Unit] = ()
    ) -> GroupResult:
        """Run units, and note what has taken effect.

        Raises:
            InvalidRequestError: a unit's function failed. Those before it have taken effect.
        """

        def make_ledger_change(done: int) -> Commit:
            self.measure()
            return self._ledger.change(units[:done], self.deferred.keys())

        attempt = self.retry_while_unavailable(
            lambda: self._execution.run_group(units, make_ledger_change, locked=locked, following=following)
        )
        if attempt.done:
            self._unknown = 0
            self._ledger.committed(attempt.version)
            for unit in units[: attempt.done]:
                self.deferred.pop(unit.id, None)
        elif attempt.conflict or attempt.unknown:
            self._statistics.reruns += len(units)
        if attempt.failure is not None:
            raise unit_failure_error(attempt.failure, units[attempt.done])
        return attempt

    def _is_ledger_behind(self, attempt: GroupResult) -> bool:
        """Check whether the ledger has to be read again.

        Raises:
            UnavailableError: the outcome of one commit after the other is unknown.
        """
        self._unknown = self._unknown + 1 if attempt.unknown else 0
        if self._unknown > _MOST_UNKNOWN:
            raise UnavailableError("the database loses one reply after the other: run the task again later")
        return attempt.unknown or not set(attempt.conflict).isdisjoint(self._ledger.keys)

    def _reload_ledger(self) -> None:
        self.retry_while_unavailable(self._ledger.load)
        for unit in list(self.deferred.values()):
            if self._ledger.status(unit) is UnitStatus.DONE:
                del self.deferred[unit.id]


class AdaptiveGroupSize:
    """Adapts the number of units per group: halved after a conflict or a long group, doubled after ten others.

    Attributes:
        now: how many units the next group has.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._clean = 0
        self.now = min(_FIRST, most)

    def committed(self, duration_s: float) -> None:
        """Adapt the size after a group was committed.

        Args:
            duration_s: seconds from its start to its commit, which makes it visible.
        """
        if duration_s > _LONGEST_S:
            self.note_conflict()
            return
        self._clean += 1
        if self._clean >= _CLEAN_GROUPS:
            self._clean = 0
            self.now = min(2 * self.now, self._most)

    def note_conflict(self) -> None:
        """Adapt the size after a group conflicted."""
        self._clean = 0
        self.now = max(1, self.now // 2)


def retry_while_unavailable(
    call: Callable[[], T], patience_s: float, environment: Environment, statistics: Statistics
) -> T:
    """Return the result of a call, which is repeated while the database is not available.

    Args:
        patience_s: for how many seconds to repeat it.
        statistics: counts the repetitions.

    Raises:
        UnavailableError: the database did not come back.
        StorageFullError: waiting does not help.
    """
    clock = environment.clock
    began_s = clock.elapsed_s()
    for number in count(1):
        try:
            return call()
        except UnavailableError as error:
            if isinstance(error, StorageFullError) or clock.elapsed_s() - began_s >= patience_s:
                raise
        statistics.unavailable += 1
        _AWAY.wait(number, clock, environment.chance)
    raise AssertionError("the loop has no end of its own")


# --- messages ---------------------------------------------------------------------------------------------------------
def unit_failure_error(error: BaseException, unit: Unit) -> InvalidRequestError:
    """Return the error for a unit whose function raised another error."""
    found = InvalidRequestError(
        f"the function of a unit failed, nothing of the unit was written: {_advise_on_error(error)}",
        error=_error_text(error)[:_MOST_CHARACTERS],
        **_find_error_place(error),
        unit=format_key(unit.key),
    )
    found.__cause__ = error
    return found


def _advise_on_error(error: BaseException) -> str:
    if isinstance(error, NotFoundError) and "table" in error.variables:  # whether it was there before is not known
        return (
            "mend it, or create the table; if it was dropped since the job began, write again what units that are done "
            "had put there, since they do not run again"
        )
    return "mend it, and run the job or the query again, which goes on where it was"


def _error_text(error: BaseException) -> str:
    if isinstance(error, HoldfastError):
        return str(error)
    kind = type(error).__name__
    try:
        return f"{kind}: {error}".rstrip(": ")
    except Exception:  # noqa: BLE001 # an error whose text cannot be made must not hide which unit has failed
        return kind


def _find_error_place(error: BaseException) -> dict[str, str]:
    """Return the line of the function's file in which the error occurred; what it called elsewhere does not help."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = [one for one in frames if not one[0].co_filename.startswith(_PACKAGE)]
    # An alarm may ring at an instruction that the compiler has added, which is on no line: None, or in Python 3.11 -1.
    own = [
        f"{code.co_filename}:{line if line and line > 0 else code.co_firstlineno}"
        for code, line in theirs
        if code.co_filename == theirs[0][0].co_filename
    ]
    return {"at": own[-1]} if own else {}


def format_cell_key(key: bytes) -> str:
    """Return the key of a record for a message: table, row and column if it is a cell's."""
    first, last = tables_range()
    if key.startswith(CELL):
        row, column = parse_cell_key(key)
        return f"row {row!r}, column {column!r}"
    if first <= key < last:
        return f"rows of table {table_name_in_key(key)!r}"
    return repr(key)
