"""Determine the types that Spark gives to the columns of a Parquet file, and how to convert their values.

Some types can be converted to Spark's by an Arrow cast (`spark_field`). Other columns need a conversion that depends on
the file's footer (`column_changes`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import UnsupportedError
from holdfast.formats.columns.conversion import child_arrays, map_children, with_child_arrays
from holdfast.formats.columns.types import children, is_string

_INSTANT = pa.timestamp("us", "UTC")


# --- types ------------------------------------------------------------------------------------------------------------
def spark_field(field: pa.Field) -> pa.Field:
    """Return the field with the type as which Spark reads it; Arrow-based writers store types that Spark lacks."""
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
        return pa.list_(spark_field(kind.value_field))
    return map_children(kind, spark_field)


# --- conversions that depend on the footer ----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A conversion of a column's values, or of a nested field's. The file's statistics describe the unconverted values.

    Attributes:
        type: the type of the result.
        apply: converts an array.
    """

    type: pa.DataType
    apply: Callable[[Any], Any]


def column_changes(schema: pa.Schema, columns: Iterable[Any], notes: Mapping[bytes, bytes]) -> dict[int, ColumnChange]:
    """Map the positions of columns that need a conversion to these conversions; most files need none.

    Args:
        schema: the columns as pyarrow sees them, INT96 in microseconds.
        columns: the leaf columns of the footer (`pyarrow.parquet.ColumnSchema`), in order.
        notes: the key-value metadata of the footer.
    """
    walk = _Walk(iter(columns))
    noted = _spark_types(notes.get(b"org.apache.spark.sql.parquet.row.metadata"))
    found = ((index, walk.change(field.type, noted.get(field.name))) for index, field in enumerate(schema))
    return {index: change for index, change in found if change is not None}


@functools.lru_cache(maxsize=8)  # the files of a table usually have the same text
def _spark_types(text: bytes | None) -> Mapping[str, object]:
    """Parse Spark's schema JSON and map the columns to their types in it; empty if the writer did not store it."""
    try:
        return {} if text is None else _fields_of(json.loads(text))
    except ValueError:
        return {}  # Spark 1 used another notation


def _fields_of(noted: object) -> dict[str, object]:
    fields = noted.get("fields") if isinstance(noted, dict) else None
    return {field["name"]: field["type"] for field in fields or ()}


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk through the types of a schema and the footer's leaf columns in parallel."""

    leaves: Iterator[Any]

    def change(self, kind: pa.DataType, noted: object) -> ColumnChange | None:
        if not pat.is_nested(kind):
            return self._leaf(kind, next(self.leaves), noted)
        if pat.is_map(kind):
            entries: dict[str, object] = {}
            if isinstance(noted, dict):
                keys, items = noted.get("keyType"), noted.get("valueType")
                entries = {kind.key_field.name: keys, kind.item_field.name: items}
            parts = [self.change(kind.key_type, entries.get(kind.key_field.name))]
            parts.append(self.change(kind.item_type, entries.get(kind.item_field.name)))
        elif pat.is_struct(kind):
            fields = _fields_of(noted)
            parts = [self.change(child.type, fields.get(child.name)) for child in children(kind)]
        else:
            parts = [self.change(kind.value_type, noted.get("elementType") if isinstance(noted, dict) else None)]
        return _nested_change(kind, parts)

    def _leaf(self, kind: pa.DataType, column: Any, noted: object) -> ColumnChange | None:
        physical = column.physical_type
        if physical == "INT96":
            return _cast_to(_INSTANT)
        if isinstance(noted, str) and noted.startswith("interval"):
            return _interval_change(kind, noted)
        if pat.is_duration(kind):
            return _cast_to(pa.int64())  # Spark ignores Arrow's metadata
        if physical == "FIXED_LEN_BYTE_ARRAY" and (pat.is_null(kind) or column.converted_type == "INTERVAL"):
            return _UNREADABLE  # Arrow reads Parquet's own intervals as nulls or bytes
        if pat.is_null(kind) and noted is None and physical == "INT32":
            return _cast_to(pa.int32())  # Spark uses the physical type that the writer chose
        if physical == "BYTE_ARRAY" and pat.is_binary(kind) and column.logical_type.type == "ENUM":
            return _cast_to(pa.string())
        return None


def _interval_change(kind: pa.DataType, noted: str) -> ColumnChange | None:
    """Return the conversion of Spark's intervals, which are plain integers in Parquet."""
    if "year" in noted or "month" in noted:
        return _UNREADABLE
    return None if pat.is_duration(kind) else _cast_to(pa.duration("us"))


def _cast_to(kind: pa.DataType) -> ColumnChange:
    return ColumnChange(kind, lambda array: array.cast(kind))


def _refuse(_: Any) -> NoReturn:
    raise UnsupportedError("a column of the files is not supported: leave it out with the option columns")


_UNREADABLE = ColumnChange(pa.month_day_nano_interval(), _refuse)  # such schemas are rejected by column name


# --- nested columns ---------------------------------------------------------------------------------------------------
def _nested_change(kind: pa.DataType, parts: Sequence[ColumnChange | None]) -> ColumnChange | None:
    is_view = pat.is_list_view(kind) or pat.is_large_list_view(kind)
    if not is_view and not any(parts):
        return None
    changed = iter(parts)

    def change(field: pa.Field) -> pa.Field:
        part = next(changed)
        return field if part is None else field.with_type(part.type)

    became = pa.list_(change(kind.value_field)) if is_view else map_children(kind, change)
    return ColumnChange(became, lambda array: _rebuilt(_plain_lists(array) if is_view else array, became, parts))


def _rebuilt(array: Any, kind: pa.DataType, parts: Sequence[ColumnChange | None]) -> Any:
    """Return a nested array with converted children; Arrow's casts handle nested types, its functions do not."""
    if pat.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    array = array.take(pa.array(range(len(array)), pa.int64()))  # removes the offset
    below = [array.keys, array.items] if pat.is_map(array.type) else child_arrays(array)
    below = [one if part is None else part.apply(one) for one, part in zip(below, parts, strict=True)]
    if pat.is_map(array.type):
        below = [pa.StructArray.from_arrays(below, fields=[kind.key_field, kind.item_field])]
    return with_child_arrays(array, kind, below)


def _plain_lists(array: Any) -> Any:
    """Convert list views to lists; Arrow's own cast gives an invalid array if the last one is null (seen with 26.0)."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    return pa.ListArray.from_arrays(
        offsets, array.flatten(), type=pa.list_(array.type.value_field), mask=array.is_null()
    )
