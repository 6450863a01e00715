"""Define a committer: a value with the steps in which commit protocols differ, and the template that runs them."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from holdfast.commit.context import CommitContext, CommitSettings, Measure
from holdfast.commit.ids import FileOwner, JobId, spark_file_name
from holdfast.commit.leftovers import Leftover
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, JobReport, SaveMode, TaskCommit
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.success_file import encode_report
from holdfast.commit.task import AttemptContext, TaskAttempt
from holdfast.errors import HoldfastError, InvalidRequestError, UnsupportedError
from holdfast.guarantees import GuaranteeAnswer
from holdfast.stores.base import Capabilities, Support

_DEFAULTS = CommitSettings()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A capability that a committer needs from a store.

    Attributes:
        what: a noun phrase for messages, such as "conditional writes".
        met: returns whether a store has the capability, or may have it.
        waivable: whether the setting ``allow_unfenced`` lets the committer run, unsafely, without the capability.
    """

    what: str
    met: Callable[[Capabilities], bool]
    waivable: bool = False


MULTIPART = Need(what="multipart uploads", met=lambda can: can.multipart is not None)
CONSISTENT_LISTING = Need(what="listings that show every object at once", met=lambda can: can.consistent_listing)
RENAME = Need(what="atomic file rename", met=lambda can: can.rename)
RENAME_DIR = Need(what="atomic directory rename", met=lambda can: can.rename_dir)
HIDDEN_WRITES = Need(
    what="multipart uploads or atomic file rename", met=lambda can: can.rename or can.multipart is not None
)
CONDITIONAL_WRITES = Need(
    what="conditional writes", met=lambda can: can.conditional_put is not Support.NO, waivable=True
)
HADOOP_MODES = frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE})


# --- reports of tasks -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TaskReports:
    """The reports of the tasks of a job, as the driver received them.

    Attributes:
        commits: the reports of the accepted attempts.
        tasks: the numbers of all tasks, or just the number of tasks if they are numbered from 0.
    """

    commits: Sequence[TaskCommit | None]
    tasks: int | Collection[int]

    def check(self, job: JobRecord) -> list[TaskCommit]:
        """Return one report per task, in order of tasks; check that none is missing or duplicate (C1, C3).

        Raises:
            InvalidRequestError: a task is missing or reported twice. The job is undecided.
        """
        present = [commit for commit in self.commits if commit is not None]
        wanted = sorted(range(self.tasks) if isinstance(self.tasks, int) else self.tasks)
        found = sorted(commit.task for commit in present)
        if found != wanted:
            raise InvalidRequestError(
                "the job cannot be committed because not every task reported exactly once: run the job again",
                job=job.job,
                tasks=len(wanted),
                reported=len(found),
                missing=sorted(set(wanted) - set(found))[:5],
            )
        others = [commit.job for commit in present if commit.job != job.job]
        if others:
            raise InvalidRequestError(
                "a task reported for another job: run the job again", job=job.job, other=others[0]
            )
        return sorted(present, key=lambda commit: commit.task)


# --- committers -------------------------------------------------------------------------------------------------------
Details: TypeAlias = Mapping[str, object]


def find_no_leftovers(ctx: CommitContext) -> Iterable[Leftover]:
    """Return no leftovers: for committers that keep a decision log, which `recover` reads, or that store no records."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Committer:
    """A protocol that holds a job's output back and then makes it visible.

    The driver calls `setup_job`, then `commit_job` or `abort_job`; tasks call `setup_task`, and the attempt that it
    returns calls `commit_task` or `abort_task`. These are the names of Hadoop's ``OutputCommitter``. The steps in which
    protocols differ are functions in attributes; `setup_job`, `commit_job` and `abort_job` check, time and report them.

    Attributes:
        name: the value of the option ``committer`` that selects it.
        summary: one line for tables.
        source: the paper or manual that describes it.
        needs: the capabilities that a store must have.
        modes: the save modes that it supports.
        guarantees: whether it gives each guarantee of `GUARANTEES`, and why, by the guarantee's name.
        staging: whether it needs `CommitContext.staging`.
        keeps_log: whether it records the commits of its jobs in the destination's decision log.
        leaves_records: whether a job that died leaves records, so that `find_leftovers` can find the job.
        setup: checks the destination and announces a job of the committer of this name; see `setup_job`.
        commit: makes a job's output visible; see `commit_job`.
        abort: see `abort_job`.
        name_file: returns the base name of an attempt's file with a number, counted from 0, and an extension.
        open_file: opens a sink, a hidden file to write to, whose target is a path relative to the destination.
        commit_task: commits an attempt whose files are all complete and durable, and returns its report.
        abort_task: discards what an attempt left behind. Runs in any process, even long after the attempt died;
            idempotent.
        find_leftovers: lists jobs that left data behind, including live ones, and what recovery may do with each.
            Raises `CorruptDataError` if a record that is needed cannot be read.
        knows_job: returns whether records of a job are stored in one of these folders, or in the shared directory
            of `staging`.
    """

    name: str
    summary: str
    source: str
    needs: tuple[Need, ...]
    modes: frozenset[SaveMode] = HADOOP_MODES
    guarantees: Mapping[str, GuaranteeAnswer] = field(repr=False)
    staging: bool = False
    keeps_log: bool = False
    leaves_records: bool = True
    setup: Callable[[CommitContext, str, SaveMode, Details], JobRecord | None]
    commit: Callable[[Measure, JobRecord, TaskReports], JobOutcome]
    abort: Callable[[Measure, JobRecord], JobOutcome]
    name_file: Callable[[FileOwner, int, str], str] = spark_file_name
    open_file: Callable[[AttemptContext, str], UploadSink | RenameSink]
    commit_task: Callable[[AttemptContext, tuple[FileEntry, ...]], TaskCommit]
    abort_task: Callable[[CommitContext, JobRecord, FileOwner], None]
    find_leftovers: Callable[[CommitContext], Iterable[Leftover]] = find_no_leftovers
    knows_job: Callable[[CommitContext, JobId, Sequence[str]], bool] = lambda ctx, job, folders: False

    # --- driver -------------------------------------------------------------------------------------------------------
    def setup_job(self, ctx: CommitContext, mode: SaveMode, details: Details | None = None) -> JobRecord | None:
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
        self.check_fit(ctx, mode)
        return self.setup(ctx, self.name, mode, details or {})

    def commit_job(
        self, ctx: CommitContext, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
    ) -> JobOutcome:
        """Commit a job: make its output visible, and save a report in the report directory if there is one.

        Args:
            commits, tasks: see `TaskReports`.

        Raises:
            HoldfastError: the job is not committed, or its outcome is unknown: call `abort_job`.
        """
        measure = Measure(ctx)
        try:
            with measure.recorder.time_block("committer_commit_job"):
                outcome = self.commit(measure, job, TaskReports(commits, tasks))
        except Exception as error:
            _save_report(ctx, self._failure_report(measure, job, error))
            raise
        if outcome.report is not None:
            _save_report(ctx, outcome.report)
        return replace(outcome, statistics=measure.statistics())

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Abort the job and discard its output, unless it turns out to be committed. Idempotent."""
        measure = Measure(ctx)
        with measure.stage("job_stage_abort"):
            outcome = self.abort(measure, job)
        if not outcome.committed:
            _save_report(ctx, self._failure_report(measure, job, InvalidRequestError("the job was aborted")))
        return outcome

    def _failure_report(self, measure: Measure, job: JobRecord, error: BaseException) -> JobReport:
        """Return the report of a failed job: its last stage, the error and the metrics so far."""
        return JobReport(
            job=job.job,
            committer=self.name,
            mode=job.mode,
            at_s=measure.ctx.clock.now_s(),
            success=False,
            stage=measure.stage_name,
            metrics=measure.metrics(),
            diagnostics={
                "exception": f"{type(error).__name__}: {error}",
                "stacktrace": "".join(traceback.format_tb(error.__traceback__)),
            },
            statistics=measure.statistics(),
        )

    # --- tasks --------------------------------------------------------------------------------------------------------
    def setup_task(self, ctx: CommitContext, job: JobRecord, task: int) -> TaskAttempt:
        """Start an attempt at task number `task`, for this process alone."""
        return TaskAttempt(ctx, job, task, self)

    # --- requirements -------------------------------------------------------------------------------------------------
    def explain_misfit(self, capabilities: Capabilities, settings: CommitSettings = _DEFAULTS) -> str:
        """Return the reason why the committer does not run on a store with these capabilities; empty if it does."""
        for need in self.needs:
            if not need.met(capabilities) and not (need.waivable and settings.allow_unfenced):
                return f"{self.name} needs {need.what}, which the store does not offer"
        return ""

    def check_fit(self, ctx: CommitContext, mode: SaveMode, others: str = "another committer or store") -> None:
        """Refuse a store or a mode that the committer does not support. Sends no request.

        Args:
            others: the alternatives that the error suggests, besides the setting that waives a need.

        Raises:
            UnsupportedError: the committer does not fit the store; the message says why.
            InvalidRequestError: the committer does not support the mode.
        """
        can = ctx.store.capabilities
        refused = self.explain_misfit(can, ctx.settings)
        if refused:
            waiver = "" if self.explain_misfit(can, UNFENCED) else ", or accept that with allow_unfenced"
            raise UnsupportedError(f"{refused}: choose {others}{waiver}", url=ctx.url)
        if mode not in self.modes:
            known = ", ".join(sorted(one.value for one in self.modes))
            raise InvalidRequestError(f"{self.name} supports only the modes {known}: choose one", mode=mode.value)


UNFENCED = CommitSettings(allow_unfenced=True)
"""The settings that waive every need that can be waived."""


def _save_report(ctx: CommitContext, report: JobReport) -> None:
    """Save a report in the report directory, if there is one. An error is logged, never raised."""
    if ctx.reports is None:
        return
    try:
        ctx.reports.store.put(f"{ctx.reports.prefix}summary-{report.job}.json", encode_report(report))
    except HoldfastError as error:
        _log.warning("the report of job %s could not be saved in %s: %s", report.job, ctx.reports.url, error)


def leave_attempt_to_cleanup(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Abort a task attempt without a request: its files are discarded already, and the job's cleanup does the rest."""
