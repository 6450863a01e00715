"""Parse Spark's schema JSON into an Arrow schema, without PySpark: the inverse of `spark_schema_json`."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.columns.spark_fields import describe
from holdfast.formats.spark.ddl import parse_type


def arrow_schema_of(text: str) -> pa.Schema:
    """Parse the output of `StructType.json` into an Arrow schema.

    Guarantee: the types are those in which PySpark passes the columns to Python: timestamps are in UTC, ``char`` and
    ``varchar`` are strings, and times are in microseconds. `describe` attaches the details that Arrow cannot express.

    Raises:
        CorruptDataError: the text is not the JSON of a struct.
        InvalidRequestError: a column has a type that only Spark can read; the error names the column.
    """
    try:
        described = json.loads(text)
        if described["type"] != "struct":
            raise ValueError(described["type"])
        return pa.schema([_column(field) for field in described["fields"]])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidRequestError):  # it is a ValueError too
            raise
        raise CorruptDataError("a stored schema is not Spark's: keep the bytes and report", schema=text) from error


def _column(field: dict[str, Any]) -> pa.Field:
    try:
        return describe(_field(field), field)
    except InvalidRequestError as error:
        raise InvalidRequestError(
            "a column's type cannot be read without Spark: use holdfast.read", column=field["name"], type=field["type"]
        ) from error


def _field(field: dict[str, Any]) -> pa.Field:
    return pa.field(field["name"], _type(field["type"]), bool(field["nullable"]))


def _type(described: Any) -> pa.DataType:
    if isinstance(described, str):
        return parse_type(described)
    kind = described["type"]
    if kind == "array":
        return pa.list_(pa.field("element", _type(described["elementType"]), bool(described["containsNull"])))
    if kind == "map":
        value = pa.field("value", _type(described["valueType"]), bool(described["valueContainsNull"]))
        return pa.map_(_type(described["keyType"]), value)
    if kind == "struct":
        return pa.struct([_field(field) for field in described["fields"]])
    if kind == "udt":  # a user-defined class on top of a Spark type
        return _type(described["sqlType"])
    raise ValueError(kind)
