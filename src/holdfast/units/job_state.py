"""Tell how far a job is, as one snapshot shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import InvalidRequestError
from holdfast.transactions.base import Backend, SnapshotReader
from holdfast.units.jobs import Job, find_job, read_progress
from holdfast.units.progress import TaskProgress
from holdfast.units.report import JobReport
from holdfast.units.statistics import Statistics


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job is.

    Attributes:
        tasks: the progress of each task; empty if the job is finished.
        report: what the job has cost, if it is finished.
    """

    job: Job
    tasks: Sequence[TaskProgress] = ()
    report: JobReport | None = None

    @property
    def done(self) -> int:
        """How many units are done."""
        return sum(task.done for task in self.tasks) if self.report is None else self.report.total.units

    @property
    def deferred(self) -> int:
        """How many units are put off, until the others of their task are done."""
        return sum(len(task.deferred) for task in self.tasks)

    @property
    def finished(self) -> int:
        """How many tasks have done all their units."""
        return self.job.shards if self.job.is_finished else sum(task.is_finished for task in self.tasks)

    @property
    def statistics(self) -> Statistics:
        """The figures of all tasks, as far as they are recorded."""
        return self.report_at(self.job.began_s).total

    def report_at(self, now_s: float) -> JobReport:
        """Return what the job has cost until now, or in all.

        Args:
            now_s: seconds since the epoch.
        """
        return self.report or JobReport.of_progress(self.job, self.tasks, max(0.0, now_s - self.job.began_s))

    def units(self, given: int | None = None) -> int | None:
        """Return how many units the job has; None if nobody knows, since units of a work list add units.

        Args:
            given: the number, if the caller knows it.

        Raises:
            InvalidRequestError: more are done than were given.
        """
        if given is not None and given < self.done:
            raise InvalidRequestError(
                "the job has more units than that: leave the number out, or correct it", units=given, done=self.done
            )
        return self.done if self.job.is_finished else given if given is not None else self.job.units

    def share(self, given: int | None = None) -> float | None:
        """Return which share of all units is done, from 0 to 1; None if it is not known how many there are."""
        return share_of(self.done, self.units(given))


def share_of(done: int, units: int | None) -> float | None:
    """Return which share of units is done, from 0 to 1; None if it is not known how many there are."""
    return None if units is None else min(1.0, done / units) if units else 1.0


def read_state(reader: SnapshotReader, name: str) -> JobState:
    """Return how far a job is.

    Raises:
        NotFoundError: the database has no such job.
    """
    return state_of(reader, find_job(reader, name))


def state_of(reader: SnapshotReader, job: Job) -> JobState:
    """Return how far a job is that was read from the same snapshot."""
    if not job.is_finished:
        return JobState(job, read_progress(reader, job))
    return JobState(job, report=JobReport.of(job.report))


def poll(backend: Backend, name: str) -> JobState:
    """Return how far a job is: all from one snapshot, for which no unit waits.

    Raises:
        NotFoundError: the database has no such job.
    """
    with backend.snapshot() as reader:
        return read_state(reader, name)
