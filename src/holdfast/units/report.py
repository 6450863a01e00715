"""Report what happened in a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.errors import CorruptDataError
from holdfast.units.jobs import Job
from holdfast.units.statistics import Statistics

__all__ = ["JobReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """What happened in a job.

    Attributes:
        job: its name.
        kind: ``map``, ``reduce`` or ``work list``.
        tasks: the figures of each task, all attempts together.
        seconds: from the begin of the run that finished the job to its end.
    """

    job: str
    kind: str
    tasks: Sequence[Statistics]
    seconds: float

    @staticmethod
    def of_tasks(job: Job, statistics: Sequence[Statistics], seconds: float) -> JobReport:
        """Return the report of a job from the figures of its tasks."""
        return JobReport(job=job.name, kind=job.kind, tasks=tuple(statistics), seconds=seconds)

    @property
    def total(self) -> Statistics:
        """The figures of all tasks together."""
        return Statistics.total(self.tasks)

    def to_json(self) -> dict[str, object]:
        """Return the report as values of JSON."""
        tasks = [one.to_json() for one in self.tasks]
        return {"job": self.job, "kind": self.kind, "tasks": tasks, "seconds": self.seconds}

    @staticmethod
    def of(found: Mapping[str, object]) -> JobReport:
        """Return the report that `to_json` has returned.

        Raises:
            CorruptDataError: it is damaged.
        """
        tasks, seconds = found.get("tasks"), found.get("seconds")
        if not isinstance(tasks, Sequence) or not isinstance(seconds, int | float):
            raise CorruptDataError("the stored report of a job cannot be read: report it")
        return JobReport(
            job=str(found.get("job")),
            kind=str(found.get("kind")),
            tasks=tuple(Statistics.of(one) for one in tasks),
            seconds=float(seconds),
        )
