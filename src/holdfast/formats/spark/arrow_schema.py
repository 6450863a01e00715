"""The JSON in which Spark writes a schema, as an Arrow schema: the inverse of `spark_schema`, without PySpark."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.columns.spark_fields import describe
from holdfast.formats.spark.ddl import parse_type

__all__ = ["arrow_schema_of"]


def arrow_schema_of(text: str) -> pa.Schema:
    """The Arrow schema of what `StructType.json` prints.

    Guarantee: the types are those in which PySpark hands the columns to Python, timestamps in UTC, ``char`` and
    ``varchar`` as strings, times in microseconds. What only Spark knows of a column is with it, as by `describe`.

    Raises:
        CorruptDataError: it is not the JSON of a struct.
        InvalidRequestError: a column's type is one that only Spark can read; names the column.
    """
    try:
        described = json.loads(text)
        if described["type"] != "struct":
            raise ValueError(described["type"])
        return pa.schema([_column(field) for field in described["fields"]])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidRequestError):  # it is a ValueError too
            raise
        raise CorruptDataError("a kept schema is no schema of Spark: keep the bytes and report", schema=text) from error


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
    if kind == "udt":  # a class of the user's over a type of Spark's
        return _type(described["sqlType"])
    raise ValueError(kind)
