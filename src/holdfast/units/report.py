"""Report what a job has cost: units per second, conflicts, latencies, and where the time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import MALFORMED, CorruptDataError
from holdfast.transactions.base import Backend, SnapshotReader
from holdfast.units.jobs import Job, find_job, read_task_progress
from holdfast.units.progress import Statistics, TaskProgress
from holdfast.wording import format_count

_MOST_TASKS = 1000
"""Tasks in the stored report: all of them, with many more, would be too long for a record."""


@dataclass(frozen=True, slots=True)
class JobReport:
    """The cost of a job, so far or in all: units per second, conflicts, and where the time went.

    Attributes:
        job: its name.
        kind: ``map``, ``reduce`` or ``work list``.
        number: how many tasks it has.
        tasks: the figures of each task, of all its attempts; empty if they were too many to be kept.
        total: the figures of all tasks.
        seconds: from the begin of the run that finished the job to its end; of a job that is not finished, so far.
        ran: False if the job was finished before it was run again, so that this time nothing ran.
        earlier: how many units had taken effect when the run that finished the job began.
    """

    job: str
    kind: str
    number: int
    tasks: tuple[Statistics, ...]
    total: Statistics
    seconds: float
    ran: bool = True
    earlier: int = 0

    @staticmethod
    def of_tasks(job: Job, statistics: Sequence[Statistics], seconds: float) -> JobReport:
        """Build the report of a job from the statistics of each task."""
        tasks = tuple(statistics)
        return JobReport(job.name, job.kind, len(tasks), tasks, Statistics.total(tasks), seconds)

    @staticmethod
    def of_progress(job: Job, progress: Sequence[TaskProgress], seconds: float) -> JobReport:
        """Build the report of a job from the recorded progress of each task, whose numbers of units are exact.

        After a work list's worker has died, its other figures lack what it had not yet recorded.
        """
        return JobReport.of_tasks(job, [replace(one.statistics, units=one.done) for one in progress], seconds)

    # --- figures ------------------------------------------------------------------------------------------------------
    @property
    def units_per_s(self) -> float:
        """Return the units per second, without those of earlier runs; 0 if the job took no time."""
        return (self.total.units - self.earlier) / self.seconds if self.seconds > 0 else 0.0

    # --- forms --------------------------------------------------------------------------------------------------------
    def __str__(self) -> str:
        lines = [f"{self.job}, {self.kind}", *(f"{name}: {value}" for name, value in self.summary())]
        return "\n".join(lines if self.ran else [*lines, "the job was finished before: nothing ran this time"])

    def summary(self) -> list[tuple[str, str]]:
        """Return pairs of a name and a formatted value, to be shown to people."""
        total = self.total
        shares = ", ".join(f"{share:.0%} {name}" for name, share in total.time_shares.items())
        found = [
            ("units", f"{total.units - self.earlier:,} in {self.seconds:,.1f} s, {self.units_per_s:,.0f}/s"),
            ("tasks", f"{self.number:,}"),
            ("commits", f"{total.groups:,} with {total.group_size:,.1f} units each"),
            ("conflicts", f"{total.conflicts:,}, {total.conflict_share:.1%} of all commits"),
            ("runs repeated", f"{total.reruns:,}"),
            ("commit latency", latency_text(total.commit_latency_s)),
            ("time in tasks", shares),
        ]
        if self.earlier:  # what follows the first line is of the job, which has these units too
            found.insert(1, ("earlier runs", f"{format_count(self.earlier, 'unit')}, which all figures below include"))
        more = [
            ("deferred", total.deferred),
            ("with locks", total.locked),
            ("stale runs", total.stale),
            ("lost replies", total.unknown),
            ("waits for the database", total.unavailable),
        ]
        return [*found, *((name, f"{number:,}") for name, number in more if number)]

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON values: what `of` needs, and figures derived from it, for programs."""
        total = self.total
        return {
            "job": self.job,
            "kind": self.kind,
            "seconds": round(self.seconds, 6),
            "units_per_s": round(self.units_per_s, 3),
            "conflict_share": round(total.conflict_share, 6),
            "group_size": round(total.group_size, 3),
            "commit_latency_s": round(total.commit_latency_s, 6),
            "shares": {name: round(share, 4) for name, share in total.time_shares.items()},
            "total": total.to_json(),
            "number": self.number,
            "earlier": self.earlier,
            # What is left out counts as 0.
            "tasks": [
                {name: value for name, value in task.to_json().items() if value}
                for task in (self.tasks if self.number <= _MOST_TASKS else ())
            ],
        }

    @staticmethod
    def of(found: Mapping[str, object]) -> JobReport:
        """Decode a report that `to_json` has returned.

        Raises:
            CorruptDataError: it is damaged.
        """
        try:
            tasks = found["tasks"]
            if not isinstance(tasks, list):
                raise ValueError(tasks)
            return JobReport(
                job=str(found["job"]),
                kind=str(found["kind"]),
                number=int(str(found["number"])),
                tasks=tuple(map(Statistics.of, tasks)),
                total=Statistics.of(found["total"]),
                seconds=float(str(found["seconds"])),
                earlier=int(str(found.get("earlier", 0))),
            )
        except MALFORMED as error:
            raise CorruptDataError("the report of a job cannot be read: keep the database and report it") from error


def latency_text(duration_s: float) -> str:
    """Format a duration in seconds for people, with a fitting unit."""
    return f"{duration_s * 1000:.2g} ms" if duration_s < 0.1 else f"{duration_s:.2g} s"


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job at one instant: the job, and the progress of its tasks or its final report.

    Attributes:
        tasks: the progress of each task; empty if the job is finished.
        report: what the job has cost, if it is finished.
    """

    job: Job
    tasks: Sequence[TaskProgress] = ()
    report: JobReport | None = None

    @property
    def done(self) -> int:
        """Return how many units are done."""
        return sum(task.done for task in self.tasks) if self.report is None else self.report.total.units

    @property
    def deferred(self) -> int:
        """Return how many units are deferred until the others of their task are done."""
        return sum(len(task.deferred) for task in self.tasks)

    @property
    def finished(self) -> int:
        """Return how many tasks have done all their units."""
        return self.job.shards if self.job.is_finished else sum(task.is_finished for task in self.tasks)

    @property
    def statistics(self) -> Statistics:
        """Return the sum of the statistics of all tasks, as far as they are recorded."""
        return self.report_at(self.job.began_s).total

    def report_at(self, now_s: float) -> JobReport:
        """Return the report of the job: the final one, or that of an unfinished job until now.

        Args:
            now_s: seconds since the epoch.
        """
        return self.report or JobReport.of_progress(self.job, self.tasks, max(0.0, now_s - self.job.began_s))

    @property
    def units(self) -> int | None:
        """Return how many units the job has; None if that is not known, since units of a work list add units."""
        return self.done if self.job.is_finished else self.job.units

    @property
    def share(self) -> float | None:
        """Return the share of units that are done, from 0 to 1; None if it is not known how many there are."""
        units = self.units
        return None if units is None else min(1.0, self.done / units) if units else 1.0


def find_job_state(reader: SnapshotReader, name: str) -> JobState:
    """Read the state of the job with a name.

    Raises:
        NotFoundError: the database has no such job.
    """
    return read_job_state(reader, find_job(reader, name))


def read_job_state(reader: SnapshotReader, job: Job) -> JobState:
    """Read the state of a job whose record was read from the same snapshot."""
    if not job.is_finished:
        return JobState(job, read_task_progress(reader, job))
    return JobState(job, report=JobReport.of(job.report))


def poll(backend: Backend, name: str) -> JobState:
    """Read the state of a job from one snapshot, without blocking any unit.

    Raises:
        NotFoundError: the database has no such job.
    """
    with backend.snapshot() as reader:
        return find_job_state(reader, name)
