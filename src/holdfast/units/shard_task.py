"""Run the units of one task: in groups, then one by one, and at last those that conflicted.

The order of work is that of paper 003 (4.5.3): a unit that conflicts is put off until the others are done. Several
attempts of a task may run at the same time. Each commit validates the version of the task's progress, so of two
attempts that have run the same units, one commits; the other reads how far the task is, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from holdfast.errors import (
    FencedError,
    InvalidRequestError,
    OutcomeUnknownError,
    TransactionConflictError,
    UnavailableError,
)
from holdfast.transactions.base import Commit, Database
from holdfast.units.execution import Attempt, Change, UnitExecution
from holdfast.units.failures import shown_cell, unit_failed
from holdfast.units.group_size import GroupSize
from holdfast.units.jobs import Job
from holdfast.units.ordered_units import PlacedUnit, ordered_units
from holdfast.units.patience import patiently
from holdfast.units.progress import START, Place, TaskProgress, progress_key
from holdfast.units.settings import SERVER
from holdfast.units.statistics import Statistics
from holdfast.units.unit import Unit

__all__ = ["ShardTask"]

T = TypeVar("T")

_MOST_DEFERRED = 100
"""Units that are put off at the same time: their ids are part of every commit, and the units stay in memory."""

_LOCKED_ROUNDS = 10
_MOST_UNKNOWN = 10
_NAMED_KEYS = 3
_FIRST_WAIT_S = 0.002
_LONGEST_WAIT_S = 0.25


class ShardTask:
    """An attempt at one task of a job.

    Guarantee: when `run` returns, every unit of the task has taken effect exactly once, durably, whatever other
    attempts have done. If it raises, some have, and another attempt goes on from there.

    Args:
        database: as durable as it must be at the end: `make_durable` is called before `run` returns.
    """

    def __init__(self, execution: UnitExecution, database: Database, job: Job, shard: int) -> None:
        self._execution = execution
        self._database = database
        self._settings = execution.settings
        self._environment = execution.environment
        self._statistics = execution.statistics
        self._job = job
        self._key = progress_key(job.id, shard)
        self._size = GroupSize(1 if execution.settings.buffering == SERVER else execution.settings.group)
        self._version = 0
        self._progress = TaskProgress(statistics=Statistics())
        self._recorded = Statistics()  # what of this attempt's figures the record has
        self._place = START  # of the last unit that this attempt has seen
        self._taken = START  # of the last unit that is done or put off
        self._unknown = 0  # commits in a row whose outcome nobody knew
        self._deferred: dict[bytes, Unit] = {}

    def run(self, units: Iterable[Unit]) -> Statistics:
        """Run all units, given in the order of their ids, and return what happened.

        Raises:
            InvalidRequestError: a unit's function failed, a key occurs twice, or the input is not that of an earlier
                attempt. The message names the unit.
            TransactionConflictError: a unit conflicts however often it is tried.
            FencedError: the job was forgotten meanwhile.
            UnavailableError: the database did not come back in time.

        Crash: the units that have taken effect are recorded; run the task again.
        """
        clock = self._environment.clock
        before_s = clock.elapsed_s()
        self._load()
        group: list[PlacedUnit] = []
        for placed in ordered_units(units):
            if self._is_to_do(placed):
                group.append(placed)
            if len(group) >= self._size.now:
                self._run_all(group)
                group = []
        self._run_all(group)
        self._check_place(self._place)
        if not self._deferred.keys() >= set(self._progress.deferred):
            self._load()  # another attempt has put off more, and is perhaps done with it
        self._drain()
        self._statistics.run_s = clock.elapsed_s() - before_s
        self._finish()
        return self._statistics

    # --- where the task is --------------------------------------------------------------------------------------------
    def _load(self) -> None:
        """Read how far the task is.

        Raises:
            FencedError: the job was forgotten.
            UnavailableError: the database has lost what it had committed, so units that are done have to run again.
        """
        record = self._patiently(lambda: self._execution.store.get_many([self._key])).get(self._key)
        if record is None:
            raise FencedError("the job was forgotten meanwhile: begin it again", job=self._job.name)
        self._version = record.version
        found = TaskProgress.of(record.value)
        if found.place.count < self._progress.place.count:
            raise UnavailableError("the database has lost commits, perhaps in a crash: run the task again")
        self._progress = found
        put_off = set(found.deferred)
        for unit_id in [one for one in self._deferred if one <= found.place.last and one not in put_off]:
            del self._deferred[unit_id]  # another attempt has done it

    def _is_to_do(self, placed: PlacedUnit) -> bool:
        """Take up a unit of the input; return whether no attempt has taken it up before."""
        before, self._place = self._place, placed.place
        reached = self._progress.place
        if placed.unit.id > reached.last:
            self._check_place(before)
            return True
        self._pass_by(placed)
        return False

    def _check_place(self, place: Place) -> None:
        """Check that the units up to a place are those that are recorded, unless it is further than the record.

        Raises:
            InvalidRequestError: they are not.
        """
        reached = self._progress.place
        if place.last <= reached.last and place != reached:
            raise InvalidRequestError(
                "the input of the job is not what it was when the job began: run the old input, or choose another name "
                "for the job",
                job=self._job.name,
            )

    def _pass_by(self, placed: PlacedUnit) -> None:
        """Leave out a unit that another attempt has taken up; keep it if it was put off."""
        if placed.unit.id in self._progress.deferred:
            self._deferred[placed.unit.id] = placed.unit
        else:
            self._statistics.skipped += 1

    def _sort_out(self, group: list[PlacedUnit]) -> list[PlacedUnit]:
        """Return those units of a group that nobody has taken up."""
        reached = self._progress.place
        passed = [placed for placed in group if placed.unit.id <= reached.last]
        left = group[len(passed) :]
        for placed in passed:
            self._pass_by(placed)
        if passed and left:
            self._check_place(passed[-1].place)
        return left

    # --- attempts -----------------------------------------------------------------------------------------------------
    def _run_all(self, group: list[PlacedUnit]) -> None:
        """Run units together; if they conflict, one by one; put off those that conflict then."""
        clock = self._environment.clock
        alone = 0  # units that run one by one
        while group:
            part = group[: 1 if alone else self._size.now]
            before_s = clock.elapsed_s()
            attempt = self._attempt([placed.unit for placed in part], [placed.place for placed in part])
            if attempt.done:
                group = group[attempt.done :]
                alone = max(0, alone - attempt.done)
                self._size.committed(clock.elapsed_s() - before_s)
            elif self._is_behind(attempt):
                self._load()
                group = self._sort_out(group)
            elif len(part) > 1:
                alone = len(part)
                self._size.conflicted()
            else:
                self._put_off(part[0])
                group = group[1:]
                alone = max(0, alone - 1)
                if len(self._deferred) >= _MOST_DEFERRED:
                    self._drain()

    def _put_off(self, placed: PlacedUnit) -> None:
        self._statistics.deferred += 1
        self._deferred[placed.unit.id] = placed.unit
        self._taken = placed.place

    def _drain(self) -> None:
        """Run the units that were put off, until none is left."""
        clock, chance = self._environment.clock, self._environment.chance
        round_number = 0
        while self._deferred:
            if round_number:
                longest_s = min(_FIRST_WAIT_S * 2**round_number, _LONGEST_WAIT_S)
                clock.sleep(longest_s * chance.fraction())
            for unit in list(self._deferred.values()):
                if unit.id in self._deferred:
                    self._run_put_off(unit, round_number)
            round_number += 1

    def _run_put_off(self, unit: Unit, round_number: int) -> None:
        attempt = self._attempt([unit], [], locked=round_number >= self._settings.rounds)
        if self._is_behind(attempt):
            self._load()
        elif attempt.conflict and round_number >= self._settings.rounds + _LOCKED_ROUNDS:
            raise TransactionConflictError(
                "a unit conflicts however often it is tried: let it read less that other units change, and write "
                "nothing by other ways than its transaction",
                unit=unit.key,
                job=self._job.name,
                cells=[shown_cell(key) for key in attempt.conflict[:_NAMED_KEYS]],
            )

    def _attempt(self, units: Sequence[Unit], places: Sequence[Place], *, locked: bool = False) -> Attempt:
        """Run units, and note what has taken effect.

        Args:
            places: of the units; none if they were put off.

        Raises:
            InvalidRequestError: a unit's function failed. Those before it have taken effect.
        """
        proposed: TaskProgress | None = None

        def change(done: int) -> Change:
            nonlocal proposed
            proposed = self._after(units[:done], places[done - 1] if places else self._taken)
            return Change(reads={self._key: self._version}, puts={self._key: proposed.to_bytes()})

        attempt = self._patiently(lambda: self._execution.attempt(units, change, locked=locked))
        if attempt.done:
            assert proposed is not None, "a commit has taken the change along"
            self._note(attempt, proposed)
            for unit in units[: attempt.done]:
                self._deferred.pop(unit.id, None)
        elif attempt.conflict or attempt.unknown:
            self._statistics.reruns += len(units)
        if attempt.failure is not None:
            raise unit_failed(attempt.failure, units[attempt.done], self._job.name)
        return attempt

    def _after(self, done: Sequence[Unit], place: Place) -> TaskProgress:
        """Return the progress after units."""
        deferred = {*self._progress.deferred, *self._deferred}.difference(unit.id for unit in done)
        furthest = max(place, self._taken, self._progress.place, key=lambda one: one.last)
        return TaskProgress(place=furthest, deferred=sorted(deferred), statistics=self._total())

    def _total(self) -> Statistics:
        """Return the figures of all attempts: those in the record, and what this attempt has not recorded yet."""
        return self._progress.statistics.plus(self._statistics.since(self._recorded))

    def _note(self, attempt: Attempt, progress: TaskProgress) -> None:
        """Note what this attempt's commit has recorded."""
        self._recorded = self._recorded.plus(progress.statistics.since(self._progress.statistics))
        self._version = attempt.version
        self._progress = progress
        self._taken = progress.place

    def _is_behind(self, attempt: Attempt) -> bool:
        """Check whether the record of the progress has to be read again.

        Raises:
            UnavailableError: the outcome of one commit after the other is unknown.
        """
        self._unknown = self._unknown + 1 if attempt.unknown else 0
        if self._unknown > _MOST_UNKNOWN:
            raise UnavailableError("the database loses one reply after the other: run the task again later")
        return attempt.unknown or self._key in attempt.conflict

    def _finish(self) -> None:
        """Record that the task is finished, and make everything durable: Spark never runs it again."""
        while not self._progress.is_finished:
            finished = replace(self._after([], self._taken), is_finished=True)
            commit = Commit(reads={self._key: self._version}, puts={self._key: finished.to_bytes()})
            try:
                self._patiently(partial(self._database.commit, commit))
            except OutcomeUnknownError:
                self._statistics.unknown += 1
            self._load()
        self._patiently(self._database.make_durable)

    def _patiently(self, call: Callable[[], T]) -> T:
        return patiently(call, self._settings.patience_s, self._environment, self._statistics)
