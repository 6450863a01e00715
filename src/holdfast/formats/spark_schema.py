"""An Arrow schema as the JSON in which Spark writes a schema."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.types as pat

from holdfast.formats.types import children, is_string

__all__ = ["spark_schema_json"]

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
    pa.time64("us"): "time(6)",
}


def spark_schema_json(schema: pa.Schema) -> str:
    """The schema as Spark's `StructType` would print itself; the types are in plain form (`plain_schema`)."""
    return json.dumps(_struct(list(schema)), ensure_ascii=False, separators=(",", ":"))


def _struct(fields: list[pa.Field]) -> dict[str, object]:
    described = [
        {"name": field.name, "type": _type(field.type), "nullable": field.nullable, "metadata": {}} for field in fields
    ]
    return {"type": "struct", "fields": described}


def _type(kind: pa.DataType) -> object:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if is_string(kind):
        return "string"
    if pat.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pat.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pat.is_duration(kind):
        return "interval day to second"
    if pat.is_map(kind):
        return {
            "type": "map",
            "keyType": _type(kind.key_type),
            "valueType": _type(kind.item_type),
            "valueContainsNull": kind.item_field.nullable,
        }
    if pat.is_struct(kind):
        return _struct(children(kind))
    if pat.is_nested(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": kind.value_field.nullable}
    return "binary"
