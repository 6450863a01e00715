"""Columns in the form in which pyarrow's ORC encoder writes them as they are.

The encoder (26.0 and before) takes the validity bitmap of a slice for that of a whole column, forgets where children of
a struct begin, and writes a value for a child that is not null itself where a struct above it is. So nested columns are
handed to it whole, from their own first row on, and with every null of a struct repeated in all that is below it; for
the same reason nothing below a column is stored as NOT NULL. Other columns are not touched.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.formats.columns import map_children
from holdfast.formats.types import children

__all__ = ["INTERVAL", "NTZ", "SPARK_TYPE", "stored_field", "stored_table"]

SPARK_TYPE = b"spark.sql.catalyst.type"
NTZ, INTERVAL = b"timestamp_ntz", b"interval day to second"


def stored_field(field: pa.Field) -> pa.Field:
    """The field as it is stored: ORC has no local timestamps as Spark understands them, and no intervals."""
    kind = field.type
    if pat.is_timestamp(kind) and kind.tz is None:
        return pa.field(field.name, pa.int64(), True, {SPARK_TYPE: NTZ})
    if pat.is_duration(kind):
        return pa.field(field.name, pa.int64(), True, {SPARK_TYPE: INTERVAL})
    return pa.field(field.name, map_children(kind, stored_field), True)


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
        return column if column.type.equals(kind) else column.cast(kind)
    # Concatenating copies the rows of a slice, on all levels, to where a column of their own begins.
    return _stored(pa.concat_arrays([column]), kind)


def _stored(array: Any, kind: pa.DataType) -> Any:
    """An array that begins at its own first row, in the stored type."""
    if pat.is_struct(kind):
        below = array.flatten()  # the children, null where the struct is
    elif pat.is_nested(kind):
        below = [array.values]
    else:
        return array if array.type.equals(kind) else array.cast(kind)
    fields = [_stored(child, field.type) for child, field in zip(below, children(kind), strict=True)]
    own = array.buffers()[: 1 if pat.is_struct(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), own, children=fields)
