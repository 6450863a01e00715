"""Write rows as jobs: the write side of the data source.

Spark runs `__init__` (on the driver), `write` (in tasks), `commit` and `abort` in different processes and gives each
process a copy of the object that `__init__` built. So the writer's fields are plain values, and every phase opens the
destination itself.

Each micro-batch of a stream is a job that is committed once, however often Spark repeats it. Spark builds one writer
for a batch's tasks and another one for its commit or abort. Neither constructor learns which query and batch the writer
is for; only tasks can find out. So the constructor plans a job without writing anything. The tasks complete the plan
and announce the job, and their messages carry the job to the commit.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.commit import TWO_PHASE, JobRecord, SaveMode, StreamBatch, get_committer, require_fit
from holdfast.commit.two_phase.decision_log import find_job_by_write_id, read_log
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch, roll_forward_decisions
from holdfast.commit.writes import WriteJobIdSource, refuse_running_write
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.options.write import StreamOptions, WriteOptions
from holdfast.spark.failures import errors_without_traceback, refuse_save_as_table
from holdfast.spark.table_job import TableJob, TaskReport, warn_if_committed_job_has_work_left

if TYPE_CHECKING:
    import pyarrow as pa


_log = logging.getLogger(__name__)


class HoldfastWriter(DataSourceArrowWriter):
    """Writes one batch of rows as a job, for Spark's data source API.

    Guarantee: an invalid request is refused in the constructor, before any task runs. The constructor announces the
    job; nothing becomes visible before `commit`.

    Args:
        options: the options of the write.
        schema: the schema of the rows.

    Raises:
        InvalidRequestError: the request is invalid, or does not fit the existing table.
        ConflictError: a write with the same write id is running.
        DestinationExistsError: ``ifExists=fail`` and the destination holds data.
        UnsupportedError: the store lacks a capability that the committer needs.

    Crash: an announced job without files remains; the next ``holdfast recover`` removes it.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        table = TableJob.of(options, schema)
        with table.open_destination() as ctx:
            view = read_log(ctx)
            self._job: JobRecord | None = None
            self._table = table
            if options.write_id:
                if find_job_by_write_id(ctx, view, options.write_id) is not None:
                    return
                refuse_running_write(ctx, options.write_id)
            self._table = table.fit_to_table(ctx, view)
            committer = get_committer(options.committer)
            named = ctx.with_environment(ids=WriteJobIdSource(options.token, ctx.ids))
            require_fit(committer, ctx, options.mode)
            self._job = committer.setup_job(named, options.mode, self._table.details)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write one partition to hidden files.

        Guarantee: the outputs of two attempts at the same partition are never mixed (C3); nothing becomes visible.
        Crash: hidden files remain, with the job's id in their names.
        """
        with errors_without_traceback():
            context = TaskContext.get()
            assert context is not None, "Spark calls write in tasks only"
            task = context.partitionId()
            if self._job is None:
                for _ in iterator:  # Spark requires the rows to be consumed
                    pass
                return TaskReport(task, None)
            refuse_save_as_table(context)
            committer = get_committer(self._table.options.committer)
            with self._table.open_destination() as ctx, committer.setup_task(ctx, self._job, task) as attempt:
                self._table.write_rows(iterator, attempt)
                return TaskReport(task, attempt.commit())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the job and make it visible; see `holdfast.commit.two_phase.job.commit_job`."""
        with errors_without_traceback():
            if self._job is None:
                return
            commits = [message.commit if isinstance(message, TaskReport) else None for message in messages]
            with self._table.open_destination() as ctx:
                committer = get_committer(self._table.options.committer)
                warn_if_committed_job_has_work_left(committer.commit_job(ctx, self._job, commits, len(messages)))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort the job, unless it is committed.

        Spark also calls this method if a process died after the commit.
        """
        with errors_without_traceback():
            if self._job is None:
                return
            self._table.abort(self._job)


# --- streams ----------------------------------------------------------------------------------------------------------
# Spark sets these for the tasks of a micro-batch: StreamExecution.QUERY_ID_KEY and MicroBatchExecution.BATCH_ID_KEY.
# The query's id is stored in its checkpoint and survives restarts.
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


class HoldfastStreamWriter(DataSourceStreamArrowWriter):
    """Writes one micro-batch of a stream as a job, for Spark's data source API.

    Guarantee: a batch is committed once, however often Spark writes it (C8): the record that makes it visible also
    names the batch.

    Args:
        options: the options of the stream.
        schema: the schema of the rows.

    Raises:
        InvalidRequestError: the request is invalid, or does not fit the existing table.
        UnsupportedError: the store lacks a capability that the committer needs.
    """

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        table = TableJob.of(options.write, schema)
        self._stream = options.stream_id
        with table.open_destination() as ctx:
            view = read_log(ctx)
            self._table = table.fit_to_table(ctx, view)
            self._plan = plan_batch(ctx, options.write.mode, self._table.details, view)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write one partition of the batch to hidden files; write nothing if it is empty or the batch is committed.

        Raises:
            InvalidRequestError: a query with another checkpoint has already written this stream.

        Crash: hidden files and an announced job remain; the stream's next commit removes them.
        """
        with errors_without_traceback():
            context = TaskContext.get()
            assert context is not None, "Spark calls write in tasks only"
            task = context.partitionId()
            batches = (batch for batch in iterator if batch.num_rows)
            first = list(itertools.islice(batches, 1))
            if not first and self._table.options.mode is SaveMode.APPEND:
                return TaskReport(task, None)
            with self._table.open_destination() as ctx:
                job = announce_stream_batch(ctx, self._plan, self._read_stream_batch(context))
                if job is None:
                    for _ in batches:  # Spark requires the rows to be consumed
                        pass
                    return TaskReport(task, None)
                with TWO_PHASE.setup_task(ctx, job, task) as attempt:
                    self._table.write_rows(itertools.chain(first, batches), attempt)
                    return TaskReport(task, attempt.commit(), job, self._table.written)

    def _read_stream_batch(self, context: TaskContext) -> StreamBatch:
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if not query or not batch:
            raise UnsupportedError(
                "Spark does not tell the tasks which batch they write: call holdfast.write in foreachBatch"
            )
        return StreamBatch(stream=self._stream or query, checkpoint=query, batch=int(batch))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the batch and make it visible. Idempotent, even if another driver repeats the commit.

        Raises:
            InvalidRequestError: a task's message is missing, or the messages belong to another batch. The batch stays
                undecided.
            HoldfastError: see `holdfast.commit.two_phase.job.commit_job`.
        """
        with errors_without_traceback():
            reports = _require_all_task_reports(messages)
            jobs = _distinct_jobs(reports)
            written = next((report.written for report in reports if report.written is not None), None)
            with (
                self._table if written is None else self._table.with_table_used_by_tasks(written)
            ).open_destination() as ctx:
                if not jobs:
                    roll_forward_decisions(ctx)
                    return
                if len(jobs) > 1 or jobs[0].stream is None or jobs[0].stream.batch != batchId:
                    raise InvalidRequestError(
                        "the tasks' reports belong to another batch: start the query again", batch=batchId
                    )
                commits = [report.commit for report in reports if report.commit is not None]
                tasks = [report.task for report in reports if report.job is not None]
                outcome = TWO_PHASE.commit_job(ctx, jobs[0], commits, tasks)
            if not outcome.committed:
                _log.info("the batch is already committed, this attempt's output is discarded: batch=%s", batchId)
            warn_if_committed_job_has_work_left(outcome)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Abort this attempt at the batch, unless it is committed. Spark may write the batch again.

        If no task has reported, this method does not know the job; the stream's next commit aborts it.
        """
        with errors_without_traceback():
            for job in _distinct_jobs([message for message in messages if isinstance(message, TaskReport)]):
                self._table.abort(job)


def _require_all_task_reports(messages: Sequence[WriterCommitMessage | None]) -> list[TaskReport]:
    """Return the reports, one from each task (C1, C3).

    Raises:
        InvalidRequestError: a report is missing, or a task reported twice.
    """
    reports = [message for message in messages if isinstance(message, TaskReport)]
    if sorted(report.task for report in reports) != [*range(len(messages))]:
        raise InvalidRequestError(
            "the batch cannot be committed, each task must report exactly once: start the query again",
            tasks=len(messages),
            reported=len(reports),
        )
    return reports


def _distinct_jobs(reports: Sequence[TaskReport]) -> list[JobRecord]:
    """Return the distinct jobs in the reports; normally there is one."""
    jobs: list[JobRecord] = []
    for report in reports:
        if report.job is not None and report.job not in jobs:
            jobs.append(report.job)
    return jobs
