"""Implement `holdfast.job`: publish files of any kind that task code writes."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from holdfast.commit import (
    CommitContext,
    Committer,
    JobRecord,
    SaveMode,
    TaskCommit,
    get_committer,
    require_fit,
)
from holdfast.commit.context import table_exists_error
from holdfast.commit.two_phase.decision_log import read_log, read_newest_state
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.options.keywords import (
    make_option_paths_absolute,
    option_from_text,
    option_from_url,
    options_from_values,
    parse_save_mode,
)
from holdfast.options.write import JobOptions, parse_job_options
from holdfast.spark.failures import unwrap_task_errors
from holdfast.spark.session import (
    is_classic_session,
    refuse_relative_path_over_connect,
    require_dataframe,
    require_session,
)
from holdfast.spark.table_job import warn_if_committed_job_has_work_left
from holdfast.spark.task import RUNS, TaskFunction
from holdfast.spark.write import JobResult
from holdfast.table.foreign import refuse_foreign_write

_log = logging.getLogger(__name__)


def job(
    spark: SparkSession,
    url: str,
    *,
    mode: str = "append",
    committer: str | None = None,
    **options: object,
) -> Job:
    """Return a job for a ``with`` block: when the block ends, all files that its tasks wrote appear at once, or none.

    Guarantee: only files of task attempts whose results Spark accepted appear, and the files of each partition appear
    once. An exception in the block (including Ctrl-C) aborts the job and propagates. After `OutcomeUnknownError`,
    ``holdfast recover`` reports the job's outcome and completes or aborts it. Committers other than the default
    guarantee less: docs/reference/committers.md.

    Args:
        spark: the session.
        url: ``s3://bucket/key`` or a directory.
        mode: ``append``; ``overwrite`` (replace everything, including files with the same names);
            ``overwrite-partitions`` (replace only the directories that are written to); ``fail`` (alias ``error``,
            ``errorifexists``) if the destination holds data.
        committer: the commit protocol; ``two_phase`` by default.
        options: store and commit options of docs/reference/options.md in snake case: ``endpoint="http://…"``,
            ``part_size="16m"``.

    Raises:
        InvalidRequestError: fix the call; nothing happened.

    Crash: if the driver dies, the job stays undecided and invisible: ``holdfast recover`` aborts it.
    """
    chosen = SaveMode(parse_save_mode(mode))
    if chosen is SaveMode.IGNORE:
        raise InvalidRequestError("a job has no mode ignore: choose fail", mode=mode)
    require_session(spark)
    given = [
        *option_from_url(url),
        *option_from_text("committer", committer, "committer"),
        *options_from_values(options),
    ]
    parsed = parse_job_options(make_option_paths_absolute(given) if is_classic_session(spark) else given)
    refuse_relative_path_over_connect(spark, parsed.store.url)
    return Job(parsed, chosen)


class Job:
    """A job that `holdfast.job` returned. Enter its ``with`` block once.

    Attributes:
        result: the outcome of the committed job; available after the block.
    """

    def __init__(self, options: JobOptions, mode: SaveMode) -> None:
        self._options = options
        self._mode = mode
        self._record: JobRecord | None = None
        self._runs = 0
        self._commits: list[TaskCommit] = []
        self._result: JobResult | None = None

    def __enter__(self) -> Job:
        if self._record is not None:
            raise InvalidRequestError("a job can be entered only once: call holdfast.job again")
        with self._open_context() as ctx:
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
        newest = read_newest_state(ctx, read_log(ctx))
        if newest is None or newest.state.table is None:
            return
        if self._mode not in (SaveMode.OVERWRITE, SaveMode.FAIL) or not self._committer.keeps_log:
            raise table_exists_error(ctx, newest.state.table)

    def run(self, data: Any, function: Callable[..., Any]) -> list[Any]:
        """Call ``function(task, rows)`` for each partition of a DataFrame or an RDD, in Spark's tasks.

        May be called several times in a block; the files of all of them become visible together. If it raises, let the
        error leave the block: the job is aborted.

        Args:
            data: a DataFrame, whose rows come as Arrow batches (`pyarrow.RecordBatch`); or an RDD, whose elements come
                as they are: ``df.rdd`` has rows.
            function: takes a `holdfast.spark.task.Task` and an iterator of the rows. It runs in Spark's worker
                processes, may run more than once for a partition, and should write the same names each time.

        Returns:
            What the function has returned or yielded, in the order of the partitions; all of it fits into the driver's
            memory.

        Raises:
            InvalidRequestError: the job is not running.
        """
        if self._record is None or self._result is not None:
            raise InvalidRequestError("a job runs functions inside its block: write `with holdfast.job(…) as job:`")
        if self._runs >= RUNS:
            raise InvalidRequestError(f"a job runs at most {RUNS} functions: write fewer, larger data sets")
        task = TaskFunction(function, self._options, self._record, self._runs)
        with unwrap_task_errors():
            if hasattr(type(data), "mapPartitionsWithIndex"):  # a DataFrame of Spark Connect has every attribute
                reports = data.mapPartitions(task.call_with_rows).collect()
            else:
                require_dataframe(data)
                rows = data.mapInArrow(task.call_with_batches, "report binary").collect()
                reports = [pickle.loads(row[0]) for row in rows]
        self._runs += 1
        self._commits += [commit for commit, _results in reports]
        return [result for _commit, results in reports for result in results]

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
        with self._open_context() as ctx:
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
        if not self._runs:
            raise InvalidRequestError("nothing has run, nothing is committed: call job.run in the block", url=ctx.url)
        tasks = {commit.task for commit in self._commits}
        outcome = self._committer.commit_job(ctx, record, self._commits, tasks)
        warn_if_committed_job_has_work_left(outcome)
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
        warn_if_committed_job_has_work_left(outcome)

    @property
    def _committer(self) -> Committer:
        return get_committer(self._options.committer)

    def _open_context(self) -> CommitContext:
        return self._options.store.open(self._options.settings, committer=self._options.committer)
