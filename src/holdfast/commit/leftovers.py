"""Define what jobs leave behind, what recovery may do with it, and the report of what recovery did."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.commit.context import CommitContext
from holdfast.errors import CorruptDataError, HoldfastError
from holdfast.stores.base import UploadInfo


class RecoveryAction(str, enum.Enum):
    """What recovery may do with a dead job."""

    FORWARD = "roll forward"
    BACK = "roll back"
    CLEAN = "clean up"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """The data that a job left behind, and what recovery may do with it. The job may still be alive.

    Attributes:
        active_at_s: when the job last wrote something, in seconds since the epoch by the store's clock.
        reason: one sentence that says what was found, and why this requires `action`.
        files: visible files of the job.
        uploads: pending uploads of the job.
        recover: carries out `action`. Idempotent (C10).
    """

    committer: str
    job: str
    active_at_s: float
    action: RecoveryAction
    reason: str
    recover: Callable[[], None]
    files: int = 0
    uploads: int = 0


def is_job_quiet(active_at_s: float, now_s: float, older_than_s: float) -> bool:
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
    action: RecoveryAction
    reason: str
    files: int = 0
    uploads: int = 0
    lost: int = 0
    is_alive: bool = False
    is_foreign: bool = False


@dataclass(slots=True, kw_only=True)
class RecoveryReport:
    """The result of `recover`: what it did with each interrupted job, or in a dry run would do, and what is left.

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
        return self._list_jobs_with_action(RecoveryAction.FORWARD)

    @property
    def rolled_back(self) -> list[str]:
        """Return the jobs that were rolled back: none of their output is left."""
        return self._list_jobs_with_action(RecoveryAction.BACK)

    @property
    def cleaned_up(self) -> list[str]:
        """Return the jobs that had already ended, and whose leftovers were cleaned up."""
        return self._list_jobs_with_action(RecoveryAction.CLEAN)

    @property
    def kept(self) -> list[str]:
        """Return the jobs that recovery kept, because a person must decide how to end them."""
        return self._list_jobs_with_action(RecoveryAction.KEEP)

    @property
    def left_alone(self) -> list[str]:
        """Return the undecided jobs that recovery did not touch, because they wrote something recently."""
        return [job.job for job in self.jobs if job.is_alive]

    @property
    def clean(self) -> bool:
        """Check that nothing needs a person's attention: no job is damaged, kept, or could not be ended."""
        return not self.damaged and not self.pending and not self.kept

    def add_failure(self, what: str, error: HoldfastError) -> None:
        """Add a job or cleanup, `what`, that failed: to `damaged` if data is corrupt, else to `pending`."""
        failures = self.damaged if isinstance(error, CorruptDataError) else self.pending
        failures[what] = str(error)

    def _list_jobs_with_action(self, action: RecoveryAction) -> list[str]:
        return [job.job for job in self.jobs if job.action is action and not job.is_alive]


def end_leftover_job(
    report: RecoveryReport, leftover: Leftover, *, is_alive: bool, dry_run: bool, is_foreign: bool = False
) -> None:
    """Carry out a job's recovery action, unless `is_alive` or `dry_run`, and add the job to `report`."""
    if not (is_alive or dry_run or leftover.action is RecoveryAction.KEEP):
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


# --- jobs of other systems --------------------------------------------------------------------------------------------
FOREIGN_QUIET_S = 86400.0
"""How long a job of another system must have been idle before it counts as dead, by default.

A job's tasks write records only when they close files, which may take hours, and ending a live job does not stop it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignJobPolicy:
    """How recovery treats jobs of other systems' committers, such as Hadoop's.

    Attributes:
        abort: whether to abort dead jobs; otherwise they are only reported (C7).
        older_than_s: do not touch jobs that wrote something more recently than this.
    """

    abort: bool = False
    older_than_s: float = FOREIGN_QUIET_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignLeftover:
    """The leftover data of a job of another system, and the recovery action for it.

    Attributes:
        is_over: whether the job has finished and left only its directory, so that the user need not act.
    """

    leftover: Leftover
    is_over: bool


class UploadOwner(NamedTuple):
    """The job and the committer that an upload belongs to."""

    job: str
    committer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignJobSupport:
    """Functions that find, describe and end the jobs of another system's committers; only a user may end them (C7).

    Attributes:
        find: takes (context, abort, insist) and lists the system's jobs on a destination, including live jobs, each
            with a recovery action. `abort` says whether to abort dead jobs; `insist`, even if records are lost.
        describe: returns one sentence about an unfinished job, and how to end it if it is dead.
        end: part of `recover`: takes (context, report, policy, dry_run, insist), reports dead jobs, and aborts them if
            the policy says so. `dry_run` says whether to change nothing; `insist` is as for `find`.
        owners: returns the owner of each upload, by (key, upload id), if it belongs to a job of the system.
    """

    find: Callable[[CommitContext, bool, bool], Iterable[ForeignLeftover]]
    describe: Callable[[Leftover], str]
    end: Callable[[CommitContext, RecoveryReport, ForeignJobPolicy, bool, bool], None]
    owners: Callable[[CommitContext, Sequence[UploadInfo]], Mapping[tuple[str, str], UploadOwner]]
