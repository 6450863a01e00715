"""Report what recovery did with each job, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.commit.committer import Action, Leftover
from holdfast.errors import CorruptDataError, HoldfastError


def is_quiet(active_at_s: float, now_s: float, older_than_s: float) -> bool:
    """Check whether a job has been quiet for `older_than_s`; always true for 0, even if clocks differ."""
    return older_than_s <= 0 or now_s - active_at_s >= older_than_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredJob:
    """An interrupted job, and what recovery did with it.

    Attributes:
        action: the action that recovery took; in a dry run, or if the job may be alive, the action that it would take.
        reason: why this action, in one sentence.
        files, uploads: how many files and uploads of the job were found, if they were counted.
        lost: how many of the job's files or manifests are lost, if the damage was accepted.
        is_alive: whether the job wrote something so recently that recovery did nothing.
        is_foreign: whether the job belongs to one of Hadoop's own committers.
    """

    committer: str
    job: str
    action: Action
    reason: str
    files: int = 0
    uploads: int = 0
    lost: int = 0
    is_alive: bool = False
    is_foreign: bool = False


@dataclass(slots=True, kw_only=True)
class RecoveryReport:
    """What recovery did, or would do.

    Attributes:
        jobs: the interrupted jobs, in the order in which recovery handled them.
        damaged: one sentence for each damaged job or record: a committed job with lost files, or a record that cannot
            be read. Recovery did not change it, or can be run again.
        pending: one sentence for each job that recovery could not end, and for a cleanup that failed, saying why: the
            store refuses or does not answer. When it does, run recovery again.
        uploads_aborted, folders_removed: how many leftovers of jobs that had already ended were removed.
        notes: one sentence for each check that was impossible.
    """

    jobs: list[RecoveredJob] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    uploads_aborted: int = 0
    folders_removed: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def rolled_forward(self) -> list[str]:
        """Return the jobs whose output is completely visible now."""
        return self._jobs(Action.FORWARD)

    @property
    def rolled_back(self) -> list[str]:
        """Return the jobs that were rolled back: none of their output is left."""
        return self._jobs(Action.BACK)

    @property
    def cleaned_up(self) -> list[str]:
        """Return the jobs that had already ended, and whose leftovers were cleaned up."""
        return self._jobs(Action.CLEAN)

    @property
    def kept(self) -> list[str]:
        """Return the jobs that recovery kept, because a person must decide how to end them."""
        return self._jobs(Action.KEEP)

    @property
    def left_alone(self) -> list[str]:
        """Return the undecided jobs that were active too recently."""
        return [job.job for job in self.jobs if job.is_alive]

    @property
    def clean(self) -> bool:
        """Check whether nothing at the destination needs a person's attention."""
        return not self.damaged and not self.pending and not self.kept

    def add_failure(self, what: str, error: HoldfastError) -> None:
        """Add a job or a cleanup that failed: it is damaged, or its work is pending."""
        failures = self.damaged if isinstance(error, CorruptDataError) else self.pending
        failures[what] = str(error)

    def _jobs(self, action: Action) -> list[str]:
        return [job.job for job in self.jobs if job.action is action and not job.is_alive]


def end_leftover(
    report: RecoveryReport, leftover: Leftover, *, is_alive: bool, dry_run: bool, is_foreign: bool = False
) -> None:
    """End a job without a log, unless it may be alive, and add it to `report`."""
    if not (is_alive or dry_run or leftover.action is Action.KEEP):
        try:
            leftover.recover()
        except HoldfastError as error:
            report.add_failure(leftover.job, error)
            return
    report.jobs.append(
        RecoveredJob(
            committer=leftover.committer,
            job=leftover.job,
            action=leftover.action,
            reason=leftover.reason,
            files=leftover.files,
            uploads=leftover.uploads,
            is_alive=is_alive,
            is_foreign=is_foreign,
        )
    )
