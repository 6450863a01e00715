"""Convert between Spark's schemas and Arrow's."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, _parse_datatype_json_string

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.types import UNREACHABLE, attach_spark_json, kinds_beyond_arrow, spark_json_of
from holdfast.table.contract import TableRecord

# Column metadata that Spark stores in the tables of its catalog. When Spark reads files with such metadata, it fills
# nulls with the default values of that table, and pads or truncates strings.
_FOREIGN = re.compile(r"CURRENT_DEFAULT|EXISTS_DEFAULT|__(?!COLLATIONS$).*")

# PySpark 4.3 has a parameter for the zone; 4.1 has a flag whose default means the same.
_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def make_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark exchanges rows of `schema` with Python, with timestamps in UTC.

    Raises:
        InvalidRequestError: a type has no counterpart in Arrow.
    """
    fields = []
    for field in schema.fields:
        try:
            fields.append(to_arrow_schema(StructType([field]), **_UTC).field(0))
        except Exception as error:
            raise InvalidRequestError(
                f"Spark cannot pass a column of this type to Python: {_unsupported_reason(field.dataType)}",
                column=field.name,
                type=field.dataType.simpleString(),
            ) from error
    return pa.schema(fields)


def _unsupported_reason(kind: DataType) -> str:
    parts = kind.simpleString()
    if re.search(r"interval (year|month)", parts):
        return UNREACHABLE["interval year to month"]
    if re.search(r"interval(?! (day|hour|minute|second))", parts):
        return UNREACHABLE["interval"]
    return "cast it first"


def arrow_schema_with_metadata(schema: StructType) -> pa.Schema:
    """Convert a Spark schema to Arrow, with metadata for details that Arrow types cannot express.

    See `holdfast.formats.columns.types`.

    Raises:
        InvalidRequestError: a type has no counterpart in Arrow.
    """
    described = zip(make_arrow_schema(schema), schema.fields, strict=True)
    return pa.schema([attach_spark_json(field, spark.jsonValue()) for field, spark in described])


def make_spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema of a file's columns, all nullable as in Spark's own file sources.

    Raises:
        InvalidRequestError: Spark has no such type.
    """
    fields: list[StructField] = []
    for field in schema:
        try:
            known = _read_embedded_spark_field(field)
            fields.append(known or from_arrow_schema(pa.schema([field.remove_metadata()])).fields[0])
        except Exception as error:
            raise InvalidRequestError(
                "Spark has no type for a column of the files: leave it out with the option columns",
                column=field.name,
                type=str(field.type),
            ) from error
    found = make_nullable(StructType(fields))
    assert isinstance(found, StructType)
    return found


def _read_embedded_spark_field(field: pa.Field) -> StructField | None:
    """Return the field as the file's Spark schema describes it, if the description fits; never a user-defined type.

    A user-defined type names Python code to import, which a file of unknown origin must not do.
    """
    spark = spark_json_of(field)
    if spark is None or "user-defined" in kinds_beyond_arrow(field):
        return None
    found = StructField.fromJson(dict(spark))
    stored = from_arrow_schema(pa.schema([field.remove_metadata()]))
    expected = from_arrow_schema(make_arrow_schema(StructType([found])))
    if make_nullable(stored.fields[0].dataType) != make_nullable(expected.fields[0].dataType):
        raise ValueError("the file has another type than Spark recorded")
    return found


def make_table_spark_schema(record: TableRecord) -> StructType:
    """Return the Spark schema of a table from its description in the log."""
    return drop_foreign_metadata(parse_schema_json(record.schema_json))


def parse_schema_json(text: str) -> StructType:
    """Parse a Spark schema from Spark's JSON."""
    schema = _parse_datatype_json_string(text)
    assert isinstance(schema, StructType), "a schema is a struct"
    return schema


def drop_foreign_metadata(schema: StructType) -> StructType:
    """Return a Spark schema without the metadata that other tables added to its columns, at any depth."""
    found = _drop_foreign_metadata(schema)
    assert isinstance(found, StructType), "the type of a struct is a struct"
    return found


def _drop_foreign_metadata(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType(
            [
                StructField(
                    field.name,
                    _drop_foreign_metadata(field.dataType),
                    field.nullable,
                    {name: value for name, value in (field.metadata or {}).items() if not _FOREIGN.fullmatch(name)},
                )
                for field in kind.fields
            ]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_drop_foreign_metadata(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(
            _drop_foreign_metadata(kind.keyType), _drop_foreign_metadata(kind.valueType), kind.valueContainsNull
        )
    return kind


def make_nullable(kind: DataType) -> DataType:
    """Return a Spark type with all its nested fields nullable."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, make_nullable(f.dataType), True, f.metadata) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(make_nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(make_nullable(kind.keyType), make_nullable(kind.valueType), True)
    return kind
