"""Define the interface of a committer: what it needs from a store, and the steps of its jobs and tasks."""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.commit.context import CommitContext, CommitSettings
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import TaskAttempt, TaskScope
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.stores.base import Capabilities, Support

_DEFAULTS = CommitSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A capability that a committer needs from a store.

    Attributes:
        what: a noun phrase for messages, such as "conditional writes".
        met: returns whether a store has the capability, or may have it.
        waiver: the setting that lets the committer run, unsafely, without the capability; empty if there is none.
    """

    what: str
    met: Callable[[Capabilities], bool]
    waiver: str = ""

    def waived(self, settings: CommitSettings) -> bool:
        """Check whether the user agreed, in the settings, to run without this capability."""
        return {"allow_unsafe": settings.allow_unsafe, "allow_unfenced": settings.allow_unfenced}.get(
            self.waiver, False
        )


class Action(str, enum.Enum):
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
    action: Action
    reason: str
    recover: Callable[[], None]
    files: int = 0
    uploads: int = 0


class Committer(abc.ABC):
    """A protocol that holds a job's output back and then makes it visible.

    The steps have the names of Hadoop's ``OutputCommitter``. The driver calls `setup_job`, then `commit_job` or
    `abort_job`; tasks call `setup_task`, and the attempt that it returns calls `commit_task` or `abort_task`.

    A committer is a leaf class without state that only implements these steps.

    Attributes:
        name: the value of the option ``committer`` that selects it.
        summary: one line for tables.
        source: the paper or manual that describes it.
        needs: the capabilities that a store must have.
        modes: the save modes that it supports.
        unsafe: why it runs only with ``allow_unsafe``; empty if it runs without that setting.
        staging: whether it needs `CommitContext.staging`.
        keeps_log: whether it records the commits of its jobs in the destination's decision log.
        leaves_records: whether a job that died leaves records, so that `find_leftovers` can find the job.
        adopts_uploads: whether `find_leftovers` assumes that uploads of jobs without records belong to this committer.
        pins_attempts: whether the job commit publishes exactly the attempts that reported. If not, it publishes one
            attempt per task number, which may be a different attempt from the one that reported.
    """

    name: str
    summary: str
    source: str
    needs: tuple[Need, ...]
    modes: frozenset[SaveMode]
    unsafe: str = ""
    staging: bool = False
    keeps_log: bool = False
    leaves_records: bool = True
    pins_attempts: bool = False
    adopts_uploads: bool = False

    # --- driver -------------------------------------------------------------------------------------------------------
    @abc.abstractmethod
    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        """Check the destination and announce a job. Nothing is written before every check has passed.

        Args:
            details: stored with the job (schema, format); never secrets.

        Returns:
            The job, or None if `mode` is ``ignore`` and the destination contains data.

        Raises:
            UnsupportedError: the committer does not fit the store; the message says why.
            InvalidRequestError: the committer does not support the mode, or the destination is a file, lies inside
                another destination or contains one.
            DestinationExistsError: the mode is ``fail`` and the destination contains data.
        """

    @abc.abstractmethod
    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Make the job's output visible.

        Args:
            commits: the reports of the accepted attempts.
            tasks: the numbers of all tasks, or just the number of tasks if they are numbered from 0.

        Raises:
            HoldfastError: the job is not committed, or its outcome is unknown: call `abort_job`. If there is a report
                directory, a report there contains the details.
        """

    @abc.abstractmethod
    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Abort the job, unless it turns out to be committed. Idempotent (scenario 20)."""

    @abc.abstractmethod
    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        """List jobs that left data behind, including live ones, and what recovery may do with each.

        A committer that keeps a log lists nothing here, because `recover` finds its jobs in the log. A committer that
        leaves no records lists nothing either.

        Args:
            recorded: jobs that have records of other committers (`recorded_jobs`) and therefore are not this
                committer's. Only a committer that adopts uploads uses this argument.

        Raises:
            CorruptDataError: a record that is needed cannot be read.
        """

    def recorded_jobs(self, ctx: CommitContext) -> Collection[JobId]:
        """Return the jobs, live or dead, for which this committer has stored records. Sends only list requests."""
        return ()

    # --- tasks --------------------------------------------------------------------------------------------------------
    def setup_task(self, ctx: CommitContext, job: JobRecord, task: int) -> TaskAttempt:
        """Start an attempt at task number `task`, for this process alone."""
        return TaskAttempt(ctx, job, task, self)

    @abc.abstractmethod
    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        """Return the base name of the attempt's `number`-th file, counted from 0."""

    @abc.abstractmethod
    def open_file(self, scope: TaskScope, path: str) -> UploadSink | RenameSink:
        """Open a sink, a hidden file to write to, whose target is `path`, relative to the destination."""

    @abc.abstractmethod
    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Commit an attempt whose files are all complete and durable, and return its report."""

    @abc.abstractmethod
    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        """Discard what an attempt left behind. Runs in any process; idempotent (scenario 21)."""

    def work_path(self, owner: FileOwner) -> str:
        """Return the directory in which a program may write the attempt's files itself, relative to the destination.

        Empty if the committer offers no such directory; see `holdfast.fs`.
        """
        return ""

    # --- requirements -------------------------------------------------------------------------------------------------
    def refusal(self, capabilities: Capabilities, settings: CommitSettings = _DEFAULTS) -> str:
        """Return the reason why the committer does not run on a store with these capabilities; empty if it does."""
        if self.unsafe and not settings.allow_unsafe:
            return f"{self.name} runs only with allow_unsafe: {self.unsafe}"
        missing = next((need for need in self.needs if not need.met(capabilities) and not need.waived(settings)), None)
        return "" if missing is None else f"{self.name} needs {missing.what}, which the store does not offer"

    def waivers(self, capabilities: Capabilities) -> list[str]:
        """Return the settings that let the committer run on a store that `refusal` refuses; empty if no settings do."""
        missing = [need.waiver for need in self.needs if not need.met(capabilities)]
        return sorted(set(missing)) if all(missing) else []

    def check_fit(self, ctx: CommitContext, mode: SaveMode, others: str = "another committer or store") -> None:
        """Refuse a store or a mode that the committer does not support. Sends no request.

        Args:
            others: the alternatives that the error suggests, besides the settings that waive a need.

        Raises:
            UnsupportedError: the committer does not fit the store; the message says why.
            InvalidRequestError: the committer does not support the mode.
        """
        can = ctx.store.capabilities
        refused = self.refusal(can, ctx.settings)
        if refused:
            waivers = "".join(f", or accept that with {waiver}" for waiver in self.waivers(can))
            raise UnsupportedError(f"{refused}: choose {others}{waivers}", url=ctx.url)
        if mode not in self.modes:
            known = ", ".join(sorted(one.value for one in self.modes))
            raise InvalidRequestError(f"{self.name} supports only the modes {known}: choose one", mode=mode.value)


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
