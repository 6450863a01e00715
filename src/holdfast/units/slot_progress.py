"""Record the figures of a worker of a work list, now and then: for people who watch the job."""

from __future__ import annotations

from dataclasses import replace

from holdfast.errors import FencedError, OutcomeUnknownError
from holdfast.transactions.base import Backend, Commit, Committed, Record
from holdfast.units.jobs import Job
from holdfast.units.progress import GONE_FROM_LIST, TaskProgress, progress_key
from holdfast.units.statistics import Statistics

_TRIES = 20


class SlotProgress:
    """The record of one worker. Unlike that of a task, no unit depends on it: only the end of the job.

    Attributes:
        key: the key of the record.

    Args:
        statistics: the figures of this attempt.
    """

    def __init__(self, database: Backend, job: Job, slot: int, statistics: Statistics) -> None:
        self._database = database
        self._job = job
        self.key = progress_key(job.id, slot)
        self._statistics = statistics
        self._recorded = Statistics()
        self._unknown: tuple[bytes, Statistics] | None = None  # a write whose reply was lost
        self._version = 0
        self._progress = TaskProgress(statistics=Statistics())

    def load(self) -> None:
        """Read the record.

        Raises:
            FencedError: the job was forgotten.
        """
        self._see(self._database.get_many([self.key]).get(self.key))

    def _see(self, record: Record | None) -> None:
        if record is None:
            raise FencedError(GONE_FROM_LIST)
        self._version = record.version
        self._progress = TaskProgress.of(record.value)
        if self._unknown is not None and self._unknown[0] == record.value:
            self._recorded = self._unknown[1]

    def is_finished_by(self, record: Record | None) -> bool:
        """Return whether the record is the one that `finish` has written or seen. It goes on with this one.

        Raises: like `load`.
        """
        before = self._version
        self._see(record)
        return self._progress.is_finished and self._version == before

    def record(self) -> None:
        """Write the figures so far; if another attempt has written, read them, and try again the next time."""
        self._write(is_finished=False)

    def finish(self) -> None:
        """Write all figures, and that the worker has found the list at its end.

        If that is written already, it writes no times again: else twins would overwrite each other's record.

        Raises:
            FencedError: the job was forgotten.
        """
        for _ in range(_TRIES):
            if self._progress.is_finished and self._recorded.units == self._statistics.units:
                return
            if self._write(is_finished=True):
                return

    def _write(self, *, is_finished: bool) -> bool:
        now = self._statistics.plus(Statistics())
        total = self._progress.statistics.plus(now.since(self._recorded))
        progress = replace(self._progress, statistics=total, is_finished=is_finished or self._progress.is_finished)
        value = progress.to_bytes()
        try:
            outcome = self._database.commit(Commit(reads={self.key: self._version}, puts={self.key: value}))
        except OutcomeUnknownError:
            self._unknown = value, now
            outcome = None
        if isinstance(outcome, Committed):
            self._version, self._progress, self._recorded = outcome.version, progress, now
            return True
        self.load()
        return False
