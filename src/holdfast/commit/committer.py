"""A committer as a value: a name, what it asks of a store, and the steps of each phase.

Committer
├── start      check the destination, say who the job is
├── task       TaskSteps: name, open, commit, abort of an attempt
├── commit     from the reports of the accepted attempts to visible files
├── abort      give the job up, or carry out its decision if it has one
└── leftovers  what dead jobs left, and what may be done about each
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.commit.context import CommitContext, CommitSettings
from holdfast.commit.ids import FileOwner
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.success_file import failure_report, save_report
from holdfast.commit.task import TaskAttempt, TaskSteps
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.stores.base import Capabilities, Support

__all__ = [
    "CONDITIONAL_WRITES",
    "CONSISTENT_LISTING",
    "HIDDEN_WRITES",
    "MULTIPART",
    "RENAME",
    "RENAME_DIR",
    "RENAME_OR_COPY",
    "Action",
    "Committer",
    "Leftover",
    "Need",
]

_DEFAULTS = CommitSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a committer asks of a store.

    Attributes:
        what: as in "the store has no <what>".
        met: whether a store has it, or may have it and is to be tried.
        waiver: the setting with which the committer runs without it, unsafely; empty if it never does.
    """

    what: str
    met: Callable[[Capabilities], bool]
    waiver: str = ""

    def waived(self, settings: CommitSettings) -> bool:
        """Whether the user accepts what may happen without it."""
        return {"allow_unsafe": settings.allow_unsafe, "allow_unfenced": settings.allow_unfenced}.get(
            self.waiver, False
        )


class Action(str, enum.Enum):
    """What may be done about a dead job."""

    FORWARD = "roll forward"
    BACK = "roll back"
    CLEAN = "clean up"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """What a job left, and what may be done about it.

    Attributes:
        active_at_s: when the store last saw the job write, seconds since the epoch.
        reason: one sentence: what was found, and why that leads to `action`.
        files: visible files of the job.
        uploads: pending uploads of the job.
        finish: does it. May be run again (C10).
    """

    committer: str
    job: str
    active_at_s: float
    action: Action
    reason: str
    finish: Callable[[], None]
    files: int = 0
    uploads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """How a job's output is held and shown.

    Attributes:
        name: as in the option ``committer``.
        needs: what a store must offer.
        modes: what it can do with data that are there.
        unsafe: why it runs only with ``allow_unsafe``; empty if it does not need that.
        staging: whether it wants `CommitContext.scratch` and `CommitContext.shared`.
        start: from context, name of the committer, mode and details; None if there is nothing to do.
        leftovers: None for the committer that keeps a log, which `recovery` reads, and for those whose dead jobs leave
            nothing that could be told apart.
        recover_task: take over what an earlier attempt at the job committed for a task; whether there was anything.
    """

    name: str
    summary: str
    source: str
    needs: tuple[Need, ...]
    modes: frozenset[SaveMode]
    start: Callable[[CommitContext, str, SaveMode, Mapping[str, object]], JobRecord | None]
    task: TaskSteps
    commit: Callable[[Measure, JobRecord, Sequence[TaskCommit | None], int | Collection[int]], JobOutcome]
    abort: Callable[[Measure, JobRecord], JobOutcome]
    leftovers: Callable[[CommitContext], Iterator[Leftover]] | None = None
    recover_task: Callable[[CommitContext, JobRecord, int], bool] | None = None
    unsafe: str = ""
    staging: bool = False

    def refusal(self, capabilities: Capabilities, settings: CommitSettings = _DEFAULTS) -> str:
        """Why the committer does not run on such a store, in words; empty if it does."""
        if self.unsafe and not settings.allow_unsafe:
            return f"{self.name} runs only with allow_unsafe: {self.unsafe}"
        missing = next((need for need in self.needs if not need.met(capabilities) and not need.waived(settings)), None)
        return "" if missing is None else f"{self.name} needs {missing.what}, which the store does not offer"

    def waivers(self, capabilities: Capabilities) -> list[str]:
        """The settings with which the committer runs on such a store all the same; empty if nothing helps."""
        missing = [need.waiver for need in self.needs if not need.met(capabilities)]
        return sorted(set(missing)) if all(missing) else []

    def start_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        """Check the destination and announce a job. Nothing is written before every check has passed.

        Args:
            details: what is kept with the decision (schema, format); never secrets.

        Returns:
            The job, or None if `mode` is ``ignore`` and the destination holds data.

        Raises:
            UnsupportedError: the committer does not fit the store; says why, and which ones would.
            InvalidRequestError: the committer has no such mode, or the destination is a file, or lies inside another
                one or around one.
            DestinationExistsError: mode ``fail`` and the destination holds data.
        """
        self.require_fit(ctx, mode)
        return self.start(ctx, self.name, mode, details or {})

    def require_fit(self, ctx: CommitContext, mode: SaveMode) -> None:
        """Refuse a store or a mode that the committer cannot do; asks the store nothing.

        Raises:
            UnsupportedError: the committer does not fit the store; says why, and which ones would.
            InvalidRequestError: the committer has no such mode.
        """
        from holdfast.commit.registry import fitting_committers  # the registry is made of these values

        refused = self.refusal(ctx.store.capabilities, ctx.settings)
        if refused:
            can = ctx.store.capabilities
            names = " or ".join(other.name for other in fitting_committers(can)) or "another store"
            waivers = "".join(f", or accept that with {waiver}" for waiver in self.waivers(can))
            raise UnsupportedError(f"{refused}: choose {names}{waivers}", url=ctx.url)
        if mode not in self.modes:
            known = ", ".join(sorted(one.value for one in self.modes))
            raise InvalidRequestError(f"{self.name} knows only the modes {known}: choose one", mode=mode.value)

    def start_task(self, ctx: CommitContext, job: JobRecord, task: int) -> TaskAttempt:
        """An attempt at task number `task`, for this process alone."""
        return TaskAttempt(ctx, job, task, self.task)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        """Give up an attempt from another process; again is harmless (scenario 21)."""
        self.task.abort(ctx, job, owner)

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Make the job's output visible.

        Args:
            commits: what the accepted attempts reported.
            tasks: how many tasks there are, or their numbers.

        Raises:
            HoldfastError: the job is not committed, or nobody can say; call `abort_job`. The report directory, if there
                is one, has the story.
        """
        measure = Measure(ctx)
        try:
            with measure.recorder.timed("committer_commit_job"):
                outcome = self.commit(measure, job, commits, tasks)
        except Exception as error:
            save_report(ctx, failure_report(measure, self.name, job, error))
            raise
        if outcome.report is not None:
            save_report(ctx, outcome.report)
        return replace(outcome, statistics=measure.statistics())

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Give the job up, unless it turns out to be decided. Again is harmless (scenario 20)."""
        measure = Measure(ctx)
        with measure.stage("job_stage_abort"):
            outcome = self.abort(measure, job)
        if not outcome.committed:
            save_report(ctx, failure_report(measure, self.name, job, InvalidRequestError("the job was aborted")))
        return outcome


MULTIPART = Need(what="multipart uploads", met=lambda can: can.multipart is not None)
CONSISTENT_LISTING = Need(what="listings that show every object at once", met=lambda can: can.consistent_listing)
RENAME = Need(what="atomic file rename", met=lambda can: can.rename)
RENAME_OR_COPY = Need(what="atomic file rename", met=lambda can: can.rename, waiver="allow_unsafe")
RENAME_DIR = Need(what="atomic directory rename", met=lambda can: can.rename_dir, waiver="allow_unsafe")
HIDDEN_WRITES = Need(
    what="multipart uploads or atomic file rename", met=lambda can: can.rename or can.multipart is not None
)
CONDITIONAL_WRITES = Need(
    what="conditional writes", met=lambda can: can.conditional_put is not Support.NO, waiver="allow_unfenced"
)
