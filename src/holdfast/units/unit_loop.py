"""Run many units: in groups, one by one if they conflict, and at last those that conflict then.

The order of work is that of paper 003 (4.5.3): a unit that conflicts is put off until the others are done. What records
that units are done, and who may run them, is a `Ledger`: the progress of a task, or the claim of a worker.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeVar

from holdfast.errors import TransactionConflictError, UnavailableError
from holdfast.units.execution import Attempt, Change, UnitExecution
from holdfast.units.failures import shown_cell, unit_failed
from holdfast.units.group_size import GroupSize
from holdfast.units.patience import patiently
from holdfast.units.settings import SERVER
from holdfast.units.unit import Unit, shown_key

T = TypeVar("T")

_LOCKED_ROUNDS = 10
_MOST_UNKNOWN = 10
_NAMED_KEYS = 3
_FIRST_WAIT_S = 0.002
_LONGEST_WAIT_S = 0.25


class Standing(enum.Enum):
    """How a unit stands in the ledger."""

    TO_DO = enum.auto()
    PUT_OFF = enum.auto()
    DONE = enum.auto()
    """It is done, or somebody else's."""


class Ledger(Protocol):
    """Records which units are done, in the commit of these units."""

    @property
    def keys(self) -> Collection[bytes]:
        """The records that every commit validates; if one has changed, the ledger has to be read again."""
        ...

    def change(self, done: Sequence[Unit], put_off: Collection[bytes]) -> Change:
        """Return what records that units are done, and that others are put off."""
        ...

    def committed(self, version: int) -> None:
        """Note that the commit with the last `change` took effect."""
        ...

    def load(self) -> None:
        """Read the record again, because others have written it, or nobody knows."""
        ...

    def standing(self, unit: Unit) -> Standing:
        """Return how a unit stands, as of the last `load` or `committed`."""
        ...


class UnitLoop:
    """Runs the units of one ledger.

    Guarantee: a unit takes effect in the same step in which the ledger records it. When `drain` returns, all units that
    were passed to `run` or `put_off` are done, or somebody else's.

    Attributes:
        deferred: units that were put off, by id.
    """

    def __init__(self, execution: UnitExecution, ledger: Ledger) -> None:
        self.deferred: dict[bytes, Unit] = {}
        self._execution = execution
        self._ledger = ledger
        self._settings = execution.settings
        self._environment = execution.environment
        self._statistics = execution.statistics
        self._size = GroupSize(1 if self._settings.buffering == SERVER else self._settings.group)
        self._unknown = 0  # commits in a row whose outcome nobody knew
        self._began_s = self._environment.clock.elapsed_s()

    @property
    def group_size(self) -> int:
        """How many units the next group has."""
        return self._size.now

    def run(self, units: Sequence[Unit], following: Sequence[Unit] = ()) -> None:
        """Run units together; if they conflict, one by one; put off those that conflict then.

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
            attempt = self._attempt(part, following=rest[:size])
            if attempt.done:
                left = left[attempt.done :]
                if not alone:  # units that run one by one say nothing about groups
                    self._size.committed(clock.elapsed_s() - before_s)
                alone = max(0, alone - attempt.done)
            elif self._is_behind(attempt):
                self._load()
                left = self.sort_out(left)
            elif len(part) > 1:
                alone = len(part)
                self._size.conflicted()
            else:
                self._statistics.deferred += 1
                self.put_off(part[0])
                left = left[1:]
                alone = max(0, alone - 1)
                if len(self.deferred) >= self._settings.most_deferred:
                    self.drain()
                    left = self.sort_out(left)  # the ledger may have been read again, and others have run them

    def put_off(self, unit: Unit) -> None:
        """Keep a unit for `drain`."""
        self.deferred[unit.id] = unit

    def sort_out(self, units: Iterable[Unit]) -> list[Unit]:
        """Return those units that nobody has taken up; put off those that somebody else has put off."""
        left: list[Unit] = []
        for unit in units:
            standing = self._ledger.standing(unit)
            if standing is Standing.TO_DO:
                left.append(unit)
            elif standing is Standing.PUT_OFF:
                self.put_off(unit)
            else:
                self._statistics.skipped += 1
        return left

    def drain(self) -> None:
        """Run the units that were put off, until none is left.

        Raises:
            InvalidRequestError: a unit's function failed.
            TransactionConflictError: a unit conflicts however often it is tried, also with locks.
        """
        clock, chance = self._environment.clock, self._environment.chance
        round_number = 0
        while self.deferred:
            if round_number:
                longest_s = min(_FIRST_WAIT_S * 2**round_number, _LONGEST_WAIT_S)
                clock.sleep(longest_s * chance.fraction())
            for unit in list(self.deferred.values()):
                if unit.id in self.deferred:
                    self._run_again(unit, round_number)
            round_number += 1

    def patiently(self, call: Callable[[], T]) -> T:
        """Return what a call returns; wait while the database is not available."""
        return patiently(call, self._settings.patience_s, self._environment, self._statistics)

    def measure(self) -> None:
        """Note in the statistics for how long units have run: before each commit, since an attempt may die."""
        self._statistics.run_s = self._environment.clock.elapsed_s() - self._began_s

    # --- attempts -----------------------------------------------------------------------------------------------------
    def _run_again(self, unit: Unit, round_number: int) -> None:
        attempt = self._attempt([unit], locked=round_number >= self._settings.rounds)
        if self._is_behind(attempt):
            self._load()
        elif attempt.conflict and round_number >= self._settings.rounds + _LOCKED_ROUNDS:
            raise TransactionConflictError(
                "a unit conflicts however often it is tried: let it read less that other units change, and write "
                "nothing by other ways than its transaction",
                unit=shown_key(unit.key),
                cells=[shown_cell(key) for key in attempt.conflict[:_NAMED_KEYS]],
            )

    def _attempt(self, units: Sequence[Unit], *, locked: bool = False, following: Sequence[Unit] = ()) -> Attempt:
        """Run units, and note what has taken effect.

        Raises:
            InvalidRequestError: a unit's function failed. Those before it have taken effect.
        """

        def change(done: int) -> Change:
            self.measure()
            return self._ledger.change(units[:done], self.deferred.keys())

        attempt = self.patiently(lambda: self._execution.attempt(units, change, locked=locked, following=following))
        if attempt.done:
            self._unknown = 0
            self._ledger.committed(attempt.version)
            for unit in units[: attempt.done]:
                self.deferred.pop(unit.id, None)
        elif attempt.conflict or attempt.unknown:
            self._statistics.reruns += len(units)
        if attempt.failure is not None:
            raise unit_failed(attempt.failure, units[attempt.done])
        return attempt

    def _is_behind(self, attempt: Attempt) -> bool:
        """Check whether the ledger has to be read again.

        Raises:
            UnavailableError: the outcome of one commit after the other is unknown.
        """
        self._unknown = self._unknown + 1 if attempt.unknown else 0
        if self._unknown > _MOST_UNKNOWN:
            raise UnavailableError("the database loses one reply after the other: run the task again later")
        return attempt.unknown or not set(attempt.conflict).isdisjoint(self._ledger.keys)

    def _load(self) -> None:
        self.patiently(self._ledger.load)
        for unit in list(self.deferred.values()):
            if self._ledger.standing(unit) is Standing.DONE:
                del self.deferred[unit.id]
