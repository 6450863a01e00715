"""Write one batch of rows as a job: the write side of the data source.

Spark runs `__init__` (on the driver), `write` (in tasks), `commit` and `abort` in different processes and gives each
process a copy of the object that `__init__` built. So the writer's fields are plain values, and every phase opens the
destination itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.commit import JobRecord, get_committer, require_fit
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.commit.two_phase.write_ids import find_write
from holdfast.commit.write_lookup import JobIds, refuse_running
from holdfast.options.write import WriteOptions
from holdfast.spark.catalog import refuse_table
from holdfast.spark.failures import one_sentence
from holdfast.spark.table_job import TableJob
from holdfast.spark.task_report import Run, TaskReport

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)


class HoldfastWriter(DataSourceArrowWriter):
    """The writer of one batch write, as Spark expects it.

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
        with table.opened() as ctx:
            view = read_log(ctx)
            self._job: JobRecord | None = None
            self._table = table
            if options.write_id:
                if find_write(ctx, view, options.write_id) is not None:
                    return
                refuse_running(ctx, options.write_id)
            self._table = table.fitted(ctx, view)
            committer = get_committer(options.committer)
            named = ctx.with_environment(ids=JobIds(options.token, ctx.ids))
            require_fit(committer, ctx, options.mode)
            self._job = committer.setup_job(named, options.mode, self._table.details)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write one partition to hidden files.

        Guarantee: the outputs of two attempts at the same partition are never mixed (C3); nothing becomes visible.
        Crash: hidden files remain, with the job's id in their names.
        """
        with one_sentence():
            context = TaskContext.get()
            assert context is not None, "Spark calls write in tasks only"
            task = context.partitionId()
            if self._job is None:
                for _ in iterator:  # Spark requires the rows to be consumed
                    pass
                return TaskReport(Run.of(context, task), None)
            refuse_table(context)
            committer = get_committer(self._table.options.committer)
            with self._table.opened() as ctx, committer.setup_task(ctx, self._job, task) as attempt:
                self._table.write_rows(iterator, attempt)
                return TaskReport(Run.of(context, task, attempt.owner.attempt), attempt.commit())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the job and make it visible; see `holdfast.commit.two_phase.job.commit_job`."""
        with one_sentence():
            if self._job is None:
                return
            commits = [message.commit if isinstance(message, TaskReport) else None for message in messages]
            with self._table.opened() as ctx:
                committer = get_committer(self._table.options.committer)
                outcome = committer.commit_job(ctx, self._job, commits, len(messages))
            if not outcome.finished:
                _log.warning(outcome.pending_reason)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort the job, unless it is committed.

        Spark also calls this method if a process died after the commit.
        """
        with one_sentence():
            if self._job is None:
                return
            with self._table.opened() as ctx:
                outcome = get_committer(self._table.options.committer).abort_job(ctx, self._job)
            if outcome.committed:
                _log.warning(
                    "the job was committed before its driver failed; its data is visible: job=%s", self._job.job
                )
            if not outcome.finished:
                _log.warning(outcome.pending_reason)
