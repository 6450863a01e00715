"""Infer the schema of JSON like Spark: fields in the order of their names, whole numbers as longs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.formats.columns.nesting import children
from holdfast.formats.json_values import Constant, Fraction, Whole

_LARGEST_PRECISION = 38
_LONG = 20  # the precision of a decimal that can store any long
_SURELY_LONG = 19  # a whole number of fewer characters is a long
_MOST_SHAPES = 10_000


def type_of_rows(rows: Iterable[dict[str, Any]]) -> pa.DataType:
    """Return a struct type for all of the rows; fields with only nulls have the null type."""
    found: pa.DataType = pa.struct([])
    seen: set[Hashable] = set()  # most rows have the shape of an earlier one and can be skipped
    for row in rows:
        shape = _shape(row)
        if shape not in seen:
            if len(seen) == _MOST_SHAPES:
                seen.clear()
            seen.add(shape)
            found = merge_types(found, _type(row))
    return found


def _shape(value: Any) -> Hashable:
    """Return a key that is equal only for values of one type, and cheaper to compute than the type."""
    kind: Any = type(value)
    if kind is str:
        return kind if value else None
    if kind is Whole:
        return kind if len(value) < _SURELY_LONG else _whole(value)
    if isinstance(value, dict):
        return tuple([(name, _shape(one)) for name, one in value.items()])
    if isinstance(value, list):
        return frozenset([_shape(one) for one in value])
    return None if value is None else kind


def schema_of(found: pa.DataType) -> pa.Schema:
    """Turn the struct type of all rows into a schema."""
    known = _known(found)
    return pa.schema([] if known is None else children(known))


def _struct(fields: dict[str, pa.DataType]) -> pa.DataType:
    """Return a struct type with its fields in Java's string order."""
    return pa.struct(sorted(fields.items(), key=lambda field: field[0].encode("utf-16-be", "surrogatepass")))


def _type(value: Any) -> pa.DataType:
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, Whole):
        return _whole(value)
    if isinstance(value, Fraction | Constant):
        return pa.float64()
    if isinstance(value, str):
        return pa.string() if value else pa.null()  # many writers use an empty string for null
    if isinstance(value, dict):
        return _struct({name: _type(one) for name, one in value.items()})
    element: pa.DataType = pa.null()
    for one in value:
        element = merge_types(element, _type(one))
    return pa.list_(element)


def _whole(text: str) -> pa.DataType:
    digits = text.lstrip("-")
    if len(digits) <= _LARGEST_PRECISION:
        return pa.int64() if -(2**63) <= int(text) < 2**63 else pa.decimal128(len(digits), 0)
    return pa.float64()


def merge_types(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return a type that can represent the values of both types; if there is no other, the string type."""
    if first.equals(second) or pat.is_null(second):
        return first
    if pat.is_null(first):
        return second
    if pat.is_struct(first) and pat.is_struct(second):
        fields = {field.name: field.type for field in children(first)}
        for field in children(second):
            fields[field.name] = merge_types(fields[field.name], field.type) if field.name in fields else field.type
        return _struct(fields)
    if pat.is_list(first) and pat.is_list(second):
        return pa.list_(merge_types(first.value_type, second.value_type))
    numbers = [kind for kind in (first, second) if pat.is_int64(kind) or pat.is_floating(kind) or pat.is_decimal(kind)]
    if len(numbers) < 2:
        return pa.string()
    if any(pat.is_floating(kind) for kind in numbers):
        return pa.float64()
    return pa.decimal128(max(kind.precision if pat.is_decimal(kind) else _LONG for kind in numbers), 0)


def _known(kind: pa.DataType) -> pa.DataType | None:
    """Replace null types with strings and drop structs without fields; return None if nothing remains."""
    if pat.is_null(kind):
        return pa.string()
    if pat.is_list(kind):
        element = _known(kind.value_type)
        return None if element is None else pa.list_(element)
    if pat.is_struct(kind):
        fields = [(field.name, _known(field.type)) for field in children(kind) if field.name]
        kept = [(name, found) for name, found in fields if found is not None]
        return pa.struct(kept) if kept else None
    return kind
