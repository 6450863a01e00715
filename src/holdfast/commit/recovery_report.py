"""What recovery did about each job, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.commit.committer import Action, Leftover
from holdfast.errors import HoldfastError

__all__ = ["RecoveredJob", "RecoveryReport", "end_leftover", "is_quiet"]


def is_quiet(active_at_s: float, now_s: float, older_than_s: float) -> bool:
    """Whether something has been quiet for `older_than_s`. For zero anything has, whatever clocks say."""
    return older_than_s <= 0 or now_s - active_at_s >= older_than_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredJob:
    """A job that was not over, and what was done about it.

    Attributes:
        action: what was done; of a dry run and of a job that may be alive: what would be.
        reason: one sentence: why that.
        files, uploads: how many of it were found, where that was counted.
        lost: how many of its files, or manifests of its tasks, are lost, where that was accepted.
        is_alive: it wrote something too recently, so nothing was done.
        is_foreign: it is of Hadoop's own committers.
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
        jobs: in the order in which they were ended.
        damaged: job or record to sentence: committed jobs with lost files, records that cannot be read, clean-up that
            failed. What is named here is as it was, or can be run again.
        pending: job to sentence: decided jobs of which something could not be finished now, and why.
        uploads_aborted, folders_removed: leftovers of jobs that were over before.
        notes: what could not be looked at, one sentence each.
    """

    jobs: list[RecoveredJob] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    uploads_aborted: int = 0
    folders_removed: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def rolled_forward(self) -> list[str]:
        """Jobs whose output is wholly there now."""
        return self._jobs(Action.FORWARD)

    @property
    def rolled_back(self) -> list[str]:
        """Jobs of whose output nothing is there now."""
        return self._jobs(Action.BACK)

    @property
    def cleaned_up(self) -> list[str]:
        """Jobs that were over and had left something."""
        return self._jobs(Action.CLEAN)

    @property
    def kept(self) -> list[str]:
        """Jobs that only a person can decide about."""
        return self._jobs(Action.KEEP)

    @property
    def left_alone(self) -> list[str]:
        """Undecided jobs that were active too recently."""
        return [job.job for job in self.jobs if job.is_alive]

    @property
    def clean(self) -> bool:
        """Whether nothing needs a person."""
        return not self.damaged and not self.pending and not self.kept

    def _jobs(self, action: Action) -> list[str]:
        return [job.job for job in self.jobs if job.action is action and not job.is_alive]


def end_leftover(
    report: RecoveryReport, leftover: Leftover, *, is_alive: bool, dry_run: bool, is_foreign: bool = False
) -> None:
    """Do what may be done about a job without a log, unless it may be alive, and put it down in `report`."""
    if not (is_alive or dry_run or leftover.action is Action.KEEP):
        try:
            leftover.recover()
        except HoldfastError as error:
            report.damaged[leftover.job] = f"{leftover.action.value} failed, run it again: {error}"
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
