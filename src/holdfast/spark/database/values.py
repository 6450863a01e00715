"""Convert values between cells and Spark's columns, exactly or not at all.

| a cell holds | Spark's column may be |
|---|---|
| an integer | an integer type or decimal that holds it; double or float if they hold it exactly; string |
| a float | double; float if it holds it exactly; string |
| a text | string |
| bytes | binary |
| JSON | string, with the JSON text; an array for a list; boolean |
| a numpy array | an array, nested as deep as the array has dimensions |
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.options.database import DatabaseTable
from holdfast.options.values import Condition
from holdfast.records.keys import cells_range
from holdfast.records.row_keys import prefix_range
from holdfast.records.values import parse_json
from holdfast.wording import nearest

if TYPE_CHECKING:
    from holdfast.records import Value


_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_ARRAY_KINDS = "biufUS"
_FLOAT = struct.Struct(">f")


class Misfit(ValueError):
    """A value that a type cannot hold exactly."""


def is_integer_type(kind: DataType) -> bool:
    """Check whether Spark's type is one of its integers."""
    return type(kind) in _BITS


# --- reading ----------------------------------------------------------------------------------------------------------
def to_spark(kind: DataType, column: str) -> Callable[[Any], Any]:
    """Return a function that converts the values of cells to a type of Spark. It raises `Misfit`.

    Raises:
        InvalidRequestError: no value of a cell has such a type.
    """
    if isinstance(kind, ArrayType):
        return _to_array(to_spark(kind.elementType, column), kind.containsNull)
    if is_integer_type(kind):
        return _to_integer(_BITS[type(kind)])
    if isinstance(kind, DecimalType):
        return _to_decimal(10 ** (kind.precision - kind.scale))
    found = _SCALARS.get(type(kind))
    if found is None:
        raise InvalidRequestError(
            "a database has no values of this type: read strings, and convert the column",
            column=column,
            type=kind.simpleString(),
        )
    return found


def part_from_row(kind: DataType, column: str) -> Callable[[Any], Any]:
    """Return a function that converts names of rows, or parts of them, to a type of Spark. It raises `Misfit`.

    Raises:
        InvalidRequestError: no row has such a name.
    """
    if is_integer_type(kind):
        return _to_integer(_BITS[type(kind)])
    if isinstance(kind, StringType):
        return lambda part: _require(part, str)
    if isinstance(kind, BinaryType):
        return lambda part: _require(part, bytes)
    raise InvalidRequestError(
        "the name of a row is a string, an integer or binary: change the schema",
        column=column,
        type=kind.simpleString(),
    )


def _require(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise Misfit
    return value


def _to_integer(bits: int) -> Callable[[Any], int]:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise Misfit
        return value

    return convert


def _to_decimal(bound: int) -> Callable[[Any], Decimal]:
    def convert(value: Any) -> Decimal:
        if type(value) is not int or not -bound < value < bound:
            raise Misfit
        return Decimal(value)

    return convert


def _to_double(value: Any) -> float:
    if type(value) is float:
        return value
    try:
        found = float(_require(value, int))
    except OverflowError:
        raise Misfit from None
    if int(found) != value:
        raise Misfit
    return found


def _to_float(value: Any) -> float:
    found = _to_double(value)
    try:
        if math.isnan(found) or _FLOAT.unpack(_FLOAT.pack(found))[0] == found:
            return found
    except OverflowError:
        pass
    raise Misfit


def _to_text(value: Any) -> str:
    if type(value) is str:
        return value
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, int | float):
        try:
            return str(value)
        except ValueError:  # more digits than Python converts
            raise Misfit from None
    raise Misfit


_SCALARS: dict[type[DataType], Callable[[Any], Any]] = {
    StringType: _to_text,
    BinaryType: lambda value: _require(value, bytes),
    BooleanType: lambda value: _require(value, bool),
    DoubleType: _to_double,
    FloatType: _to_float,
}


def _to_array(element: Callable[[Any], Any], nullable: bool) -> Callable[[Any], list[Any]]:
    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            if not hasattr(value, "dtype") or not value.ndim or value.dtype.kind not in _ARRAY_KINDS:
                raise Misfit
            value = value.tolist()
        if None in value and not nullable:
            raise Misfit
        return [None if one is None else element(one) for one in value]

    return convert


# --- writing ----------------------------------------------------------------------------------------------------------
def to_value(kind: DataType, column: str, *, is_json: bool) -> Callable[[Any], Value]:
    """Return a function that converts what Arrow makes of a column's values to values of cells.

    It raises `Misfit`, or an `InvalidRequestError` that says more.

    Args:
        is_json: whether the column's texts are JSON.

    Raises:
        InvalidRequestError: values of this type cannot be stored.
        UnsupportedError: the column holds arrays, and numpy is not installed.
    """
    if is_json:
        if not isinstance(kind, StringType):
            raise InvalidRequestError(
                "only strings can be JSON: use to_json, or take the column out of jsonColumns",
                column=column,
                type=kind.simpleString(),
            )
        return parse_json
    if isinstance(kind, ArrayType):
        return _to_numpy(kind, column)
    if is_integer_type(kind) or type(kind) in _STORED:
        return _same
    raise _not_storable(kind, column)


_STORED = (StringType, BinaryType, BooleanType, DoubleType, FloatType)


def _same(value: Any) -> Any:
    return value


def _not_storable(kind: DataType, column: str) -> InvalidRequestError:
    return InvalidRequestError(
        "a column of this type cannot be stored: cast it, or use to_json and the option jsonColumns",
        column=column,
        type=kind.simpleString(),
    )


_DTYPES: dict[type[DataType], str] = {
    BooleanType: "bool",
    ByteType: "int8",
    ShortType: "int16",
    IntegerType: "int32",
    LongType: "int64",
    FloatType: "float32",
    DoubleType: "float64",
}


def _to_numpy(kind: ArrayType, column: str) -> Callable[[Any], Value]:
    inner: DataType = kind
    while isinstance(inner, ArrayType):
        inner = inner.elementType
    dtype = _DTYPES.get(type(inner))
    if dtype is None:
        raise _not_storable(kind, column)
    try:
        import numpy as np
    except ImportError as error:
        raise UnsupportedError("a column of arrays is stored with numpy: pip install numpy", column=column) from error

    def convert(value: Any) -> Value:
        if _has_null(value):
            raise Misfit
        try:
            array: Value = np.array(value, dtype)
        except ValueError:  # rows of different lengths
            raise Misfit from None
        return array

    return convert


def _has_null(value: Any) -> bool:
    return value is None or (isinstance(value, list) and any(map(_has_null, value)))


_PART = re.compile(r"row_([1-9]\d?)", re.IGNORECASE)


def default_names(parts: int) -> tuple[str, ...]:
    """Return the names of the row columns if the user gives none: ``row``, or ``row_1``, ``row_2``, ….

    Args:
        parts: of the names; 1 for names that are no tuples.
    """
    return ("row",) if parts == 1 else tuple(f"row_{number}" for number in range(1, parts + 1))


def find_row_columns(table: DatabaseTable, names: Sequence[str]) -> dict[str, int | None]:
    """Return those of a schema's columns that hold names of rows: which part of a tuple, or None for the whole name."""
    if table.row_columns is None:
        whole = [name for name in names if name.lower() == "row"]
        if whole:
            return dict.fromkeys(whole)
        return {name: int(found[1]) - 1 for name in names if (found := _PART.fullmatch(name)) is not None}
    wanted = {name.lower(): at for at, name in enumerate(table.row_columns)}
    single = len(table.row_columns) == 1
    return {name: None if single else wanted[name.lower()] for name in names if name.lower() in wanted}


def key_range(conditions: Sequence[Condition], source: DatabaseTable, table_id: int) -> tuple[bytes, bytes]:
    """Return the range of the cells of all rows that meet the conditions of a read: from a key, up to before another.

    Raises:
        InvalidRequestError: a condition is not one on the order of the names of rows.
    """
    names = ("row", "row_1") if source.row_columns is None else source.row_columns[:1]
    first, end = cells_range(table_id)
    start = first
    for one in conditions:
        if one.column.lower() not in [name.lower() for name in names]:
            raise InvalidRequestError(
                "a read takes conditions on the names of rows only, filter the DataFrame instead: "
                + nearest(one.column, names),
                column=one.column,
            )
        if one.operator in ("in", "!=") or isinstance(one.value, bool) or not isinstance(one.value, str | int):
            raise InvalidRequestError(
                "a row's name is compared with a text or an integer, by = < <= > >=: filter the DataFrame instead",
                operator=one.operator,
                value=one.value,
            )
        low, high = (first + encoded for encoded in prefix_range((one.value,)))
        if one.operator in ("=", ">", ">="):
            start = max(start, high if one.operator == ">" else low)
        if one.operator in ("=", "<", "<="):
            end = min(end, low if one.operator == "<" else high)
    return start, end
