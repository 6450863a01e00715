"""Convert between Arrow's schemas and Spark's schema JSON, and apply such JSON to the columns of a file.

The types in the JSON are those of the Arrow columns. Details that Arrow cannot express come from Spark's own JSON of
the column (`holdfast.formats.columns.types.attach_spark_json`), if this JSON still describes the column's type: the
column may have been cast since.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import MALFORMED, CorruptDataError, InvalidRequestError
from holdfast.formats.columns.arrow_types import child_fields, is_binary, is_list, is_string
from holdfast.formats.columns.conversion import transform_child_fields
from holdfast.formats.columns.types import VARIANT, attach_spark_json, find_spark_type_of_struct, spark_json_of

SPARK_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
"""The key of a Parquet footer under which Spark stores its own schema."""

_SIMPLE = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}
_BY_NAME = {
    **{name: kind for kind, name in _SIMPLE.items()},
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "variant": VARIANT,
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DAY_TIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
_TIME = re.compile(r"time\([0-6]\)")
_LARGEST_PRECISION = 38


# --- to Spark's JSON --------------------------------------------------------------------------------------------------
def arrow_schema_to_json(schema: pa.Schema) -> str:
    """Convert an Arrow schema to the JSON of a Spark `StructType`.

    Raises:
        InvalidRequestError: Spark lacks a type that the schema uses; the error names the type.
    """
    return json.dumps(_struct_json(list(schema), [spark_json_of(field) for field in schema]), ensure_ascii=False)


def _struct_json(fields: list[pa.Field], known: list[Mapping[str, Any] | None]) -> dict[str, object]:
    described = [
        {
            "name": field.name,
            "type": _type_json(field.type, spark and spark["type"]),
            "nullable": field.nullable,
            "metadata": dict(spark.get("metadata") or {}) if spark else {},
        }
        for field, spark in zip(fields, known, strict=True)
    ]
    return {"type": "struct", "fields": described}


def _type_json(kind: pa.DataType, spark: Any) -> object:
    """Return the type's JSON; `spark` is Spark's own description of it, or None."""
    if pat.is_dictionary(kind):
        return _type_json(kind.value_type, spark)
    if isinstance(spark, dict) and spark.get("type") == "udt":
        below = _type_json(kind, spark["sqlType"])
        return spark if _is_same_type(below, spark["sqlType"]) else below
    word = spark if isinstance(spark, str) else ""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if is_string(kind):
        return "string"
    if pat.is_decimal(kind) and kind.precision <= _LARGEST_PRECISION and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision},{kind.scale})"
    if pat.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pat.is_duration(kind):
        return word if _DAY_TIME.fullmatch(word) else "interval day to second"
    if pat.is_time(kind):
        return word if _TIME.fullmatch(word) else "time(6)"
    if find_spark_type_of_struct(kind) == "variant":
        return "variant"
    if is_binary(kind):
        return "binary"
    return _nested_type_json(kind, spark if isinstance(spark, dict) else {})


def _nested_type_json(kind: pa.DataType, spark: Mapping[str, Any]) -> object:
    if pat.is_map(kind):
        return {
            "type": "map",
            "keyType": _type_json(kind.key_type, spark.get("keyType")),
            "valueType": _type_json(kind.item_type, spark.get("valueType")),
            "valueContainsNull": kind.item_field.nullable,
        }
    if pat.is_struct(kind):
        known = {field["name"]: field for field in spark.get("fields", ())}
        return _struct_json(child_fields(kind), [known.get(field.name) for field in child_fields(kind)])
    if not is_list(kind):
        raise InvalidRequestError("Spark does not have this type: cast the column", type=str(kind))
    return {
        "type": "array",
        "elementType": _type_json(kind.value_type, spark.get("elementType")),
        "containsNull": kind.value_field.nullable,
    }


_NULLS = ("nullable", "containsNull", "valueContainsNull")


def _is_same_type(one: Any, other: Any) -> bool:
    """Check whether the JSON of two types is equal, apart from nullability and metadata."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = (one.keys() | other.keys()) - {*_NULLS, "metadata"}
        return all(_is_same_type(one.get(key), other.get(key)) for key in keys)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_type, one, other))
    return bool(one == other)


# --- from Spark's JSON ------------------------------------------------------------------------------------------------
def restore_spark_types(schema: pa.Schema, spark_json: bytes | str | None) -> pa.Schema:
    """Add to the schema of a file what only Spark's JSON tells: VARIANT, intervals, collations, column metadata.

    Args:
        schema: the file's columns, as Arrow reads them.
        spark_json: the schema that Spark stored in the file; None if Spark did not write it.
    """
    try:
        fields = [] if spark_json is None else json.loads(spark_json)["fields"]
        known = {str(field["name"]): field for field in fields if "type" in field}
        return pa.schema(
            [_restore_field_type(field, known[field.name]) if field.name in known else field for field in schema]
        )
    except MALFORMED:
        return schema.remove_metadata()  # not Spark's JSON: any writer may use the key, so the file's own types apply


def _restore_field_type(field: pa.Field, spark: Mapping[str, Any]) -> pa.Field:
    return attach_spark_json(field.with_type(_restore_type(field.type, spark["type"])), spark)


def _restore_type(kind: pa.DataType, spark: Any) -> pa.DataType:
    if spark == "variant" and pat.is_struct(kind):
        return VARIANT
    if isinstance(spark, str) and _DAY_TIME.fullmatch(spark) and pat.is_int64(kind):
        return pa.duration("us")
    if not isinstance(spark, dict) or not pat.is_nested(kind):
        return kind
    if spark.get("type") == "udt":
        return _restore_type(kind, spark["sqlType"])
    if pat.is_map(kind):
        words = iter([spark.get("keyType"), spark.get("valueType")])
    elif pat.is_struct(kind):
        known = {field.get("name"): field.get("type") for field in spark.get("fields", ())}
        words = iter([known.get(field.name) for field in child_fields(kind)])
    else:
        words = iter([spark.get("elementType")])
    return transform_child_fields(kind, lambda field: field.with_type(_restore_type(field.type, next(words))))


def arrow_schema_from_json(text: str) -> pa.Schema:
    """Parse the output of `StructType.json` into an Arrow schema.

    Guarantee: the types are those in which PySpark passes the columns to Python: timestamps are in UTC, ``char`` and
    ``varchar`` are strings, and times are in microseconds. The fields' metadata has the details that Arrow cannot
    express.

    Raises:
        CorruptDataError: the text is not the JSON of a struct.
        InvalidRequestError: a column has a type that only Spark can read; the error names the column.
    """
    try:
        described = json.loads(text)
        if described["type"] != "struct":
            raise ValueError(described["type"])
        return pa.schema([_parse_column(field) for field in described["fields"]])
    except MALFORMED as error:
        if isinstance(error, InvalidRequestError):  # it is a ValueError too
            raise
        raise CorruptDataError("a stored schema is not Spark's: keep the bytes and report", schema=text) from error


def _parse_column(field: dict[str, Any]) -> pa.Field:
    try:
        return attach_spark_json(_arrow_field(field), field)
    except InvalidRequestError as error:
        raise InvalidRequestError(
            "a column's type cannot be read without Spark: use holdfast.read", column=field["name"], type=field["type"]
        ) from error


def _parse_named_type(text: str) -> pa.DataType:
    if text in _BY_NAME:
        return _BY_NAME[text]
    if found := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(found[1]), int(found[2]))
    if text.startswith(("char(", "varchar(")):
        return pa.string()
    if _DAY_TIME.fullmatch(text):
        return pa.duration("us")
    if _TIME.fullmatch(text):
        return pa.time64("us")
    raise InvalidRequestError("only Spark reads this type: use holdfast.read", type=text)


def _arrow_field(field: dict[str, Any]) -> pa.Field:
    return pa.field(field["name"], _arrow_type(field["type"]), bool(field["nullable"]))


def _arrow_type(described: Any) -> pa.DataType:
    if isinstance(described, str):
        return _parse_named_type(described)
    kind = described["type"]
    if kind == "array":
        return pa.list_(pa.field("element", _arrow_type(described["elementType"]), bool(described["containsNull"])))
    if kind == "map":
        value = pa.field("value", _arrow_type(described["valueType"]), bool(described["valueContainsNull"]))
        return pa.map_(_arrow_type(described["keyType"]), value)
    if kind == "struct":
        return pa.struct([_arrow_field(field) for field in described["fields"]])
    if kind == "udt":  # a user-defined class on top of a Spark type
        return _arrow_type(described["sqlType"])
    raise ValueError(kind)
