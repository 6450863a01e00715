"""Run the units of one task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from holdfast.errors import ConflictError, FencedError, OutcomeUnknownError, UnavailableError
from holdfast.transactions.base import Backend, Commit, Committed
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import Job, job_key, require_run
from holdfast.units.progress import GONE, Statistics, TaskProgress, progress_key
from holdfast.units.unit import Unit
from holdfast.units.unit_loop import Standing, UnitLoop


class ShardTask:
    """An attempt at one task of a job.

    Guarantee: when `run` returns, every unit of the task has taken effect exactly once, durably, whatever other
    attempts have done. If it raises, some have, and another attempt goes on from there. After the end of the run to
    which it belongs, nothing takes effect.

    Args:
        run: which run of the job the attempt belongs to, if that can end before the attempt does.
    """

    def __init__(self, execution: UnitExecution, backend: Backend, job: Job, shard: int, *, run: str = "") -> None:
        self._execution = execution
        self._backend = backend
        self._ledger = TaskLedger(execution.database, job, shard, execution.statistics, run=run)
        self._loop = UnitLoop(execution, self._ledger)

    def run(self, units: Iterable[Unit]) -> Statistics:
        """Run all units, and return what happened.

        Args:
            units: in the order of their ids, each once, and the same in every attempt.

        Raises:
            InvalidRequestError: a unit's function failed. The message names the unit.
            TransactionConflictError: a unit conflicts however often it is tried.
            FencedError: the job was forgotten meanwhile, or its run has ended.
            ConflictError: the database has lost commits; run the task again.
            UnavailableError: the database did not come back in time.

        Crash: the units that have taken effect are recorded; run the task again.
        """
        with self._execution.alarm.ready():
            self._run_units(units)
        self._loop.measure()
        self._finish()
        return self._execution.statistics

    def _run_units(self, units: Iterable[Unit]) -> None:
        loop = self._loop
        loop.patiently(self._ledger.load)
        waiting: list[Unit] = []  # a full group, in whose commit the next one is read ahead
        group: list[Unit] = []
        for unit in units:
            group += loop.sort_out([unit])
            if len(group) >= loop.group_size:
                if self._execution.reads_ahead:
                    loop.run(waiting, group)
                    waiting = loop.sort_out(group)  # since they were seen, another attempt may have done them
                else:
                    loop.run(group)
                group = []
        loop.run(waiting, group)
        loop.run(loop.sort_out(group))
        loop.drain()

    def _finish(self) -> None:
        """Record that the task is finished, durably: once Spark has been told, it never runs the task again."""
        patiently, ledger = self._loop.patiently, self._ledger
        is_durable = False
        while not is_durable:
            patiently(ledger.finish)
            patiently(self._backend.make_durable)
            # A database that crashed before it was asked to make that durable has perhaps lost it. Another attempt may
            # have recorded the same since, which need not be durable yet.
            is_durable = patiently(ledger.is_unchanged)


_TRIES = 20
"""Others write the record at most once for each attempt at the task that still runs."""


class TaskLedger:
    """The progress of one task, as one attempt sees it.

    Args:
        run: which run of the job the attempt belongs to.
        statistics: the figures of this attempt; they are recorded with the progress.

    Attributes:
        progress: as it was read or written last.
    """

    def __init__(self, database: Backend, job: Job, shard: int, statistics: Statistics, *, run: str = "") -> None:
        self.progress = TaskProgress(statistics=Statistics())
        self._database = database
        self._job = job
        self._run = run
        self._key = progress_key(job.id, shard)
        self._statistics = statistics
        self._others = Statistics()  # the figures of other attempts that the record has
        self._version = 0
        self._proposed = self.progress
        self._proposed_bytes = b""

    @property
    def keys(self) -> Collection[bytes]:
        """The record of the progress."""
        return (self._key,)

    def standing(self, unit: Unit) -> Standing:
        """Return how a unit stands."""
        if unit.id in self.progress.deferred:
            return Standing.PUT_OFF
        return Standing.DONE if unit.id <= self.progress.last else Standing.TO_DO

    def change(self, done: Sequence[Unit], put_off: Collection[bytes]) -> Commit:
        """Return what records that units are done."""
        self._proposed = self._after(done, put_off)
        if not done:
            return Commit(reads={self._key: self._version})
        self._proposed_bytes = self._proposed.to_bytes()
        return Commit(reads={self._key: self._version}, puts={self._key: self._proposed_bytes})

    def committed(self, version: int) -> None:
        """Note that the commit with the last change took effect."""
        self._proposed_bytes = b""
        self._version = version
        self.progress = self._proposed

    def load(self) -> None:
        """Read how far the task is.

        Raises:
            FencedError: the job was forgotten, or its run has ended.
            ConflictError: the database has lost what it had committed, so units that were done have to run again.
        """
        key = job_key(self._job.name)
        found_records = self._database.get_many([self._key, key] if self._run else [self._key])
        record = found_records.get(self._key)
        if record is None:
            raise FencedError(GONE)
        if key in found_records:
            require_run(Job.of(key, found_records[key]), self._run)
        found = TaskProgress.of(record.value)
        if self._has_lost(found):
            raise ConflictError("the database has lost commits, perhaps in a crash: run the task again")
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
            found.last < known.last
            or (known.is_finished and not found.is_finished)
            or any(unit_id <= known.last for unit_id in again)
        )

    def finish(self) -> None:
        """Record that the task is finished.

        Raises:
            FencedError: the job was forgotten, or is finished.
            UnavailableError: the record cannot be written; repeat later.
        """
        for _ in range(_TRIES):
            if self.progress.is_finished:
                return
            self._proposed = replace(self._after((), ()), is_finished=True)
            assert not self._proposed.deferred, "U3: every unit of the input was done, as this attempt has seen it"
            commit = Commit(reads={self._key: self._version}, puts={self._key: self._proposed.to_bytes()})
            try:
                outcome = self._database.commit(commit)
            except OutcomeUnknownError:
                self._statistics.unknown += 1
                outcome = None
            if isinstance(outcome, Committed):
                self.committed(outcome.version)
            else:
                self.load()
        raise UnavailableError("the end of the task cannot be recorded: run the task again later")

    def _after(self, done: Sequence[Unit], put_off: Collection[bytes]) -> TaskProgress:
        done_ids = {unit.id for unit in done}
        statistics = self._others.plus(self._statistics)
        statistics.units += len(done)
        statistics.groups += bool(done)
        return TaskProgress(
            last=max(self.progress.last, *put_off, *done_ids, b""),
            done=self.progress.done + len(done),
            deferred=sorted({*self.progress.deferred, *put_off} - done_ids),
            statistics=statistics,
        )
