"""What a batch write and a stream's batch have in common: a table, written by the tasks of a job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql.types import StructType

from holdfast.commit import CommitContext, Kind, SaveMode, TaskAttempt
from holdfast.commit.log import LogView, read_entry
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.formats import get_format
from holdfast.formats.spark_fields import described_like
from holdfast.spark.options import WriteOptions
from holdfast.spark.types import described_schema, nullable
from holdfast.table import TableWriter, WriteSettings
from holdfast.table.partition import resolve_partition_columns

__all__ = ["TableJob", "opened"]


@dataclass(frozen=True)
class TableJob:
    """A checked request: plain values, for they travel to the tasks.

    Attributes:
        options: of the write, partition columns spelled as in the schema.
        schema: of the rows, as Spark hands them over.
        details: what is kept with the decision, for readers and for the next job.
    """

    options: WriteOptions
    schema: pa.Schema
    details: dict[str, object]

    @classmethod
    def of(cls, options: WriteOptions, schema: StructType) -> TableJob:
        """Check what can be checked without the destination.

        Raises:
            InvalidRequestError: the format cannot hold the rows, or a partition column is not there.
        """
        arrow = described_schema(schema)
        _settings(options, arrow).check_schema(arrow)
        options = replace(options, partition_by=resolve_partition_columns(arrow, options.partition_by))
        details: dict[str, object] = {
            "schema": nullable(schema).json(),
            "format": options.file_format,
            "partition_by": list(options.partition_by),
        }
        if options.format_strings:
            details["format_options"] = dict(options.format_strings)
        if options.write_id:
            details["write_id"] = options.write_id
        return cls(options, arrow, details)

    def require_same_layout(self, ctx: CommitContext, view: LogView) -> None:
        """Files of two formats, or partitioned in two ways, side by side cannot be read as one table.

        Raises:
            InvalidRequestError: says what is there.
        """
        options = self.options
        if options.mode not in (SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS):
            return
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

    def write_rows(self, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> None:
        """Write one partition's rows into hidden files of `attempt`."""
        first = next(batches, None)
        schema = self.schema if first is None else described_like(first.schema, self.schema)
        # Without any row, one file keeps the schema for plain readers; task 0 is there in every job.
        settings = _settings(self.options, schema, write_empty_file=attempt.owner.task == 0)
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


@contextlib.contextmanager
def opened(options: WriteOptions) -> Iterator[CommitContext]:
    """The destination, for this process and this moment."""
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
