"""The write side of a stream: each micro-batch is a job, decided once, whatever is repeated.

Spark builds the writer anew for a batch's tasks and again for its commit or abort, and tells neither of the two
constructors which query or batch it is for: only tasks can ask. So the constructor plans a job, the tasks complete the
plan and announce it, and their messages carry it to the commit. Building the writer therefore writes nothing.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.commit import TWO_PHASE, JobRecord, SaveMode, StreamBatch, TaskCommit
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.commit.two_phase.stream_jobs import join_batch, plan_batch, settle_batch
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.options.parsing import StreamOptions
from holdfast.spark.failures import one_sentence
from holdfast.spark.table_job import TableJob
from holdfast.table.contract import TableRecord

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchReport", "HoldfastStreamWriter"]

_log = logging.getLogger(__name__)

# Set by Spark for the tasks of a micro-batch: StreamExecution.QUERY_ID_KEY and MicroBatchExecution.BATCH_ID_KEY. The
# query's id is kept in its checkpoint and survives restarts.
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


@dataclass(frozen=True)
class BatchReport(WriterCommitMessage):
    """A task's message to the driver.

    Attributes:
        job: the batch's job, the same in all messages; None if the task had nothing to write.
        commit: what the task wrote; None likewise.
        written: what its files look like; None likewise. The writer that commits is made anew, from what the table is
            by then.
    """

    task: int
    job: JobRecord | None
    commit: TaskCommit | None
    written: TableRecord | None


class HoldfastStreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch of a stream.

    Guarantee: a batch is committed once, however often Spark writes it (C8): the record that makes it visible also
    says which batch it was.

    Args:
        options: of the stream.
        schema: of the rows.

    Raises:
        InvalidRequestError: the request cannot be right.
        UnsupportedError: the store cannot keep the promise.
    """

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        table = TableJob.of(options.write, schema)
        self._stream = options.stream_id
        with table.opened() as ctx:
            view = read_log(ctx)
            self._table = table.fitted(ctx, view)
            self._plan = plan_batch(ctx, options.write.mode, self._table.details, view)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchReport:
        """Write one partition of the batch to hidden files; nothing if it has no rows, or is committed already.

        Raises:
            InvalidRequestError: another checkpoint wrote the stream before.

        Crash: hidden files and an announced job; the stream's next commit removes them.
        """
        with one_sentence():
            context = TaskContext.get()
            assert context is not None, "write runs in tasks only"
            task = context.partitionId()
            batches = (batch for batch in iterator if batch.num_rows)
            first = list(itertools.islice(batches, 1))
            if not first and self._table.options.mode is SaveMode.APPEND:
                return BatchReport(task, None, None, None)
            with self._table.opened() as ctx:
                job = join_batch(ctx, self._plan, self._batch(context))
                if job is None:
                    for _ in batches:  # Spark wants its rows taken
                        pass
                    return BatchReport(task, None, None, None)
                with TWO_PHASE.setup_task(ctx, job, task) as attempt:
                    self._table.write_rows(itertools.chain(first, batches), attempt)
                    return BatchReport(task, job, attempt.commit(), self._table.written)

    def _batch(self, context: TaskContext) -> StreamBatch:
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if not query or not batch:
            raise UnsupportedError(
                "Spark does not tell the tasks which batch they write: call holdfast.write in foreachBatch"
            )
        return StreamBatch(stream=self._stream or query, checkpoint=query, batch=int(batch))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Decide the batch and make it visible; again, also by another driver, changes nothing.

        Raises:
            InvalidRequestError: a task's message is missing, or the messages are not this batch's. Undecided.
            HoldfastError: see `holdfast.commit.two_phase.job.commit_job`.
        """
        with one_sentence():
            reports = _all_reports(messages)
            jobs = _jobs(reports)
            written = next((report.written for report in reports if report.written is not None), None)
            with (self._table if written is None else self._table.with_files(written)).opened() as ctx:
                if not jobs:
                    settle_batch(ctx)
                    return
                if len(jobs) > 1 or jobs[0].stream is None or jobs[0].stream.batch != batchId:
                    raise InvalidRequestError(
                        "the tasks report for another batch: start the query again", batch=batchId
                    )
                commits = [report.commit for report in reports if report.commit is not None]
                tasks = [report.task for report in reports if report.job is not None]
                outcome = TWO_PHASE.commit_job(ctx, jobs[0], commits, tasks)
            if not outcome.committed:
                _log.info("the batch was committed before, what was written again is dropped: batch=%s", batchId)
            if not outcome.finished:
                _log.warning(outcome.pending_reason)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Give this attempt at the batch up, unless it turns out to be committed. Spark may write the batch again.

        If no task has reported there is nothing that says which job it was; the stream's next commit ends it.
        """
        with one_sentence():
            jobs = _jobs([message for message in messages if isinstance(message, BatchReport)])
            if not jobs:
                return
            with self._table.opened() as ctx:
                for job in jobs:
                    outcome = TWO_PHASE.abort_job(ctx, job)
                    if outcome.committed:
                        _log.warning("the batch was committed before its driver failed: batch=%s", batchId)
                    if not outcome.finished:
                        _log.warning(outcome.pending_reason)


def _all_reports(messages: Sequence[WriterCommitMessage | None]) -> list[BatchReport]:
    """One report a task, none missing, none twice (C1, C3).

    Raises:
        InvalidRequestError: they are not.
    """
    reports = [message for message in messages if isinstance(message, BatchReport)]
    if sorted(report.task for report in reports) != [*range(len(messages))]:
        raise InvalidRequestError(
            "the batch cannot be committed, each task must report exactly once: start the query again",
            tasks=len(messages),
            reported=len(reports),
        )
    return reports


def _jobs(reports: Sequence[BatchReport]) -> list[JobRecord]:
    """The different jobs in the reports: one, if all is well."""
    jobs: list[JobRecord] = []
    for report in reports:
        if report.job is not None and report.job not in jobs:
            jobs.append(report.job)
    return jobs
