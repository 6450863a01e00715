"""Between Spark's schemas and Arrow's."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from holdfast.errors import InvalidRequestError

__all__ = ["arrow_schema", "nullable", "spark_schema"]

# PySpark 4.3 asks for the zone, 4.1 for a flag whose default means the same.
_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Spark hands rows of `schema` to Python and takes them back, timestamps in UTC.

    Raises:
        InvalidRequestError: a type has no counterpart in Arrow.
    """
    fields = []
    for field in schema.fields:
        try:
            fields.append(to_arrow_schema(StructType([field]), **_UTC).field(0))
        except Exception as error:
            raise InvalidRequestError(
                "a column's type cannot leave Spark: cast it first",
                column=field.name,
                type=field.dataType.simpleString(),
            ) from error
    return pa.schema(fields)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of columns in a file; everything may be null, as in Spark's own file sources.

    Raises:
        InvalidRequestError: Spark has no such type.
    """
    fields: list[StructField] = []
    for field in schema:
        try:
            fields.extend(from_arrow_schema(pa.schema([field.remove_metadata()])).fields)
        except Exception as error:
            raise InvalidRequestError(
                "Spark has no type for a column of the files: leave it out with the option columns",
                column=field.name,
                type=str(field.type),
            ) from error
    found = nullable(StructType(fields))
    assert isinstance(found, StructType)
    return found


def nullable(kind: DataType) -> DataType:
    """The type with null allowed everywhere."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, nullable(f.dataType), True, f.metadata) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(nullable(kind.keyType), nullable(kind.valueType), True)
    return kind
