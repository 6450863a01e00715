"""`holdfast.job`: task code of any kind publishes files of any kind."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from holdfast.commit import CommitContext, Committer, JobOutcome, JobRecord, SaveMode, get_committer, require_fit
from holdfast.commit.context import table_in_the_way
from holdfast.commit.two_phase.decision_log import read_log, read_newest
from holdfast.errors import HoldfastError, InvalidRequestError, UnsupportedError
from holdfast.options.parsing import JobOptions, parse_job_options
from holdfast.options.said import flag, rooted, say, say_options, say_url
from holdfast.spark.session import is_classic, require_session
from holdfast.spark.stages import stage_tasks
from holdfast.spark.task_function import Reports, TaskFunction
from holdfast.spark.task_reports import accepted_commits, forget_runs, marked_runs
from holdfast.table.foreign import refuse_foreign_write
from holdfast.wording import nearest

__all__ = ["Job", "JobResult", "job"]

_log = logging.getLogger(__name__)

_MODES = {
    "append": SaveMode.APPEND,
    "overwrite": SaveMode.OVERWRITE,
    "overwrite-partitions": SaveMode.OVERWRITE_PARTITIONS,
    "fail": SaveMode.FAIL,
    "error": SaveMode.FAIL,
    "errorifexists": SaveMode.FAIL,
}


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What a job did.

    Attributes:
        url: the destination.
        job: the job's id.
        files, bytes: what it committed.
        finished: False if work after the commit is pending (the files are safe; ``holdfast recover`` finishes it).
    """

    url: str
    job: str
    files: int
    bytes: int
    finished: bool


def job(
    spark: SparkSession,
    url: str,
    *,
    mode: str = "append",
    committer: str | None = None,
    allow_empty: bool = False,
    **options: object,
) -> Job:
    """A job for ``with``: files that its tasks write appear all at once when the block is left, or not at all.

    Guarantee: only files of attempts whose results Spark accepted appear, each partition's once; an error in the block
    (also Ctrl-C) aborts the job and goes on its way. After `OutcomeUnknownError` ``holdfast recover`` tells what became
    of the job, and ends it. Other committers than the default guarantee less: docs/reference/committers.md.

    Args:
        spark: the session, of a classic Spark application.
        url: ``s3://bucket/key`` or a directory.
        mode: ``append``; ``overwrite`` (everything that is there goes, files of the same name are replaced);
            ``overwrite-partitions`` (only in directories that are written to); ``fail`` (alias ``error``,
            ``errorifexists``) if anything is there.
        committer: how the files are held and shown; ``two_phase`` if nothing is said.
        allow_empty: commit also if no task has reported.
        options: store and commit options of docs/reference/options.md in snake case: ``endpoint="http://…"``,
            ``part_size="16m"``.

    Raises:
        InvalidRequestError: fix the call; nothing happened.
        UnsupportedError: the session is Spark Connect's.

    Crash: the driver dying leaves a job that nobody has decided, invisible: ``holdfast recover`` ends it.
    """
    word = str(mode).strip().lower().replace("_", "-")
    if word not in _MODES:
        raise InvalidRequestError(f"no such mode for a job: {nearest(str(mode), _MODES)}", mode=mode)
    require_session(spark)
    if not is_classic(spark):
        raise UnsupportedError("a job needs classic Spark, Spark Connect has no accumulators: use holdfast.write there")
    said = rooted([*say_url(url), *say("committer", committer, "committer"), *say_options(options)])
    return Job(spark, parse_job_options(said), _MODES[word], flag(allow_empty, "allow_empty"))


class Job:
    """See `job`. Enter it once.

    Attributes:
        result: after the block, what was committed.
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
            raise InvalidRequestError("a job is entered once: call holdfast.job again")
        with self._opened() as ctx:
            refuse_foreign_write(ctx)
            self._require_no_table(ctx)
            require_fit(self._committer, ctx, self._mode)
            self._record = self._committer.setup_job(ctx, self._mode)
        return self

    def _require_no_table(self, ctx: CommitContext) -> None:
        """Files are not added to a table; and only the log can say that a table is one no longer.

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

        The wrapped function takes what Spark hands in and is for ``foreachPartition``, ``mapPartitions``,
        ``mapInArrow`` and ``mapInPandas``. The function may return an iterable of results or be a generator of them.
        Each DataFrame or RDD that is made with it is a data set of its own, and all of them count.

        Args:
            function: gets a `holdfast.spark.task_files.Task` and the rows. It runs in Spark's processes, may run more
                than once for a partition, and should write the same names each time.

        Raises:
            InvalidRequestError: the job is not running.
        """
        if self._record is None or self._result is not None:
            raise InvalidRequestError("a job wraps functions inside its block: write `with holdfast.job(…) as job:`")
        return TaskFunction(function, self._options, self._record, self._reports, self._uses)

    @property
    def result(self) -> JobResult:
        """What was committed.

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
                if kind is None:  # also Ctrl-C in the commit; a job that is decided is rolled forward, not undone
                    self._abort(ctx, self._record)
                raise

    def _commit(self, ctx: CommitContext, record: JobRecord) -> None:
        commits = accepted_commits(
            self._reports.value,
            marked_runs(ctx, record.job),
            stage_tasks(self._context),
            held_apart=self._committer.name == "two_phase",  # the others go by a task's number
        )
        if not commits and not self._allow_empty:
            raise InvalidRequestError(
                "no task has reported, nothing is committed: let the function run by an action that takes all rows, or "
                "give allow_empty=True if there may be none",
                url=ctx.url,
            )
        outcome = self._committer.commit_job(ctx, record, commits, {commit.task for commit in commits})
        self._after(ctx, outcome)
        self._result = JobResult(
            url=self._options.store.url,
            job=outcome.job,
            files=outcome.totals.files,
            bytes=outcome.totals.size_bytes,
            finished=outcome.finished,
        )

    def _abort(self, ctx: CommitContext, record: JobRecord) -> None:
        """Give the job up; the error that led here is the one to raise, so trouble is logged."""
        try:
            outcome = self._committer.abort_job(ctx, record)
        except HoldfastError as error:
            _log.warning("the job could not be ended: run holdfast recover %s (%s)", ctx.url, error)
            return
        if outcome.committed:
            _log.warning("the job was committed before the error; its files are there: job=%s", record.job)
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

    @contextlib.contextmanager
    def _opened(self) -> Iterator[CommitContext]:
        ctx = self._options.open()
        try:
            yield ctx
        finally:
            ctx.close()
