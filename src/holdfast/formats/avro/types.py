"""The types of an Avro file, as Arrow has them; with Spark's mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from holdfast.errors import InvalidRequestError

__all__ = ["arrow_type", "column_types", "with_texts"]

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
# On any other type a logical type means nothing: Avro's specification wants it ignored, and fastavro does so.
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
    """The columns of a file with this schema and their types; each name of a type replaced by what it names.

    Args:
        schema: as fastavro gives it: names are full, and each is defined before it is used.

    Raises:
        InvalidRequestError: the file holds something else than records.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        kind = schema.get("type") if isinstance(schema, dict) else schema
        raise InvalidRequestError(
            "an Avro file holds values that are no records, so it has no columns: give another file", type=str(kind)
        )
    found: dict[str, Any] = {}
    names = {schema["name"]: _endless(schema["name"])}
    for field in schema["fields"]:
        found[field["name"]] = _spelled_out(field["type"], names)
    return found


def _endless(name: str) -> dict[str, Any]:
    """What a record's name stands for within the record: no type of Arrow's or Spark's holds itself."""
    return {"type": f"{name}, which holds itself"}


def _spelled_out(avro: Any, names: dict[str, Any]) -> Any:
    if isinstance(avro, list):
        return [_spelled_out(one, names) for one in avro]
    if isinstance(avro, str):
        return names.get(avro, avro)
    found = dict(avro)
    if avro["type"] == "record":
        names[avro["name"]] = _endless(avro["name"])
        found["fields"] = [{**field, "type": _spelled_out(field["type"], names)} for field in avro["fields"]]
    for inner in ("items", "values"):
        if avro["type"] in ("array", "map") and inner in avro:
            found[inner] = _spelled_out(avro[inner], names)
    if avro["type"] in ("record", "enum", "fixed"):
        names[avro["name"]] = found
    return found


def arrow_type(avro: Any) -> pa.DataType:
    """The Arrow type of one of `column_types`.

    Raises:
        InvalidRequestError: there is none.
    """
    if isinstance(avro, list):
        present = [one for one in avro if one != "null"]
        if len(present) > 1:
            raise InvalidRequestError("unions of several types cannot be read: give another file", union=str(avro))
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
        raise InvalidRequestError("an Avro type that cannot be read: give another file", type=str(kind))
    return _PRIMITIVES[kind]


def _decimal(precision: int, scale: int) -> pa.DataType:
    if precision > _LARGEST_PRECISION:
        raise InvalidRequestError(
            "a decimal of an Avro file has more digits than Spark's 38: give another file", precision=precision
        )
    if precision < 1 or not 0 <= scale <= precision:
        raise InvalidRequestError(
            "a decimal of an Avro file has no valid precision and scale: give another file",
            precision=precision,
            scale=scale,
        )
    return pa.decimal128(precision, scale)


def with_texts(columns: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """A function from fastavro's form of a row to one that Arrow takes, None where they are the same.

    Only a string of the logical type uuid differs: fastavro makes an object of it, Spark leaves it a string.
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
