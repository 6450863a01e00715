"""Values as text that is equal if and only if they are: whoever read them, they come here as Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pat

__all__ = ["MARK", "canonical"]

MARK = "\ue000"
"""Stands before text that Spark itself made of a value that Arrow does not have (`tests.matrix.readers.shown`)."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def canonical(values: Any) -> list[Any]:
    """An array's values: text, None, lists, dicts for structs, sorted lists of pairs for maps."""
    if isinstance(values, pa.ChunkedArray):
        return [value for chunk in values.chunks for value in canonical(chunk)]
    if isinstance(values, pa.ExtensionArray):
        return canonical(values.storage)
    kind = values.type
    if pat.is_dictionary(kind):
        return canonical(values.dictionary_decode())
    if pat.is_struct(kind):
        children = [canonical(values.field(index)) for index in range(kind.num_fields)]
        names = [kind.field(index).name for index in range(kind.num_fields)]
        rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)]
        return _with_nulls(values, rows or [{} for _ in range(len(values))])
    if pat.is_map(kind):
        entries = [
            None if not one.is_valid else sorted(zip(canonical(one.values.field(0)), canonical(one.values.field(1)), strict=True), key=repr)
            for one in values
        ]
        return entries
    if pat.is_nested(kind):
        return [canonical(one.values) if one.is_valid else None for one in values]
    return [None if one is None else one for one in _leaves(values, kind)]


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
        return _texts(values.cast(pa.int64()), lambda value: f"{'n' if kind.tz is None else 't'}:{_micros(value, kind)}")
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
