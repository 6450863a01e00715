"""Run the units of one task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from holdfast.errors import ConflictError, FencedError, OutcomeUnknownError, UnavailableError
from holdfast.transactions.base import Backend, Commit, Committed, Record
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import WORK_LIST, Job, job_key, require_running_run
from holdfast.units.progress import GONE, GONE_FROM_LIST, Statistics, TaskProgress, progress_key
from holdfast.units.unit import Unit
from holdfast.units.unit_loop import UnitLoop, UnitStatus


class ShardTask:
    """An attempt at one task of a job, which runs the units of the task.

    Guarantee: when `run` returns, every unit of the task has taken effect exactly once, durably, whatever other
    attempts have done. If it raises, some units have taken effect, and another attempt continues with the rest. Once
    the job's run `run` has ended, nothing of the attempt takes effect.

    Args:
        shard: number of the task.
        run: id of the job's run to which the attempt belongs, if that can end before the attempt does.
    """

    def __init__(self, execution: UnitExecution, backend: Backend, job: Job, shard: int, *, run: str = "") -> None:
        self._execution = execution
        self._backend = backend
        self._ledger = TaskLedger(execution.database, job, shard, execution.statistics, run=run)
        self._loop = UnitLoop(execution, self._ledger)

    def run(self, units: Iterable[Unit]) -> Statistics:
        """Run all units of the task that are not done yet, and return the statistics of this attempt.

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
        self._finish_task()
        return self._execution.statistics

    def _run_units(self, units: Iterable[Unit]) -> None:
        loop = self._loop
        loop.retry_while_unavailable(self._ledger.load)
        waiting: list[Unit] = []  # a full group, in whose commit the next one is read ahead
        group: list[Unit] = []
        for unit in units:
            group += loop.filter_remaining([unit])
            if len(group) >= loop.group_size:
                if self._execution.reads_ahead:
                    loop.run(waiting, group)
                    waiting = loop.filter_remaining(group)  # since they were seen, another attempt may have done them
                else:
                    loop.run(group)
                group = []
        loop.run(waiting, group)
        loop.run(loop.filter_remaining(group))
        loop.drain()

    def _finish_task(self) -> None:
        """Record that the task is finished, durably: once Spark has been told, it never runs the task again."""
        retry_unavailable, ledger, key = self._loop.retry_while_unavailable, self._ledger, self._ledger.key
        is_durable = False
        while not is_durable:
            retry_unavailable(ledger.finish)
            retry_unavailable(self._backend.make_durable)
            # A database that crashed before it was asked to make that durable has perhaps lost it. Another attempt may
            # have recorded the same since, which need not be durable yet.
            is_durable = ledger.update_is_finished(retry_unavailable(lambda: self._backend.get_many([key])).get(key))


_TRIES = 20
"""Others write the record at most once for each attempt at the task that still runs."""


class ProgressRecord:
    """The record of a task's progress, as one attempt at the task reads and writes it.

    Args:
        number: the number of the task.
        statistics: the figures of this attempt; the record has the sum of all attempts.
        run: id of the job's run to which the attempt belongs.

    Attributes:
        key: the key of the record.
        progress: the progress as last read or written.
    """

    def __init__(self, database: Backend, job: Job, number: int, statistics: Statistics, *, run: str = "") -> None:
        self.key = progress_key(job.id, number)
        self.progress = TaskProgress(statistics=Statistics())
        self._database = database
        self._job = job
        self._run = run
        self._statistics = statistics
        self._recorded = Statistics()  # what the record has of them
        self._version = 0
        self._proposed = b"", self.progress, self._recorded  # by the last write

    def propose(self, progress: TaskProgress, done: int = 0) -> Commit:
        """Return a commit that writes a progress into the record, with the figures of this attempt.

        Args:
            done: how many units take effect in this commit; the figures do not contain them yet.
        """
        own = self._statistics.plus(Statistics(units=done, groups=bool(done)))
        found = replace(progress, statistics=self.progress.statistics.plus(own.since(self._recorded)))
        self._proposed = found.to_bytes(), found, own
        return Commit(reads={self.key: self._version}, puts={self.key: self._proposed[0]})

    def committed(self, version: int) -> None:
        """Update the state after the commit that `propose` returned last took effect."""
        _value, self.progress, self._recorded = self._proposed
        self._proposed = b"", self.progress, self._recorded
        self._version = version

    def load(self) -> None:
        """Read the record.

        Raises:
            FencedError: the job was forgotten, or its run has ended.
        """
        key = job_key(self._job.name)
        found = self._database.get_many([self.key, key] if self._run else [self.key])
        self.update_from_record(found.get(self.key))
        if key in found:
            require_running_run(Job.of(key, found[key]), self._run)

    def update_from_record(self, record: Record | None) -> None:
        """Replace this attempt's knowledge of the progress by a record that was just read.

        Raises:
            FencedError: the record is None, because the job was forgotten.
        """
        if record is None:
            raise FencedError(GONE_FROM_LIST if self._job.kind == WORK_LIST else GONE)
        value, _progress, own = self._proposed
        if record.value == value:  # a commit whose reply was lost has taken effect
            self._statistics.units, self._statistics.groups = own.units, own.groups
            self.committed(record.version)
        self._version = record.version
        self.progress = TaskProgress.of(record.value)

    def write(self, *, is_finished: bool) -> bool:
        """Write the figures so far and whether the task is finished; return whether the write is known to be done.

        If another attempt has written meanwhile, or the reply is lost, load the record again.

        Raises:
            FencedError: the job was forgotten, or is finished.
        """
        finished = is_finished or self.progress.is_finished
        assert not (finished and self.progress.deferred), "U3: every unit was done, as this attempt has seen it"
        try:
            outcome = self._database.commit(self.propose(replace(self.progress, is_finished=finished)))
        except OutcomeUnknownError:
            self._statistics.unknown += 1
        else:
            if isinstance(outcome, Committed):
                self.committed(outcome.version)
                return True
        self.load()
        return False

    def finish(self) -> None:
        """Record that the task is finished, unless this is recorded, so that attempts do not overwrite each other.

        Raises:
            FencedError: the job was forgotten, or is finished.
            UnavailableError: the record cannot be written; repeat later.
        """
        for _ in range(_TRIES):
            if self.progress.is_finished and self._recorded.units == self._statistics.units:
                return
            if self.write(is_finished=True):
                return
        raise UnavailableError("the end of the task cannot be recorded: run the task again later")

    def update_is_finished(self, record: Record | None) -> bool:
        """See a record that was just read, and return whether it still is the one that `finish` wrote or found.

        Raises: like `see`.
        """
        before = self._version
        self.update_from_record(record)
        return self.progress.is_finished and self._version == before


class TaskLedger(ProgressRecord):
    """The ledger of a task's units: the record of its progress, which the commits of the units write."""

    @property
    def keys(self) -> Collection[bytes]:
        """Return the key of the record of the progress."""
        return (self.key,)

    def status(self, unit: Unit) -> UnitStatus:
        """Return the state of a unit: to do, deferred or done."""
        if unit.id in self.progress.deferred:
            return UnitStatus.DEFERRED
        return UnitStatus.DONE if unit.id <= self.progress.last else UnitStatus.TO_DO

    def change(self, done: Sequence[Unit], deferred: Collection[bytes]) -> Commit:
        """Return a commit that records that units are done, and that others are deferred."""
        if not done:
            return Commit(reads={self.key: self._version})
        return self.propose(self._progress_after(done, deferred), len(done))

    def update_from_record(self, record: Record | None) -> None:
        """Replace this attempt's knowledge of the progress by a record that was just read.

        Raises:
            FencedError: the record is None, because the job was forgotten.
            ConflictError: the database has lost what it had committed, so units that were done have to run again.
        """
        known = self.progress
        super().update_from_record(record)
        found = self.progress
        again = set(found.deferred).difference(known.deferred)
        if (
            found.last < known.last
            or (known.is_finished and not found.is_finished)
            or any(unit_id <= known.last for unit_id in again)
        ):
            raise ConflictError("the database has lost commits, perhaps in a crash: run the task again")

    def _progress_after(self, done: Sequence[Unit], deferred: Collection[bytes]) -> TaskProgress:
        done_ids = {unit.id for unit in done}
        return replace(
            self.progress,
            last=max(self.progress.last, *deferred, *done_ids, b""),
            done=self.progress.done + len(done),
            deferred=sorted({*self.progress.deferred, *deferred} - done_ids),
        )
