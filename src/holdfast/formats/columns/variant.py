"""Define VARIANT: a value of any type, encoded as two binary fields, as in PySpark and in Parquet.

Spark's writer can also shred a VARIANT column, which means storing parts of its values in separate columns. Only Spark
can reassemble such values.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import UnsupportedError
from holdfast.formats.columns.types import children, special_struct

# PySpark recognizes the type by the metadata of its second field.
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
_SHREDDED = "typed_value"


def refuse_shredded(needed: pa.Schema, physical: pa.Schema) -> None:
    """Check that the file does not store a requested VARIANT column in shredded form.

    Args:
        needed: the requested columns.
        physical: the columns of the file.

    Raises:
        UnsupportedError: a requested column is shredded.
    """
    there = {field.name.lower(): field for field in physical}
    for field in needed:
        found = there.get(field.name.lower())
        if found is not None and _is_shredded(field.type, found.type):
            raise UnsupportedError(
                "a file stores a VARIANT column in shredded form, which only Spark can read: read it with spark.read, "
                "or write it with spark.sql.variant.writeShredding.enabled=false",
                column=field.name,
            )


def _is_shredded(wanted: pa.DataType, found: pa.DataType) -> bool:
    if special_struct(wanted) == "variant":
        return pat.is_struct(found) and any(field.name == _SHREDDED for field in children(found))
    if not pat.is_nested(wanted) or not pat.is_nested(found):
        return False
    if pat.is_struct(wanted):
        there = {field.name.lower(): field.type for field in children(found)}
        return any(
            _is_shredded(field.type, there[field.name.lower()])
            for field in children(wanted)
            if field.name.lower() in there
        )
    return any(
        _is_shredded(one.type, other.type) for one, other in zip(children(wanted), children(found), strict=False)
    )
