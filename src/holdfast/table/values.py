"""Partition values as text, as Spark casts them to a string, and back."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError

__all__ = ["infer_type", "java_float", "parse_values", "partition_texts"]

_SPECIAL_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


# --- to text ----------------------------------------------------------------------------------------------------------
def partition_texts(values: Any, time_zone: str) -> list[str | None]:
    """Text for each value of an array (a dictionary of distinct values: this runs per value, not per row)."""
    kind = values.type
    if pat.is_null(kind):
        return [None] * len(values)
    if pat.is_timestamp(kind):
        return _each(_timestamp_texts(values, time_zone), _trim_fraction)
    if pat.is_floating(kind):
        return _each(values.cast(pa.string()), java_float)
    if pat.is_decimal(kind):
        return _each(values, lambda number: format(number, "f"))
    texts: list[str | None] = values.cast(pa.string()).to_pylist()
    return texts


def _each(values: Any, function: Callable[[Any], str]) -> list[str | None]:
    return [None if value is None else function(value) for value in values.to_pylist()]


def _timestamp_texts(values: Any, time_zone: str) -> Any:
    micros = values.cast(pa.timestamp("us", values.type.tz))
    if micros.type.tz is not None:
        if time_zone in ("UTC", "Etc/UTC", "GMT", "Z"):
            micros = micros.cast(pa.timestamp("us"))
        else:
            try:
                micros = pc.local_timestamp(micros.cast(pa.timestamp("us", time_zone)))
            except pa.ArrowInvalid as error:
                raise InvalidRequestError(
                    "no such time zone: set the session's time zone to a region such as Europe/Berlin", zone=time_zone
                ) from error
    return micros.cast(pa.string())


def _trim_fraction(text: str) -> str:
    return text.rstrip("0").rstrip(".")


def java_float(text: str) -> str:
    """A float's shortest digits in the layout of Java's ``Double.toString``, which Spark shows."""
    if text in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[text]
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    assert isinstance(exponent, int)
    point = len(digits) + exponent  # the value is 0.<shown> times ten to this power
    minus = "-" if sign else ""
    if shown == "0":
        return f"{minus}0.0"
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{shown}"
        return f"{minus}{shown[:point].ljust(point, '0')}.{shown[point:] or '0'}"
    return f"{minus}{shown[0]}.{shown[1:] or '0'}E{point - 1}"


# --- from text --------------------------------------------------------------------------------------------------------
def parse_values(texts: Sequence[str | None], kind: pa.DataType, time_zone: str, column: str) -> Any:
    """An array of the type from texts as `partition_texts` makes them.

    Raises:
        InvalidRequestError: a directory's value is no value of the type.
    """
    try:
        if pat.is_timestamp(kind) and kind.tz is not None:
            local = pa.array(texts, pa.string()).cast(pa.timestamp("us"))
            zone = "UTC" if time_zone in ("Etc/UTC", "GMT", "Z") else time_zone
            return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest").cast(kind)
        if pat.is_decimal(kind):
            numbers = [None if text is None else decimal.Decimal(text) for text in texts]
            return pa.array(numbers, kind)
        return pa.array(texts, pa.string()).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, decimal.InvalidOperation) as error:
        raise InvalidRequestError(
            "a partition directory's value is not of the column's type: give the right schema",
            column=column,
            type=str(kind),
        ) from error


_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Infinity")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?")


def infer_type(texts: Sequence[str | None]) -> pa.DataType:
    """The type that Spark would infer for a partition column: the narrowest that fits all values, else string."""
    kinds = {_infer_one(text) for text in texts if text is not None}
    if not kinds:
        return pa.string()
    order = ("int", "long", "decimal", "double")
    if kinds <= set(order):
        widest = max(kinds, key=order.index)
        if widest == "decimal":
            return pa.decimal128(38, 0)
        return {"int": pa.int32(), "long": pa.int64(), "double": pa.float64()}[widest]
    if kinds == {"date"}:
        return pa.date32()
    if kinds <= {"date", "timestamp"}:
        return pa.timestamp("us", "UTC")
    return pa.string()


def _infer_one(text: str) -> str:
    if _INTEGER.fullmatch(text):
        number = int(text)
        if -(2**31) <= number < 2**31:
            return "int"
        if -(2**63) <= number < 2**63:
            return "long"
        return "decimal" if len(text.lstrip("+-")) <= 38 else "double"
    if _FLOAT.fullmatch(text):
        return "double"
    if _DATE.fullmatch(text) and _is_date(text):
        return "date"
    if _TIMESTAMP.fullmatch(text) and _is_date(text[:10]):
        return "timestamp"
    return "string"


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True
