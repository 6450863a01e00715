"""Determine the types that Spark gives to the columns of a Parquet file, and how to convert their values.

Some types can be converted to Spark's by an Arrow cast (`spark_typed_field`). Other columns need a conversion that
depends on the file's footer (`find_column_conversions`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from holdfast.errors import MALFORMED, CorruptDataError, UnsupportedError
from holdfast.formats.base import ReadRequest
from holdfast.formats.columns.arrow_types import child_fields, is_string
from holdfast.formats.columns.conversion import (
    build_record_batch,
    child_arrays,
    transform_child_fields,
    with_child_arrays,
)
from holdfast.formats.columns.dates import has_old_calendar, refuse_old_calendar_values
from holdfast.formats.columns.types import refuse_shredded_variant
from holdfast.formats.filters import RowFilter
from holdfast.formats.schema_json import SPARK_SCHEMA_KEY, restore_spark_types
from holdfast.formats.streams import input_file

_INSTANT = pa.timestamp("us", "UTC")


# --- types ------------------------------------------------------------------------------------------------------------
def spark_typed_field(field: pa.Field) -> pa.Field:
    """Return a Parquet field with the type as which Spark reads it, such as int64 for uint32."""
    return pa.field(field.name, _spark_type(field.type), field.nullable)


_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def _spark_type(kind: pa.DataType) -> pa.DataType:
    if pat.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.json":
        return pa.string()
    if kind in _UNSIGNED:
        return _UNSIGNED[kind]
    if is_string(kind):
        return pa.string()
    if pat.is_large_binary(kind) or pat.is_binary_view(kind) or pat.is_fixed_size_binary(kind):
        return pa.binary()
    if pat.is_large_list(kind):
        return pa.list_(spark_typed_field(kind.value_field))
    return transform_child_fields(kind, spark_typed_field)


# --- conversions that depend on the footer ----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ColumnConversion:
    """A conversion of the values of a Parquet column or nested field to Spark's type.

    The file's statistics describe the unconverted values.

    Attributes:
        type: the type of the result.
        apply: converts an array.
    """

    type: pa.DataType
    apply: Callable[[Any], Any]


def find_column_conversions(
    schema: pa.Schema, columns: Iterable[Any], notes: Mapping[bytes, bytes]
) -> dict[int, ColumnConversion]:
    """Return the conversions that columns of a Parquet file need, by position; most files need none.

    Args:
        schema: the columns as pyarrow sees them, INT96 in microseconds.
        columns: the leaf columns of the footer (`pyarrow.parquet.ColumnSchema`), in order.
        notes: the key-value metadata of the footer.
    """
    walk = _SchemaWalk(iter(columns))
    noted = _parse_spark_types(notes.get(b"org.apache.spark.sql.parquet.row.metadata"))
    found = ((index, walk.change(field.type, noted.get(field.name))) for index, field in enumerate(schema))
    return {index: change for index, change in found if change is not None}


@functools.lru_cache(maxsize=8)  # the files of a table usually have the same text
def _parse_spark_types(text: bytes | None) -> Mapping[str, object]:
    """Parse Spark's schema JSON and map the columns to their types in it; empty if the writer did not store it."""
    try:
        return {} if text is None else _map_field_names_to_types(json.loads(text))
    except MALFORMED:
        return {}  # Spark 1 used another notation, and any writer may use the key


def _map_field_names_to_types(noted: object) -> dict[str, object]:
    fields = noted.get("fields") if isinstance(noted, dict) else None
    known = [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
    return {str(field.get("name")): field.get("type") for field in known}


@dataclass(frozen=True, slots=True)
class _SchemaWalk:
    """A walk through the types of a schema and the footer's leaf columns in parallel."""

    leaves: Iterator[Any]

    def change(self, kind: pa.DataType, noted: object) -> ColumnConversion | None:
        if not pat.is_nested(kind):
            return self._find_leaf_conversion(kind, next(self.leaves), noted)
        if pat.is_map(kind):
            entries: dict[str, object] = {}
            if isinstance(noted, dict):
                keys, items = noted.get("keyType"), noted.get("valueType")
                entries = {kind.key_field.name: keys, kind.item_field.name: items}
            parts = [self.change(kind.key_type, entries.get(kind.key_field.name))]
            parts.append(self.change(kind.item_type, entries.get(kind.item_field.name)))
        elif pat.is_struct(kind):
            fields = _map_field_names_to_types(noted)
            parts = [self.change(child.type, fields.get(child.name)) for child in child_fields(kind)]
        else:
            parts = [self.change(kind.value_type, noted.get("elementType") if isinstance(noted, dict) else None)]
        return _make_nested_conversion(kind, parts)

    def _find_leaf_conversion(self, kind: pa.DataType, column: Any, noted: object) -> ColumnConversion | None:
        physical = column.physical_type
        if physical == "INT96":
            return _make_cast_conversion(_INSTANT)
        if isinstance(noted, str) and noted.startswith("interval"):
            return _make_interval_conversion(kind, noted)
        if pat.is_duration(kind):
            return _make_cast_conversion(pa.int64())  # Spark ignores Arrow's metadata
        if physical == "FIXED_LEN_BYTE_ARRAY" and (pat.is_null(kind) or column.converted_type == "INTERVAL"):
            return _UNREADABLE  # Arrow reads Parquet's own intervals as nulls or bytes
        if pat.is_null(kind) and noted is None and physical == "INT32":
            return _make_cast_conversion(pa.int32())  # Spark uses the physical type that the writer chose
        if physical == "BYTE_ARRAY" and pat.is_binary(kind) and column.logical_type.type == "ENUM":
            return _make_cast_conversion(pa.string())
        return None


def _make_interval_conversion(kind: pa.DataType, noted: str) -> ColumnConversion | None:
    """Return the conversion of Spark's intervals, which are plain integers in Parquet."""
    if "year" in noted or "month" in noted:
        return _UNREADABLE
    return None if pat.is_duration(kind) else _make_cast_conversion(pa.duration("us"))


def _make_cast_conversion(kind: pa.DataType) -> ColumnConversion:
    return ColumnConversion(kind, lambda array: array.cast(kind))


def _refuse_unsupported_column(_: Any) -> NoReturn:
    raise UnsupportedError("a column of the files is not supported: leave it out with the option columns")


_UNREADABLE = ColumnConversion(
    pa.month_day_nano_interval(), _refuse_unsupported_column
)  # such schemas are rejected by column name


# --- nested columns ---------------------------------------------------------------------------------------------------
def _make_nested_conversion(kind: pa.DataType, parts: Sequence[ColumnConversion | None]) -> ColumnConversion | None:
    if not any(parts):
        return None
    changed = iter(parts)

    def convert_child_field(field: pa.Field) -> pa.Field:
        part = next(changed)
        return field if part is None else field.with_type(part.type)

    became = transform_child_fields(kind, convert_child_field)
    return ColumnConversion(became, lambda array: _rebuild_nested(array, became, parts))


def _rebuild_nested(array: Any, kind: pa.DataType, parts: Sequence[ColumnConversion | None]) -> Any:
    """Return a nested array with converted children; Arrow's casts handle nested types, its functions do not."""
    if pat.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    array = array.take(pa.array(range(len(array)), pa.int64()))  # removes the offset
    below = [array.keys, array.items] if pat.is_map(array.type) else child_arrays(array)
    below = [one if part is None else part.apply(one) for one, part in zip(below, parts, strict=True)]
    if pat.is_map(array.type):
        below = [pa.StructArray.from_arrays(below, fields=[kind.key_field, kind.item_field])]
    return with_child_arrays(array, kind, below)


_READ_ROWS = 64 * 1024


class SparkTypedParquetFile:
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
        self._changes = find_column_conversions(self._physical, columns, self._file.metadata.metadata or {})

    @property
    def metadata(self) -> Any:
        """Return the footer as pyarrow represents it."""
        return self._file.metadata

    @property
    def schema(self) -> pa.Schema:
        """Return the columns with Spark's types; a type that Spark does not know stays as it is."""
        fields = (self._convert_field(index, field) for index, field in enumerate(self._physical))
        found = pa.schema([spark_typed_field(field) for field in fields])
        return restore_spark_types(found, (self.metadata.metadata or {}).get(SPARK_SCHEMA_KEY))

    def _convert_field(self, index: int, field: pa.Field) -> pa.Field:
        return field.with_type(self._changes[index].type) if index in self._changes else field

    def batches(self, wanted: ReadRequest, row_groups: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
        """Yield record batches; see `FileFormat.read`. Without columns, read only the footer."""
        needed, row_filter = wanted.needed, wanted.row_filter
        refuse_shredded_variant(needed, self._physical)
        groups = list(range(self.metadata.num_row_groups)) if row_groups is None else list(row_groups)
        if row_filter is not None:
            groups = self._prune_row_groups(needed, row_filter, groups)
        names = {name.lower() for name in needed.names}
        found = [name for name in self._physical.names if name.lower() in names]
        if not found:
            rows = sum(self.metadata.row_group(group).num_rows for group in groups)
            yield from _batches_without_columns(rows)
        elif groups:
            for batch in self._read_row_groups(groups, found):
                changed = self._convert_batch(batch)
                yield refuse_old_calendar_values(changed) if self._old_calendar else changed

    def _read_row_groups(self, groups: list[int], columns: list[str]) -> Iterator[pa.RecordBatch]:
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

    def _convert_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._changes:
            return batch
        arrays = list(batch.columns)
        for position, field in enumerate(batch.schema):
            change = self._changes.get(self._physical.get_field_index(field.name))
            if change is not None:
                arrays[position] = change.apply(arrays[position])
        fields = [pa.field(name, array.type) for name, array in zip(batch.schema.names, arrays, strict=True)]
        return build_record_batch(arrays, pa.schema(fields), batch.num_rows)

    def _prune_row_groups(self, schema: pa.Schema, row_filter: RowFilter, groups: list[int]) -> list[int]:
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


def _batches_without_columns(rows: int) -> Iterator[pa.RecordBatch]:
    while rows > 0:
        yield build_record_batch([], pa.schema([]), min(rows, _READ_ROWS))
        rows -= _READ_ROWS
