"""What a batch write and a stream's batch have in common: a table, written by the tasks of a job.

Spark starts a new process for the commit of each job, and the user waits for its imports: a job that is only committed
or aborted loads neither Arrow nor a file format (`tests/tidy/test_light_import.py`).
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, SaveMode, TaskAttempt, get_committer
from holdfast.commit.destination import has_output
from holdfast.commit.two_phase.decision_log import read_newest
from holdfast.commit.two_phase.write_ids import WRITE_ID
from holdfast.commit.write_lookup import TOKEN
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.formats import get_format
from holdfast.options.parsing import WriteOptions
from holdfast.table.contract import TableRecord, agree, decode_table
from holdfast.table.foreign import refuse_foreign_write
from holdfast.versioned_log import LogView

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.table import WriteSettings

__all__ = ["TableJob"]

_ADDING = (SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS)
_LOOKED_AT = 1000  # files, before each job of a committer without a log: one page of a listing


@dataclass(frozen=True)
class TableJob:
    """A checked request: plain values, for they travel to the tasks.

    Attributes:
        options: of the write, partition columns spelled as in `written`.
        written: what the files of the job look like: the rows as the destination's table wants them.
        rows: Spark's own schema of the rows, in JSON, as long as they are written as they come; else empty.
        details: what is kept with the decision.
    """

    options: WriteOptions
    written: TableRecord
    rows: str
    details: dict[str, object]

    @functools.cached_property
    def columns(self) -> pa.Schema:
        """What the files look like, as an Arrow schema; tasks bring every batch into it."""
        from holdfast.spark.types import described_schema, parsed_schema, table_schema

        return described_schema(parsed_schema(self.rows) if self.rows else table_schema(self.written))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "columns"}

    @classmethod
    def of(cls, options: WriteOptions, schema: StructType) -> TableJob:
        """Check what can be checked without the destination.

        Raises:
            InvalidRequestError: the format cannot hold the rows, or a partition column is not there.
        """
        from holdfast.spark.types import described_schema, nullable, without_foreign_metadata
        from holdfast.table.partition import resolve_partition_columns

        schema = without_foreign_metadata(schema)
        arrow = described_schema(schema)
        options = replace(options, partition_by=resolve_partition_columns(arrow, options.partition_by))
        _settings(options, "UTC").check_schema(arrow)
        file_format = get_format(options.file_format)
        written = TableRecord(
            fields=json.loads(nullable(schema).json())["fields"],
            file_format=file_format.name,
            reader_options=file_format.reader_options(options.format_options),
            partition_by=options.partition_by,
            time_zone=options.time_zone if _names_instants(arrow, options.partition_by) else "",
        )
        given = {TOKEN: options.token, WRITE_ID: options.write_id}
        return cls(options, written, schema.json(), {name: value for name, value in given.items() if value})

    # --- the contract -------------------------------------------------------------------------------------------------
    def fitted(self, ctx: CommitContext, view: LogView) -> TableJob:
        """The request as the destination's table wants it: its spelling, order and types.

        Raises:
            InvalidRequestError: the rows do not fit the table, or it is one of another table format; says so.
        """
        refuse_foreign_write(ctx)
        job = self
        newest = read_newest(ctx, view)
        table = newest.state.table if newest is not None else None
        if self.options.mode in _ADDING:
            known = self._known(ctx, table)
            if known is not None:
                job = self._as_in(known)
        if not self._keeps_a_log:
            self._require_unchanged(ctx, table)
        zone_is_known = job.written.time_zone or not _names_instants(job.columns, job.written.partition_by)
        if not zone_is_known:
            raise InvalidRequestError(
                "directories name a timestamp in local time: give the option timeZone, or use holdfast.write",
                partition_by=list(job.written.partition_by),
            )
        return job

    @property
    def _keeps_a_log(self) -> bool:
        return get_committer(self.options.committer) is TWO_PHASE

    def _require_unchanged(self, ctx: CommitContext, table: Mapping[str, object] | None) -> None:
        """A committer without a log cannot tell readers of a change to a table that a log describes."""
        if table is None:
            return
        known = decode_table(table)
        try:
            same = agree(known, self.written, merge=self.options.merge_schema) == known
        except InvalidRequestError:
            same = False
        if not same:
            raise InvalidRequestError(
                "the destination's log describes another table, and this committer keeps no log: use two_phase",
                url=ctx.url,
                committer=self.options.committer,
            )

    def _known(self, ctx: CommitContext, table: Mapping[str, object] | None) -> TableRecord | None:
        if table is not None:
            return decode_table(table)
        if not has_output(ctx):
            return None
        from holdfast.table.existing import find_existing

        most = None if self._keeps_a_log else _LOOKED_AT
        return find_existing(ctx, self.written, self.columns, self.options.format_options, most=most)

    def _as_in(self, known: TableRecord) -> TableJob:
        zone = known.time_zone or self.written.time_zone
        given = replace(self.written, time_zone=zone)
        after = agree(known, given, merge=self.options.merge_schema)
        names = {str(one["name"]).lower() for one in given.fields}
        by_position = get_format(known.file_format).by_position
        partition_by = set(after.partition_by)
        fields = [
            one
            for one in after.fields
            if str(one["name"]).lower() in names or (by_position and one["name"] not in partition_by)
        ]
        job = self.with_files(replace(after, fields=fields))
        _settings(job.options, zone).check_schema(job.columns)
        return job

    def with_files(self, written: TableRecord) -> TableJob:
        """The request for files that look like `written`, whatever the destination's table is by now."""
        options = replace(self.options, partition_by=written.partition_by)
        return replace(self, options=options, written=written, rows="")

    def contract(
        self, ctx: CommitContext, job: JobRecord, table: Mapping[str, object] | None
    ) -> Mapping[str, object] | None:
        """The table once this job is committed; see `holdfast.commit.context.Contract`.

        Raises:
            ConflictError: another job has changed the table since this one started.
        """
        if job.mode not in _ADDING:
            return self.written.encode()
        try:
            known = self._known(ctx, table)
        except InvalidRequestError as error:
            raise ConflictError(
                "somebody has put other files into the destination meanwhile, nothing is committed: look at them",
                url=ctx.url,
            ) from error
        if known is None:
            return self.written.encode()
        return agree(known, self.written, merge=self.options.merge_schema, written=True).encode()

    # --- tasks --------------------------------------------------------------------------------------------------------
    def write_rows(self, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> None:
        """Write one partition's rows into hidden files of `attempt`."""
        from holdfast.formats.columns.conversion import conform
        from holdfast.table import TableWriter

        # Without any row, one file keeps the schema for plain readers; task 0 is there in every job.
        settings = _settings(self.options, self.written.time_zone or "UTC", write_empty_file=attempt.owner.task == 0)
        table = TableWriter(self.columns, settings, attempt)
        try:
            for batch in batches:
                table.write(conform(self._announced(batch), self.columns))
            table.close()
        except BaseException:
            table.abort()
            raise

    def _announced(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch, if Spark spoke of all of its columns: the values of any other would be dropped."""
        known = {name.lower() for name in self.columns.names}
        for name in batch.schema.names:
            if name.lower() not in known:
                raise InvalidRequestError("Spark hands over a column that it did not announce: rename it", column=name)
        return batch

    def _partition(self, directory: str) -> str:
        from holdfast.table.partition import canonical_directory

        return canonical_directory(directory, self.columns, self.written.time_zone or "UTC")

    @contextlib.contextmanager
    def opened(self) -> Iterator[CommitContext]:
        """The destination, for this process and this moment."""
        ctx = self.options.open()
        try:
            yield replace(ctx, contract=self.contract, partition=functools.cache(self._partition))
        finally:
            ctx.close()


def _names_instants(schema: pa.Schema, partition_by: tuple[str, ...]) -> bool:
    import pyarrow.types as pat

    kinds = [schema.field(name).type for name in partition_by]
    return any(pat.is_timestamp(kind) and kind.tz is not None for kind in kinds)


def _settings(options: WriteOptions, time_zone: str, *, write_empty_file: bool = False) -> WriteSettings:
    from holdfast.table import WriteSettings

    return WriteSettings(
        file_format=get_format(options.file_format),
        format_options=options.format_options,
        partition_by=options.partition_by,
        max_records_per_file=options.max_records_per_file,
        target_file_size_bytes=options.target_file_size_bytes,
        write_empty_file=write_empty_file and not options.partition_by,
        time_zone=time_zone,
    )
