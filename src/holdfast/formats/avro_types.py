"""Map the types of an Avro file to Arrow types, as Spark does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from holdfast.errors import InvalidRequestError

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
}
# A logical type on any other underlying type is ignored, as Avro's specification requires and as fastavro does.
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "time-micros"): pa.time64("us"),
    ("int", "time-millis"): pa.time64("us"),
}
_LARGEST_PRECISION = 38


def column_types(schema: Any) -> Mapping[str, Any]:
    """Map the column names in a file's schema to their types, with references to named types resolved.

    Args:
        schema: the file's schema as fastavro returns it: with full names, each defined before it is used.

    Raises:
        InvalidRequestError: the file does not contain records.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        kind = schema.get("type") if isinstance(schema, dict) else schema
        raise InvalidRequestError(
            "an Avro file contains values other than records, so it has no columns: use another file", type=str(kind)
        )
    found: dict[str, Any] = {}
    names = {schema["name"]: _recursive(schema["name"])}
    for field in schema["fields"]:
        found[field["name"]] = _resolved(field["type"], names)
    return found


def _recursive(name: str) -> dict[str, Any]:
    """Return a placeholder type for a record that contains itself, which neither Arrow nor Spark supports."""
    return {"type": f"{name}, which contains itself"}


def _resolved(avro: Any, names: dict[str, Any]) -> Any:
    if isinstance(avro, list):
        return [_resolved(one, names) for one in avro]
    if isinstance(avro, str):
        return names.get(avro, avro)
    found = dict(avro)
    if avro["type"] == "record":
        names[avro["name"]] = _recursive(avro["name"])
        found["fields"] = [{**field, "type": _resolved(field["type"], names)} for field in avro["fields"]]
    for inner in ("items", "values"):
        if avro["type"] in ("array", "map") and inner in avro:
            found[inner] = _resolved(avro[inner], names)
    if avro["type"] in ("record", "enum", "fixed"):
        names[avro["name"]] = found
    return found


def arrow_type(avro: Any) -> pa.DataType:
    """Return the Arrow type for an Avro type that `column_types` returned.

    Raises:
        InvalidRequestError: no Arrow type corresponds to the Avro type.
    """
    if isinstance(avro, list):
        present = [one for one in avro if one != "null"]
        if len(present) > 1:
            raise InvalidRequestError("unions of several types are not supported: use another file", union=str(avro))
        return arrow_type(present[0]) if present else pa.null()
    if isinstance(avro, str):
        avro = {"type": avro}
    kind = avro["type"]
    if kind in ("bytes", "fixed") and avro.get("logicalType") == "decimal" and "precision" in avro:
        return _decimal(avro["precision"], avro.get("scale", 0))
    if (kind, avro.get("logicalType")) in _LOGICAL:
        return _LOGICAL[kind, avro["logicalType"]]
    if kind == "record":
        return pa.struct([(field["name"], arrow_type(field["type"])) for field in avro["fields"]])
    if kind == "array":
        return pa.list_(arrow_type(avro["items"]))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(avro["values"]))
    if kind not in _PRIMITIVES:
        raise InvalidRequestError("an Avro type is not supported: use another file", type=str(kind))
    return _PRIMITIVES[kind]


def _decimal(precision: int, scale: int) -> pa.DataType:
    if precision > _LARGEST_PRECISION:
        raise InvalidRequestError(
            "a decimal in an Avro file has more digits than Spark's 38: use another file", precision=precision
        )
    if precision < 1 or not 0 <= scale <= precision:
        raise InvalidRequestError(
            "a decimal in an Avro file has an invalid precision or scale: use another file",
            precision=precision,
            scale=scale,
        )
    return pa.decimal128(precision, scale)


def with_texts(columns: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """Return a function that converts a row from fastavro to the form that Arrow accepts; None if none is needed.

    Only strings of the logical type uuid need a conversion: fastavro turns them into objects, but Spark leaves them as
    strings.
    """
    return _with_texts({"type": "record", "fields": [{"name": name, "type": kind} for name, kind in columns.items()]})


def _with_texts(avro: Any) -> Callable[[Any], Any] | None:
    if isinstance(avro, list):
        return next((_with_texts(one) for one in avro if one != "null"), None)
    if isinstance(avro, str):
        return None
    if avro["type"] == "string" and avro.get("logicalType") == "uuid":
        return lambda value: None if value is None else str(value)
    if avro["type"] == "record":
        changes = {field["name"]: _with_texts(field["type"]) for field in avro["fields"]}
        changed = {name: change for name, change in changes.items() if change is not None}
        if changed:
            return lambda row: row and {**row, **{name: change(row[name]) for name, change in changed.items()}}
        return None
    inner = _with_texts(avro.get("items", avro.get("values", "null")))
    if inner is None:
        return None
    if avro["type"] == "map":
        return lambda entries: entries and {key: inner(value) for key, value in entries.items()}
    return lambda values: values and [inner(value) for value in values]
