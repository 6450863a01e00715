"""The write side of the data source.

Spark runs `__init__` (on the driver's side), `write` (in tasks), `commit` and `abort` in different processes and hands
each a copy of what `__init__` left: so the writer is plain values, and every phase opens the destination for itself.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pat
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.commit import CommitContext, JobRecord, Kind, SaveMode, TaskAttempt, TaskCommit, get_committer
from holdfast.commit.log import read_entry, read_log
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.formats import get_format
from holdfast.spark.failures import one_sentence
from holdfast.spark.options import WriteOptions
from holdfast.spark.types import arrow_schema, nullable
from holdfast.table import TableWriter, WriteSettings
from holdfast.table.partition import resolve_partition_columns

__all__ = ["HoldfastWriter", "TaskReport"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskReport(WriterCommitMessage):
    """A task's message to the driver; `commit` is None if the job has nothing to write."""

    commit: TaskCommit | None


class HoldfastWriter(DataSourceArrowWriter):
    """One batch write.

    Guarantee: whatever is wrong with the request is raised here, before any task runs. Making the writer announces the
    job; nothing becomes visible before `commit`.

    Args:
        options: of the write.
        schema: of the rows.

    Raises:
        InvalidRequestError: the request cannot be right.
        DestinationExistsError: ``ifExists=fail`` and the destination holds data.
        UnsupportedError: the store cannot keep the promise.

    Crash: an announced job without files; the next ``holdfast recover`` removes it.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._schema = arrow_schema(schema)
        _settings(options, self._schema).check_schema(self._schema)
        options = replace(options, partition_by=resolve_partition_columns(self._schema, options.partition_by))
        self._options = options
        details: dict[str, object] = {
            "schema": nullable(schema).json(),
            "format": options.file_format,
            "partition_by": list(options.partition_by),
        }
        if options.format_strings:
            details["format_options"] = dict(options.format_strings)
        if options.write_id:
            details["write_id"] = options.write_id
        with _opened(options) as ctx:
            if options.mode in (SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS):
                _require_same_layout(ctx, options)
            self._job: JobRecord | None = get_committer(options.committer).start_job(ctx, options.mode, details)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write one partition to hidden files.

        Guarantee: what a second attempt at the same partition writes can never be mixed up with this one (C3); nothing
        of it is visible.
        Crash: hidden files, found by the job's name in theirs.
        """
        with one_sentence():
            if self._job is None:
                for _ in iterator:  # Spark wants its rows taken
                    pass
                return TaskReport(None)
            context = TaskContext.get()
            assert context is not None, "write runs in tasks only"
            task = context.partitionId()
            committer = get_committer(self._options.committer)
            with _opened(self._options) as ctx, committer.start_task(ctx, self._job, task) as attempt:
                self._write_rows(iterator, task, attempt)
                return TaskReport(attempt.commit())

    def _write_rows(self, batches: Iterator[pa.RecordBatch], task: int, attempt: TaskAttempt) -> None:
        first = next(batches, None)
        schema = self._schema if first is None else first.schema
        # Without any row, one file keeps the schema for plain readers; task 0 is there in every job.
        settings = _settings(self._options, schema, write_empty_file=task == 0)
        table = TableWriter(schema, settings, attempt)
        try:
            if first is not None:
                table.write(first)
            for batch in batches:
                table.write(batch)
            table.close()
        except BaseException:
            table.abort()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Decide the job and make it visible; see `holdfast.commit.job.commit_job`."""
        with one_sentence():
            if self._job is None:
                return
            commits = [message.commit if isinstance(message, TaskReport) else None for message in messages]
            with _opened(self._options) as ctx:
                outcome = get_committer(self._options.committer).commit_job(ctx, self._job, commits, len(messages))
            if not outcome.finished:
                _log.warning(outcome.pending_reason)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Give the job up, unless it turns out to be decided: Spark also calls this after a commit that died."""
        with one_sentence():
            if self._job is None:
                return
            with _opened(self._options) as ctx:
                outcome = get_committer(self._options.committer).abort_job(ctx, self._job)
            if outcome.committed:
                _log.warning("the job was committed before its driver failed; its data is there: job=%s", self._job.job)
            if not outcome.finished:
                _log.warning(outcome.pending_reason)


def _require_same_layout(ctx: CommitContext, options: WriteOptions) -> None:
    """Files of two formats, or partitioned in two ways, side by side cannot be read as one table.

    Raises:
        InvalidRequestError: says what is there.
    """
    view = read_log(ctx)
    for seq in range(view.head, view.oldest - 1, -1):
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            return  # trimmed meanwhile: many jobs are writing here, and each of them checks
        if entry.kind is Kind.COMMIT:
            break
    else:
        return
    kept = entry.record.details
    there = kept.get("format"), kept.get("partition_by")
    if None not in there and there != (options.file_format, list(options.partition_by)):
        raise InvalidRequestError(
            "the destination is laid out otherwise: write it the same way, or use mode overwrite",
            url=ctx.url,
            format=there[0],
            partition_by=there[1],
        )


@contextlib.contextmanager
def _opened(options: WriteOptions) -> Iterator[CommitContext]:
    ctx = options.open()
    try:
        yield ctx
    finally:
        ctx.close()


def _settings(options: WriteOptions, schema: pa.Schema, *, write_empty_file: bool = False) -> WriteSettings:
    zones = [field.type.tz for field in schema if pat.is_timestamp(field.type) and field.type.tz is not None]
    return WriteSettings(
        file_format=get_format(options.file_format),
        format_options=options.format_options,
        partition_by=options.partition_by,
        max_records_per_file=options.max_records_per_file,
        target_file_size_bytes=options.target_file_size_bytes,
        write_empty_file=write_empty_file and not options.partition_by,
        time_zone=zones[0] if zones else "UTC",  # Spark labels timestamps with the session's zone
    )
