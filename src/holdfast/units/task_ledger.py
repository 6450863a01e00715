"""Keep the progress of a task: the ledger that makes retries, twins and zombies harmless.

Several attempts at a task may run at the same time. Each commit validates the version of the progress, so of two
attempts that have run the same units, one commits; the other reads how far the task is, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from holdfast.errors import ConflictError, FencedError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.transactions.base import Commit, Committed, TransactionStore
from holdfast.units.execution import Change
from holdfast.units.jobs import Job
from holdfast.units.ordered_units import PlacedUnit
from holdfast.units.progress import START, Place, TaskProgress, progress_key
from holdfast.units.statistics import Statistics
from holdfast.units.unit import Unit
from holdfast.units.unit_loop import Standing

__all__ = ["TaskLedger"]

_TRIES = 20
"""Others write the record at most once for each attempt at the task that still runs."""


class TaskLedger:
    """The progress of one task, as one attempt sees it.

    Args:
        statistics: the figures of this attempt; they are recorded with the progress.

    Attributes:
        progress: as it was read or written last.
    """

    def __init__(self, store: TransactionStore, job: Job, shard: int, statistics: Statistics) -> None:
        self.progress = TaskProgress(statistics=Statistics())
        self._store = store
        self._job = job
        self._key = progress_key(job.id, shard)
        self._statistics = statistics
        self._others = Statistics()  # the figures of other attempts that the record has
        self._version = 0
        self._seen = START  # the last unit of the input that this attempt has seen
        self._taken = START  # the last one that is done or put off
        self._places: dict[bytes, tuple[Place, Place]] = {}  # of units on their way: the place before, and their own
        self._proposed = self.progress
        self._proposed_bytes = b""

    @property
    def keys(self) -> Collection[bytes]:
        """The record of the progress."""
        return (self._key,)

    # --- the input ----------------------------------------------------------------------------------------------------
    def see(self, placed: PlacedUnit) -> Standing:
        """Take in the next unit of the input; return how it stands.

        Raises:
            InvalidRequestError: the input is not that of an earlier attempt.
        """
        self._places[placed.unit.id] = (self._seen, placed.place)
        self._seen = placed.place
        standing = self.standing(placed.unit)
        if standing is Standing.DONE:
            self._statistics.skipped += 1
            del self._places[placed.unit.id]
        return standing

    def check_end(self) -> None:
        """Check that the input has all units that earlier attempts have seen.

        Raises:
            InvalidRequestError: it has not.
        """
        self._check_place(self._seen)

    def _check_place(self, place: Place) -> None:
        """Check that the units up to a place are those that are recorded, unless it is further than the record."""
        reached = self.progress.place
        if place.last <= reached.last and place != reached:
            raise self._changed()

    def _changed(self) -> InvalidRequestError:
        return InvalidRequestError(
            "the input of the job is not what it was when the job began: run the old input, or choose another name "
            "for the job",
            job=self._job.name,
        )

    # --- the ledger ---------------------------------------------------------------------------------------------------
    def standing(self, unit: Unit) -> Standing:
        """Return how a unit stands.

        Raises:
            InvalidRequestError: the input is not that of an earlier attempt.
        """
        if unit.id in self.progress.deferred:
            return Standing.PUT_OFF
        if unit.id <= self.progress.place.last:
            return Standing.DONE
        self._check_place(self._places[unit.id][0])
        if self.progress.is_finished:
            raise self._changed()
        return Standing.TO_DO

    def take_up(self, unit: Unit) -> None:
        """Note that a unit is put off; the next commit records it."""
        self._taken = max(self._taken, self._places[unit.id][1], key=_last)

    def change(self, done: Sequence[Unit], put_off: Collection[bytes]) -> Change:
        """Return what records that units are done."""
        self._proposed = self._after(done, put_off)
        if not done:
            return Change(reads={self._key: self._version})
        self._proposed_bytes = self._proposed.to_bytes()
        return Change(reads={self._key: self._version}, puts={self._key: self._proposed_bytes})

    def committed(self, version: int) -> None:
        """Note that the commit with the last change took effect."""
        self._proposed_bytes = b""
        self._version = version
        self.progress = self._proposed
        waiting = set(self.progress.deferred)
        self._places = {
            unit_id: places
            for unit_id, places in self._places.items()
            if unit_id > self.progress.place.last or unit_id in waiting
        }

    def load(self) -> None:
        """Read how far the task is.

        Raises:
            FencedError: the job was forgotten.
            ConflictError: the database has lost what it had committed, so units that were done have to run again.
        """
        record = self._store.get_many([self._key]).get(self._key)
        if record is None:
            raise FencedError("the job was forgotten meanwhile: begin it again", job=self._job.name)
        found = TaskProgress.of(record.value)
        if self._has_lost(found):
            raise ConflictError(
                "the database has lost commits, perhaps in a crash: run the task again", job=self._job.name
            )
        if record.value == self._proposed_bytes:
            # The commit whose reply was lost has taken effect, and its figures are recorded.
            self._statistics.units += found.done - self.progress.done
            self._statistics.groups += 1
            self.committed(record.version)
        own = self.progress.statistics.since(self._others)
        self._others = found.statistics.since(own)
        self._version = record.version
        self.progress = found

    def is_unchanged(self) -> bool:
        """Read the record, and return whether it is the one that this attempt has seen last.

        Raises: like `load`.
        """
        before = self._version
        self.load()
        return self._version == before

    def _has_lost(self, found: TaskProgress) -> bool:
        """Check whether something was done, and is not done any more."""
        known = self.progress
        again = set(found.deferred).difference(known.deferred)
        return (
            found.place.count < known.place.count
            or (known.is_finished and not found.is_finished)
            or any(unit_id <= known.place.last for unit_id in again)
        )

    def finish(self) -> None:
        """Record that the task is finished.

        Raises:
            InvalidRequestError: the input of another attempt has more units.
            FencedError: the job was forgotten, or is finished.
            UnavailableError: the record cannot be written; repeat later.
        """
        for _ in range(_TRIES):
            self.check_end()
            if self.progress.is_finished:
                return
            self._proposed = replace(self._after((), ()), is_finished=True)
            assert not self._proposed.deferred, "U3: every unit of the input was done, as this attempt has seen it"
            commit = Commit(reads={self._key: self._version}, puts={self._key: self._proposed.to_bytes()})
            try:
                outcome = self._store.commit(commit)
            except OutcomeUnknownError:
                self._statistics.unknown += 1
                outcome = None
            if isinstance(outcome, Committed):
                self.committed(outcome.version)
            else:
                self.load()
        raise UnavailableError("the end of the task cannot be recorded: run the task again later", job=self._job.name)

    def _after(self, done: Sequence[Unit], put_off: Collection[bytes]) -> TaskProgress:
        places = [self._places[unit.id][1] for unit in done if unit.id in self._places]
        deferred = {*self.progress.deferred, *put_off}.difference(unit.id for unit in done)
        statistics = self._others.plus(self._statistics)
        statistics.units += len(done)
        statistics.groups += bool(done)
        return TaskProgress(
            place=max(self.progress.place, self._taken, *places, key=_last),
            deferred=sorted(deferred),
            statistics=statistics,
        )


def _last(place: Place) -> bytes:
    return place.last
