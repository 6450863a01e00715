"""Convert columns to the form that pyarrow's ORC encoder writes correctly.

The encoder (pyarrow 26.0 and before) applies the validity bitmap of a slice to the whole column, ignores the offset of
a struct's children, and writes a value for a non-null child of a null struct. So this module passes nested columns to
the encoder as a whole and without offsets, and repeats every null of a struct in all of its descendants. For the same
reason, no nested field is stored as NOT NULL. Other columns are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.formats.columns.conversion import child_arrays, map_children, with_child_arrays
from holdfast.formats.columns.types import children

SPARK_TYPE = b"spark.sql.catalyst.type"
NTZ, _INTERVAL, _TIME = b"timestamp_ntz", b"interval day to second", b"time(6)"


def stored_field(field: pa.Field) -> pa.Field:
    """Return the field as ORC stores it: ORC has no types for intervals, times or Spark's timestamp_ntz."""
    kind = field.type
    if pat.is_timestamp(kind) and kind.tz is None:
        return pa.field(field.name, pa.int64(), True, {SPARK_TYPE: NTZ})
    if pat.is_duration(kind):
        return pa.field(field.name, pa.int64(), True, {SPARK_TYPE: _INTERVAL})
    if pat.is_time(kind):
        return pa.field(field.name, pa.int64(), True, {SPARK_TYPE: _TIME})
    return pa.field(field.name, map_children(kind, stored_field), True)


def holds(kind: pa.DataType, matches: Callable[[pa.DataType], bool]) -> bool:
    """Check whether the type, or a type nested in it, matches."""
    return matches(kind) or any(holds(child.type, matches) for child in children(kind))


def stored_table(table: pa.Table) -> pa.Table:
    """Convert a table from the plain form (`columns.conversion`) to the encoder's form, defined by `stored_field`."""
    schema = pa.schema([stored_field(field) for field in table.schema])
    columns = [
        pa.chunked_array([_stored_column(chunk, field.type) for chunk in column.chunks], field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _stored_column(column: Any, kind: pa.DataType) -> Any:
    if not pat.is_nested(column.type):
        return _stored_leaf(column, kind)
    # Concatenating copies the rows of a slice, on all levels, into arrays without offsets.
    return _stored(pa.concat_arrays([column]), kind)


def _stored(array: Any, kind: pa.DataType) -> Any:
    """Convert an array without offset to the stored type."""
    if not pat.is_nested(kind):
        return _stored_leaf(array, kind)
    below = array.flatten() if pat.is_struct(kind) else child_arrays(array)  # flatten: null where the struct is null
    pairs = zip(below, children(kind), strict=True)
    return with_child_arrays(array, kind, [_stored(child, field.type) for child, field in pairs])


def _stored_leaf(array: Any, kind: pa.DataType) -> Any:
    if pat.is_time(array.type):
        array = array.cast(pa.time64("ns"))  # Spark's unit
    return array if array.type.equals(kind) else array.cast(kind)


# --- timestamps -------------------------------------------------------------------------------------------------------
def split_instants(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Split a table into two with the same schema: one with the timestamps' whole seconds, one with their fractions.

    ORC rounds whole seconds towards 1970 if the fraction is at least a millisecond.
    """
    return _mapped(table, _whole_seconds), _mapped(table, _fractions)


def _mapped(table: pa.Table, change: Callable[[Any], Any]) -> pa.Table:
    columns = [
        pa.chunked_array([_mapped_array(chunk, change) for chunk in column.chunks], column.type)
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _mapped_array(array: Any, change: Callable[[Any], Any]) -> Any:
    kind = array.type
    if pat.is_timestamp(kind):
        return change(array.cast(pa.int64())).cast(kind)
    if not pat.is_nested(kind):
        return array
    return with_child_arrays(array, kind, [_mapped_array(child, change) for child in child_arrays(array)])


def _fractions(micros: Any) -> Any:
    rest = pc.subtract(micros, pc.multiply(pc.divide(micros, 1_000_000), 1_000_000))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, 1_000_000), rest)


def _whole_seconds(micros: Any) -> Any:
    fractions = _fractions(micros)
    counted_up = pc.and_(pc.less(micros, 0), pc.greater_equal(fractions, 1000))
    return pc.add(pc.subtract(micros, fractions), pc.if_else(counted_up, 1_000_000, 0))
