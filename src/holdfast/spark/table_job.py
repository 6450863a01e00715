"""Write a table through the tasks of a job: the code that batch writes and streaming micro-batches share.

Spark starts a new process for each job commit, and the user waits for its imports. So a process that only commits or
aborts a job loads neither Arrow nor a file format (`tests/tidy/test_light_import.py`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.commit import CommitContext, JobOutcome, JobRecord, SaveMode, TaskAttempt, TaskCommit, get_committer
from holdfast.commit.destination import has_output
from holdfast.commit.two_phase.decision_log import WRITE_ID, read_newest_state
from holdfast.commit.writes import TOKEN
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.formats import get_format
from holdfast.options.write import WriteOptions
from holdfast.table.contract import TableRecord, decode_table, merge_append
from holdfast.table.foreign import refuse_foreign_write
from holdfast.versioned_log import LogView

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.table.writer import WriteSettings

_log = logging.getLogger(__name__)

_ADDING = (SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS)
_INSPECTED_FILES = 1000  # before each job of a committer without a log: one page of a listing


@dataclass(frozen=True)
class TaskReport(WriterCommitMessage):
    """The report of a Spark task to the driver about the files that it wrote.

    Attributes:
        task: the task's number in the job: that of its partition.
        commit: the data that the attempt passes to the job commit; None if the task had nothing to write.
        job: the job of a stream's batch, the same in all reports of the batch. None if the task had nothing to write;
            also None if the write is not a stream's, because then the driver knows the job.
        written: the columns and layout of the files of a stream's batch; None if `job` is None. Needed because Spark
            builds a new writer for the commit, and by then the table may have changed.
    """

    task: int
    commit: TaskCommit | None
    job: JobRecord | None = None
    written: TableRecord | None = None


@dataclass(frozen=True)
class TableJob:
    """A checked write request. Spark sends the request to tasks, so all fields are plain values.

    Attributes:
        options: the options of the write, with partition columns spelled as in `written`.
        written: the schema and layout of the job's files, as the destination's table requires them.
        rows: Spark's schema of the rows as JSON, if the rows are written without a cast; empty if they are cast.
        details: additional data that the log stores with the decision.
    """

    options: WriteOptions
    written: TableRecord
    rows: str
    details: dict[str, object]

    @functools.cached_property
    def columns(self) -> pa.Schema:
        """Return the Arrow schema of the files; tasks convert every batch to it."""
        from holdfast.spark.types import arrow_schema_with_metadata, make_table_spark_schema, parse_schema_json

        return arrow_schema_with_metadata(
            parse_schema_json(self.rows) if self.rows else make_table_spark_schema(self.written)
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "columns"}

    @classmethod
    def of(cls, options: WriteOptions, schema: StructType) -> TableJob:
        """Build the request, and check all that can be checked without access to the destination.

        Raises:
            InvalidRequestError: the format does not support the rows, or a partition column is missing.
        """
        from holdfast.spark.types import arrow_schema_with_metadata, drop_foreign_metadata, make_nullable

        schema = drop_foreign_metadata(schema)
        arrow = arrow_schema_with_metadata(schema)
        options = replace(options, partition_by=_make_write_settings(options).check_schema(arrow))
        written = TableRecord(
            fields=json.loads(make_nullable(schema).json())["fields"],
            file_format=options.format.name,
            reader_options=options.format.file_format.reader_options(options.format.options),
            partition_by=options.partition_by,
        )
        given = {TOKEN: options.token, WRITE_ID: options.write_id}
        return cls(options, written, schema.json(), {name: value for name, value in given.items() if value})

    # --- the contract -------------------------------------------------------------------------------------------------
    def fit_to_table(self, ctx: CommitContext, view: LogView) -> TableJob:
        """Return the job with the column names, order and types of the destination's table.

        Raises:
            InvalidRequestError: the rows do not fit the table, or the destination is a table in another table format
                (such as Delta).
        """
        refuse_foreign_write(ctx)
        job = self
        newest = read_newest_state(ctx, view)
        table = newest.state.table if newest is not None else None
        if self.options.mode in _ADDING:
            known = self._find_known_table(ctx, table)
            if known is not None:
                job = self._adapt_to_table(known)
        if not self._keeps_a_log:
            self._refuse_unrecordable_table_change(ctx, table)
        return job

    @property
    def _keeps_a_log(self) -> bool:
        return get_committer(self.options.committer).keeps_log

    def _refuse_unrecordable_table_change(self, ctx: CommitContext, table: Mapping[str, object] | None) -> None:
        """Refuse to change a table that a log describes with a committer that cannot record the change.

        Raises:
            InvalidRequestError: the job would change the table.
        """
        if table is None:
            return
        known = decode_table(table)
        try:
            same = merge_append(known, self.written, merge=self.options.merge_schema) == known
        except InvalidRequestError:
            same = False
        if not same:
            raise InvalidRequestError(
                "the destination's log describes a different table, and this committer writes no log: use two_phase",
                url=ctx.url,
                committer=self.options.committer,
            )

    def _find_known_table(self, ctx: CommitContext, table: Mapping[str, object] | None) -> TableRecord | None:
        if table is not None:
            return decode_table(table)
        if not has_output(ctx):
            return None
        from holdfast.table.existing import infer_existing_table

        limit = None if self._keeps_a_log else _INSPECTED_FILES
        return infer_existing_table(ctx, self.written, self.columns, self.options.format.options, limit=limit)

    def _adapt_to_table(self, known: TableRecord) -> TableJob:
        after = merge_append(known, self.written, merge=self.options.merge_schema)
        names = {str(one["name"]).lower() for one in self.written.fields}
        by_position = get_format(known.file_format).by_position
        partition_by = set(after.partition_by)
        fields = [
            one
            for one in after.fields
            if str(one["name"]).lower() in names or (by_position and one["name"] not in partition_by)
        ]
        job = self.with_table_used_by_tasks(replace(after, fields=fields))
        _make_write_settings(job.options).check_schema(job.columns)
        return job

    def with_table_used_by_tasks(self, written: TableRecord) -> TableJob:
        """Return this job with the description of the table that its tasks used, which may be out of date."""
        options = replace(self.options, partition_by=written.partition_by)
        return replace(self, options=options, written=written, rows="")

    def describe_table_after_commit(
        self, ctx: CommitContext, job: JobRecord, table: Mapping[str, object] | None
    ) -> Mapping[str, object] | None:
        """Return the table's description after the job's commit; see `holdfast.commit.context.Contract`.

        Raises:
            ConflictError: another job has changed the table, in a way that this job's files do not fit, since this job
                started.
        """
        if job.mode not in _ADDING:
            return self.written.encode()
        try:
            known = self._find_known_table(ctx, table)
        except InvalidRequestError as error:
            raise ConflictError(
                "other files were added to the destination during the job, nothing is committed: inspect them",
                url=ctx.url,
            ) from error
        if known is None:
            return self.written.encode()
        return merge_append(known, self.written, merge=self.options.merge_schema, written=True).encode()

    # --- tasks --------------------------------------------------------------------------------------------------------
    def write_rows(self, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> None:
        """Write one partition's rows to hidden files of `attempt`."""

        from holdfast.table.writer import TableWriter

        # If there are no rows, one empty file records the schema for plain readers; every job has a task 0.
        settings = _make_write_settings(self.options, write_empty_file=attempt.owner.task == 0)
        table = TableWriter(self.columns, settings, attempt)
        try:
            for batch in batches:
                table.write(batch)
            table.close()
        except BaseException:
            table.abort()
            raise

    def _normalize_partition_directory(self, directory: str) -> str:
        from holdfast.table.partition import normalize_partition_directory

        return normalize_partition_directory(directory, self.columns)

    def abort(self, job: JobRecord) -> None:
        """Abort a job, unless it is committed: Spark also aborts it if a process died after the commit."""
        with self.open_destination() as ctx:
            outcome = get_committer(self.options.committer).abort_job(ctx, job)
        if outcome.committed:
            _log.warning("the job was committed before its driver failed; its data is visible: job=%s", job.job)
        warn_if_committed_job_has_work_left(outcome)

    @contextlib.contextmanager
    def open_destination(self) -> Iterator[CommitContext]:
        """Open the destination in this process for a ``with`` block, with this table's contract."""
        options = self.options
        with options.store.open(options.settings, committer=options.committer) as ctx:
            yield replace(
                ctx,
                contract=self.describe_table_after_commit,
                partition=functools.cache(self._normalize_partition_directory),
            )


def warn_if_committed_job_has_work_left(outcome: JobOutcome) -> None:
    """Log a warning if a committed job has work left, such as files that are not published yet."""
    if not outcome.finished:
        _log.warning(outcome.pending_reason)


def _make_write_settings(options: WriteOptions, *, write_empty_file: bool = False) -> WriteSettings:
    from holdfast.table.writer import WriteSettings

    return WriteSettings(
        file_format=options.format.file_format,
        format_options=options.format.options,
        partition_by=options.partition_by,
        max_records_per_file=options.max_records_per_file,
        target_file_size_bytes=options.target_file_size_bytes,
        write_empty_file=write_empty_file and not options.partition_by,
    )
