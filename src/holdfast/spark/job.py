"""Implement `holdfast.job`: publish files of any kind that task code writes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from holdfast.commit import CommitContext, Committer, JobOutcome, JobRecord, SaveMode, get_committer, require_fit
from holdfast.commit.context import table_in_the_way
from holdfast.commit.two_phase.decision_log import read_log, read_newest
from holdfast.errors import HoldfastError, InvalidRequestError, UnsupportedError
from holdfast.options.job import JobOptions, parse_job_options
from holdfast.options.keywords import as_flag, from_options, from_text, from_url, with_absolute_paths
from holdfast.spark.accepted_runs import accepted_commits, forget_runs, marked_runs
from holdfast.spark.result import JobResult
from holdfast.spark.session import is_classic, require_session
from holdfast.spark.stages import stage_tasks
from holdfast.spark.task_function import Reports, TaskFunction
from holdfast.table.foreign import refuse_foreign_write
from holdfast.wording import nearest

_log = logging.getLogger(__name__)

_MODES = {
    "append": SaveMode.APPEND,
    "overwrite": SaveMode.OVERWRITE,
    "overwrite-partitions": SaveMode.OVERWRITE_PARTITIONS,
    "fail": SaveMode.FAIL,
    "error": SaveMode.FAIL,
    "errorifexists": SaveMode.FAIL,
}


def job(
    spark: SparkSession,
    url: str,
    *,
    mode: str = "append",
    committer: str | None = None,
    allow_empty: bool = False,
    **options: object,
) -> Job:
    """Return a job for a ``with`` block: when the block ends, all files that its tasks wrote appear at once, or none.

    Guarantee: only files of task attempts whose results Spark accepted appear, and the files of each partition appear
    once. An exception in the block (including Ctrl-C) aborts the job and propagates. After `OutcomeUnknownError`,
    ``holdfast recover`` reports the job's outcome and completes or aborts it. Committers other than the default
    guarantee less: docs/reference/committers.md.

    Args:
        spark: the session, of a classic Spark application.
        url: ``s3://bucket/key`` or a directory.
        mode: ``append``; ``overwrite`` (replace everything, including files with the same names);
            ``overwrite-partitions`` (replace only the directories that are written to); ``fail`` (alias ``error``,
            ``errorifexists``) if the destination holds data.
        committer: the commit protocol; ``two_phase`` by default.
        allow_empty: whether to commit even if no task has reported.
        options: store and commit options of docs/reference/options.md in snake case: ``endpoint="http://…"``,
            ``part_size="16m"``.

    Raises:
        InvalidRequestError: fix the call; nothing happened.
        UnsupportedError: the session is Spark Connect's.

    Crash: if the driver dies, the job stays undecided and invisible: ``holdfast recover`` aborts it.
    """
    word = str(mode).strip().lower().replace("_", "-")
    if word not in _MODES:
        raise InvalidRequestError(f"no such mode for a job: {nearest(str(mode), _MODES)}", mode=mode)
    require_session(spark)
    if not is_classic(spark):
        raise UnsupportedError("a job needs classic Spark, Spark Connect has no accumulators: use holdfast.write there")
    given = with_absolute_paths(
        [*from_url(url), *from_text("committer", committer, "committer"), *from_options(options)]
    )
    return Job(spark, parse_job_options(given), _MODES[word], as_flag(allow_empty, "allow_empty"))


class Job:
    """A job that `holdfast.job` returned. Enter its ``with`` block once.

    Attributes:
        result: the outcome of the committed job; available after the block.
    """

    def __init__(self, spark: SparkSession, options: JobOptions, mode: SaveMode, allow_empty: bool) -> None:
        self._options = options
        self._mode = mode
        self._allow_empty = allow_empty
        self._record: JobRecord | None = None
        self._uses = itertools.count()
        self._context = spark.sparkContext
        self._reports = self._context.accumulator([], Reports())
        self._result: JobResult | None = None

    def __enter__(self) -> Job:
        if self._record is not None:
            raise InvalidRequestError("a job can be entered only once: call holdfast.job again")
        with self._opened() as ctx:
            refuse_foreign_write(ctx)
            self._refuse_table(ctx)
            require_fit(self._committer, ctx, self._mode)
            self._record = self._committer.setup_job(ctx, self._mode)
        return self

    def _refuse_table(self, ctx: CommitContext) -> None:
        """Refuse to add files to a table. A table may be replaced, but only by a committer whose log records this.

        Raises:
            InvalidRequestError: the destination holds a table.
        """
        newest = read_newest(ctx, read_log(ctx))
        if newest is None or newest.state.table is None:
            return
        if self._mode not in (SaveMode.OVERWRITE, SaveMode.FAIL) or not self._committer.keeps_log:
            raise table_in_the_way(ctx, newest.state.table)

    def attempt(self, function: Callable[..., Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """Wrap ``function(task, rows)`` so that each run of it by Spark is an attempt at a task of this job.

        The wrapped function takes the rows that Spark passes to ``foreachPartition``, ``mapPartitions``,
        ``mapInArrow`` or ``mapInPandas``. The function may return an iterable of results or be a generator of them.
        Each DataFrame or RDD that is made with the wrapped function is a separate data set, and all of them are
        committed.

        Args:
            function: takes a `holdfast.spark.task_files.Task` and the rows. It runs in Spark's worker processes, may
                run more than once for a partition, and should write the same names each time.

        Raises:
            InvalidRequestError: the job is not running.
        """
        if self._record is None or self._result is not None:
            raise InvalidRequestError("a job wraps functions inside its block: write `with holdfast.job(…) as job:`")
        return TaskFunction(function, self._options, self._record, self._reports, self._uses)

    @property
    def result(self) -> JobResult:
        """The outcome of the committed job.

        Raises:
            InvalidRequestError: the job is not committed.
        """
        if self._result is None:
            raise InvalidRequestError("the job is not committed: leave its block first")
        return self._result

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        assert self._record is not None, "entered"
        with self._opened() as ctx:
            try:
                if kind is None:
                    self._commit(ctx, self._record)
                else:
                    self._abort(ctx, self._record)
            except BaseException:
                if kind is None:  # including Ctrl-C during the commit; a decided job is rolled forward, not aborted
                    self._abort(ctx, self._record)
                raise

    def _commit(self, ctx: CommitContext, record: JobRecord) -> None:
        commits = accepted_commits(
            self._reports.value,
            marked_runs(ctx, record.job),
            stage_tasks(self._context),
            pins_attempts=self._committer.pins_attempts,
        )
        if not commits and not self._allow_empty:
            raise InvalidRequestError(
                "no task has reported, nothing is committed: run the function by an action that takes all rows, or "
                "pass allow_empty=True if there may be none",
                url=ctx.url,
            )
        outcome = self._committer.commit_job(ctx, record, commits, {commit.task for commit in commits})
        self._after(ctx, outcome)
        self._result = JobResult.of(self._options.store.url, outcome)

    def _abort(self, ctx: CommitContext, record: JobRecord) -> None:
        """Abort the job. Errors are only logged, because the caller raises the original error."""
        try:
            outcome = self._committer.abort_job(ctx, record)
        except HoldfastError as error:
            _log.warning("the job could not be aborted: run holdfast recover %s (%s)", ctx.url, error)
            return
        if outcome.committed:
            _log.warning("the job was committed before the error; its files are visible: job=%s", record.job)
        self._after(ctx, outcome)

    def _after(self, ctx: CommitContext, outcome: JobOutcome) -> None:
        if not outcome.finished:
            _log.warning(outcome.pending_reason)
        try:
            forget_runs(ctx, outcome.job)
        except HoldfastError as error:
            _log.warning("marks of the job's runs are left below %s: run holdfast recover (%s)", ctx.url, error)

    @property
    def _committer(self) -> Committer:
        return get_committer(self._options.committer)

    def _opened(self) -> CommitContext:
        return self._options.store.open(self._options.settings, committer=self._options.committer)
