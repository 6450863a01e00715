"""Columns in the form in which pyarrow's ORC encoder writes them as they are.

The encoder (26.0 and before) takes the validity bitmap of a slice for that of a whole column, forgets where children of
a struct begin, and writes a value for a child that is not null itself where a struct above it is. So nested columns are
handed to it whole, from their own first row on, and with every null of a struct repeated in all that is below it; for
the same reason nothing below a column is stored as NOT NULL. Other columns are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.formats.columns.conversion import map_children
from holdfast.formats.columns.types import children

__all__ = ["NTZ", "SPARK_TYPE", "holds", "split_instants", "stored_field", "stored_table"]

SPARK_TYPE = b"spark.sql.catalyst.type"
NTZ, _INTERVAL, _TIME = b"timestamp_ntz", b"interval day to second", b"time(6)"


def stored_field(field: pa.Field) -> pa.Field:
    """The field as it is stored: ORC has no intervals, no times, and no local timestamps as Spark has them."""
    kind = field.type
    if pat.is_timestamp(kind) and kind.tz is None:
        return pa.field(field.name, pa.int64(), True, {SPARK_TYPE: NTZ})
    if pat.is_duration(kind):
        return pa.field(field.name, pa.int64(), True, {SPARK_TYPE: _INTERVAL})
    if pat.is_time(kind):
        return pa.field(field.name, pa.int64(), True, {SPARK_TYPE: _TIME})
    return pa.field(field.name, map_children(kind, stored_field), True)


def holds(kind: pa.DataType, matches: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type is one of some kind, or one of them is in it."""
    return matches(kind) or any(holds(child.type, matches) for child in children(kind))


def stored_table(table: pa.Table) -> pa.Table:
    """A table of the plain form as the encoder has to get it; its schema is `stored_field` of each field."""
    schema = pa.schema([stored_field(field) for field in table.schema])
    columns = [
        pa.chunked_array([_stored_column(chunk, field.type) for chunk in column.chunks], field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _stored_column(column: Any, kind: pa.DataType) -> Any:
    if not pat.is_nested(column.type):
        return _stored_leaf(column, kind)
    # Concatenating copies the rows of a slice, on all levels, to where a column of their own begins.
    return _stored(pa.concat_arrays([column]), kind)


def _stored(array: Any, kind: pa.DataType) -> Any:
    """An array that begins at its own first row, in the stored type."""
    if pat.is_struct(kind):
        below = array.flatten()  # the children, null where the struct is
    elif pat.is_nested(kind):
        below = [array.values]
    else:
        return _stored_leaf(array, kind)
    return _with_children(
        array, kind, [_stored(child, field.type) for child, field in zip(below, children(kind), strict=True)]
    )


def _stored_leaf(array: Any, kind: pa.DataType) -> Any:
    if pat.is_time(array.type):
        array = array.cast(pa.time64("ns"))  # as Spark counts them
    return array if array.type.equals(kind) else array.cast(kind)


def _with_children(array: Any, kind: pa.DataType, below: list[Any]) -> Any:
    own = array.buffers()[: 1 if pat.is_struct(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), own, children=below)


# --- instants ---------------------------------------------------------------------------------------------------------
def split_instants(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """A stored table in two of its schema: instants cut to the seconds that ORC keeps of them, and what is left.

    ORC counts whole seconds towards 1970, as long as there is a millisecond or more that says so.
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
    if pat.is_struct(kind):
        below = [array.field(index) for index in range(kind.num_fields)]
    elif pat.is_nested(kind):
        below = [array.values]
    else:
        return array
    return _with_children(array, kind, [_mapped_array(child, change) for child in below])


def _fractions(micros: Any) -> Any:
    rest = pc.subtract(micros, pc.multiply(pc.divide(micros, 1_000_000), 1_000_000))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, 1_000_000), rest)


def _whole_seconds(micros: Any) -> Any:
    fractions = _fractions(micros)
    counted_up = pc.and_(pc.less(micros, 0), pc.greater_equal(fractions, 1000))
    return pc.add(pc.subtract(micros, fractions), pc.if_else(counted_up, 1_000_000, 0))
