"""Read a Parquet file from any writer, with the values and types that stock Spark would return.

Parquet and Arrow have types that Spark lacks, and older encodings contain less information: Spark's own default for
timestamps is INT96, which has no unit, zone or statistics. This module makes the same conversions as Spark's reader
(`parquet.columns`), so that the rest of Holdfast need not know about these differences; it refuses values in the
calendar of Spark before 3.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from holdfast.errors import CorruptDataError
from holdfast.formats.base import RowFilter
from holdfast.formats.columns.conversion import batch_of, finish, needed_schema
from holdfast.formats.columns.dates import has_old_calendar, refuse_old
from holdfast.formats.columns.variant import refuse_shredded
from holdfast.formats.parquet.columns import column_changes, spark_field
from holdfast.formats.spark.schema_json import SPARK_SCHEMA_KEY, recognized_schema
from holdfast.formats.streams import input_file

_READ_ROWS = 64 * 1024


class SparkFile:
    """An open Parquet file whose columns have Spark's types.

    Args:
        source: a seekable file; it stays open.

    Raises:
        CorruptDataError: the file is not Parquet, or is truncated.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        try:
            # Spark uses microseconds; nanoseconds would cover only the years 1677 to 2262.
            self._file = pq.ParquetFile(
                input_file(source),
                pre_buffer=False,
                coerce_int96_timestamp_unit="us",
                page_checksum_verification=True,
            )
        except pa.ArrowInvalid as error:
            raise CorruptDataError("not a Parquet file: check what wrote it") from error
        physical = self._file.schema
        columns = (physical.column(index) for index in range(len(physical.names)))
        self._old_calendar = has_old_calendar(self._file.metadata.metadata or {})
        self._physical: pa.Schema = self._file.schema_arrow
        self._changes = column_changes(self._physical, columns, self._file.metadata.metadata or {})

    @property
    def metadata(self) -> Any:
        """Return the footer as pyarrow represents it."""
        return self._file.metadata

    @property
    def schema(self) -> pa.Schema:
        """Return the columns with Spark's types; a type that Spark does not know stays as it is."""
        fields = (self._changed(index, field) for index, field in enumerate(self._physical))
        found = pa.schema([spark_field(field) for field in fields])
        return recognized_schema(found, (self.metadata.metadata or {}).get(SPARK_SCHEMA_KEY))

    def _changed(self, index: int, field: pa.Field) -> pa.Field:
        return field.with_type(self._changes[index].type) if index in self._changes else field

    def batches(
        self,
        schema: pa.Schema,
        columns: Sequence[str],
        row_filter: RowFilter | None,
        row_groups: Sequence[int] | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches; see `FileFormat.read_batches`. Without columns, read only the footer."""
        needed = needed_schema(schema, columns, row_filter)
        refuse_shredded(needed, self._physical)
        groups = list(range(self.metadata.num_row_groups)) if row_groups is None else list(row_groups)
        if row_filter is not None:
            groups = self._prune(needed, row_filter, groups)
        wanted = {name.lower() for name in needed.names}
        found = [name for name in self._physical.names if name.lower() in wanted]
        if not found:
            rows = sum(self.metadata.row_group(group).num_rows for group in groups)
            for batch in _without_columns(rows):
                yield finish(batch, needed, columns, row_filter)
        elif groups:
            for batch in self._checked(groups, found):
                changed = self._change(batch)
                yield finish(refuse_old(changed) if self._old_calendar else changed, needed, columns, row_filter)

    def _checked(self, groups: list[int], columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of row groups.

        Raises:
            CorruptDataError: a page does not have its checksum, or cannot be decoded. Some writers store no checksums.
        """
        try:
            yield from self._file.iter_batches(_READ_ROWS, row_groups=groups, columns=columns, use_threads=False)
        except (OSError, pa.ArrowInvalid) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the operating system; Arrow's own have no number
            raise CorruptDataError(
                "bytes of the file are damaged, so it is not read: restore it from a backup, or write its rows again"
            ) from error

    def _change(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._changes:
            return batch
        arrays = list(batch.columns)
        for position, field in enumerate(batch.schema):
            change = self._changes.get(self._physical.get_field_index(field.name))
            if change is not None:
                arrays[position] = change.apply(arrays[position])
        fields = [pa.field(name, array.type) for name, array in zip(batch.schema.names, arrays, strict=True)]
        return batch_of(arrays, pa.schema(fields), batch.num_rows)

    def _prune(self, schema: pa.Schema, row_filter: RowFilter, groups: list[int]) -> list[int]:
        """Drop the row groups in which, according to their statistics, no row can pass the filter."""
        if self._old_calendar:  # whose values are refused, not skipped
            return groups
        for name in row_filter.columns:
            index = self._physical.get_field_index(name)
            # The filter uses the requested types; the statistics use those of the file.
            if index < 0 or index in self._changes:
                return groups
            if not self._physical.field(index).type.equals(schema.field(name).type):
                return groups
        import pyarrow.dataset as ds  # imports pandas if installed: half a second per process

        fragment = ds.ParquetFileFormat().make_fragment(input_file(self._source), row_groups=groups)
        kept = {group.id for group in fragment.subset(filter=row_filter.expression, schema=self._physical).row_groups}
        names = {name for name in row_filter.columns if pat.is_floating(self._physical.field(name).type)}
        return [group for group in groups if group in kept or self._may_hide_nan(group, names)]

    def _may_hide_nan(self, group: int, names: Collection[str]) -> bool:
        """Check whether statistics claim a single value for a column that may contain NaN, which statistics ignore."""
        columns = self.metadata.row_group(group)
        for column in (columns.column(index) for index in range(columns.num_columns if names else 0)):
            found = column.statistics if column.path_in_schema in names else None
            if found is not None and found.has_min_max and found.min == found.max:
                return True
        return False


def _without_columns(rows: int) -> Iterator[pa.RecordBatch]:
    while rows > 0:
        yield batch_of([], pa.schema([]), min(rows, _READ_ROWS))
        rows -= _READ_ROWS
