"""Convert values to text that is equal if and only if the values are, for any reader's results in Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from pyspark.sql.types import VariantVal

__all__ = ["MARK", "canonical"]

MARK = "\ue000"
"""A prefix of text that Spark made from a value that Arrow cannot represent (`tests.matrix.readers.shown`)."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def canonical(values: Any, kind: Any = None) -> list[Any]:
    """Return an array's values: text, None, lists, dicts for structs, sorted lists of pairs for maps.

    Args:
        values: the array.
        kind: Spark's type if known, because some of its types are structs or numbers in Arrow.
    """
    if isinstance(values, pa.ChunkedArray):
        return [value for chunk in values.chunks for value in canonical(chunk, kind)]
    if isinstance(values, pa.ExtensionArray):
        return canonical(values.storage, kind)
    arrow = values.type
    if kind is not None and type(kind).__name__ in _SPARK_ONLY:
        return _texts(values, _SPARK_ONLY[type(kind).__name__])
    if pat.is_dictionary(arrow):
        return canonical(values.dictionary_decode(), kind)
    if pat.is_struct(arrow):
        names = [arrow.field(index).name for index in range(arrow.num_fields)]
        children = [canonical(values.field(name), _child(kind, name)) for name in names]
        rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)]
        return _with_nulls(values, rows or [{} for _ in range(len(values))])
    if pat.is_map(arrow):
        return [_pairs(one, kind) if one.is_valid else None for one in values]
    if pat.is_nested(arrow) and pat.is_null(arrow.value_type):  # pyarrow cannot take values from their slices
        return [None if length is None else [None] * length for length in pc.list_value_length(values).to_pylist()]
    if pat.is_nested(arrow):
        return [canonical(one.values, _child(kind, "element")) if one.is_valid else None for one in values]
    return _leaves(values, arrow)


def _pairs(entries: Any, kind: Any) -> list[Any]:
    keys = canonical(entries.values.field(0), _child(kind, "key"))
    return sorted(zip(keys, canonical(entries.values.field(1), _child(kind, "value")), strict=True), key=repr)


def _child(kind: Any, name: str) -> Any:
    """Return the type of a child of one of Spark's types."""
    if kind is None:
        return None
    word = type(kind).__name__
    if word == "StructType":
        return kind[name].dataType
    return {
        "ArrayType": lambda: kind.elementType,
        "MapType": lambda: kind.keyType if name == "key" else kind.valueType,
    }.get(word, lambda: None)()


def _vector(value: Any) -> str:
    return "u:[" + ",".join(repr(float(one)) for one in value["values"]) + "]"


_SPARK_ONLY: dict[str, Callable[[Any], str]] = {
    "VariantType": lambda value: "v:" + VariantVal(value["value"], value["metadata"]).toJson(),
    "YearMonthIntervalType": lambda value: f"m:{value}",
    "VectorUDT": _vector,
    "GeometryType": lambda value: "g:" + value["wkb"].hex(),
}


def _with_nulls(values: Any, rows: list[Any]) -> list[Any]:
    return [row if valid else None for row, valid in zip(rows, values.is_valid().to_pylist(), strict=True)]


def _leaves(values: Any, kind: Any) -> list[Any]:
    if pat.is_null(kind):
        return [None] * len(values)
    if pat.is_boolean(kind):
        return _texts(values, lambda value: "true" if value else "false")
    if pat.is_integer(kind):
        return _texts(values, str)
    if pat.is_floating(kind):
        return _texts(values, lambda value: repr(float(value)))
    if pat.is_decimal(kind):
        return _texts(values, lambda value: f"{value:f}")
    if pat.is_date(kind):
        days = values.cast(pa.int32()) if pat.is_date32(kind) else values.cast(pa.int64())
        return _texts(days, lambda value: f"d:{value if pat.is_date32(kind) else value // 86_400_000}")
    if pat.is_timestamp(kind):
        return _texts(
            values.cast(pa.int64()), lambda value: f"{'n' if kind.tz is None else 't'}:{_micros(value, kind)}"
        )
    if pat.is_duration(kind):
        return _texts(values.cast(pa.int64()), lambda value: f"i:{_micros(value, kind)}")
    if pat.is_time(kind):
        number = pa.int32() if pat.is_time32(kind) else pa.int64()
        factor = 1_000_000_000 // _PER_SECOND[kind.unit]
        return _texts(values.cast(number), lambda value: f"time:{value * factor}")
    if pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind):
        return _texts(values, lambda value: value[1:] if value.startswith(MARK) else f"s:{value}")
    if str(kind) == "month_day_nano_interval":
        return _texts(values, lambda value: f"interval:{value}")
    return _texts(values, lambda value: f"x:{bytes(value).hex()}")


def _micros(value: int, kind: Any) -> str:
    whole, rest = divmod(value * 1_000_000, _PER_SECOND[kind.unit])
    return str(whole) if rest == 0 else f"{value}{kind.unit}"


def _texts(values: Any, show: Any) -> list[Any]:
    return [None if value is None else show(value) for value in values.to_pylist()]
