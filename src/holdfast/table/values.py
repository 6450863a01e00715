"""Convert partition values to text, like Spark's cast to string, and back.

Strings of other writers are parsed like in Spark, according to the column's type: ``05`` is the integer 5, ``1e3`` can
be a decimal, and ``2026-1-2`` a date.
"""

from __future__ import annotations

import decimal
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.types import is_string
from holdfast.table.civil import date_text, parse_date, parse_time, time_text
from holdfast.table.zones import Zone, find_zone

_SPECIAL_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


# --- to text ----------------------------------------------------------------------------------------------------------
def partition_texts(values: Any, time_zone: str, column: str = "") -> list[str | None]:
    """Convert each value of an array to a string. Pass distinct values only: this is a Python loop over them.

    Guarantee: `parse_values` restores the values from the strings, bit for bit (except for the payload of NaN).

    Args:
        values: the values; `partition.resolve_partition_columns` must accept their type.
        time_zone: the time zone in which timestamps are shown.
        column: the name of the column, for errors.

    Raises:
        InvalidRequestError: the text of a value would be ambiguous.
    """
    kind = values.type
    if pat.is_null(kind):
        return [None] * len(values)
    if pat.is_timestamp(kind):
        micros = _micros(values, column)
        if kind.tz is None:
            return _each(micros, time_text)
        zone = find_zone(time_zone)
        return _each(micros, lambda instant: _instant_text(instant, zone, time_zone, column))
    if pat.is_date32(kind):
        return _each(values.cast(pa.int32()), date_text)
    if pat.is_floating(kind):
        single = not pat.is_float64(kind)
        return _each(values.cast(pa.string()), lambda text: java_float(text, single=single))
    if pat.is_decimal(kind):
        return _each(values, lambda number: format(number, "f"))
    try:
        texts: list[str | None] = values.cast(pa.string()).to_pylist()
    except UnicodeDecodeError:
        raise InvalidRequestError("a partition value is not valid Unicode: clean it", column=column) from None
    return texts


def _each(values: Any, function: Callable[[Any], str]) -> list[str | None]:
    return [None if value is None else function(value) for value in values.to_pylist()]


def _micros(values: Any, column: str) -> Any:
    try:
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InvalidRequestError(
            "a partition value has digits beyond microseconds: round the column", column=column
        ) from error


def _instant_text(instant: int, zone: Zone, time_zone: str, column: str) -> str:
    local = zone.local(instant)
    if zone.instant(local) != instant:
        raise InvalidRequestError(
            "a timestamp is ambiguous in a directory name, since clocks showed the same local time before: partition "
            "by a date or by a timestamp_ntz, or set the session's time zone to UTC",
            column=column,
            value=f"{time_text(instant)} UTC",
            zone=time_zone,
        )
    return time_text(local)


def java_float(text: str, *, single: bool = False) -> str:
    """Convert a float's shortest digits to the format of Java's ``Double.toString``, which Spark uses.

    Java versions before 19 print more digits than needed for some values; both strings denote the same value.

    Args:
        text: the shortest digits that identify the value.
        single: whether the value has 32 bits.
    """
    if text in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[text]
    number = decimal.Decimal(text)
    if len(number.as_tuple().digits) == 1 and number:
        # Where one digit would be enough, Java prints the nearest number with two digits: 4.9E-324, not 5.0E-324.
        exact = float(text)
        if single:
            exact = struct.unpack("f", struct.pack("f", exact))[0]
        number = decimal.Context(prec=2).create_decimal_from_float(exact)
    sign, digits, exponent = number.as_tuple()
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
    """Parse strings that `partition_texts` or other writers produced into an array of the type.

    Args:
        texts: the unescaped values of directories; None for null.
        kind: the column's type.
        time_zone: the time zone of timestamps in directory names.
        column: the name of the column, for errors.

    Raises:
        InvalidRequestError: a text is not a value of the type.
    """
    parse, storage = _parser(kind, time_zone)
    found = [None if text is None else parse(text) for text in texts]
    try:
        if any(value is None and text is not None for value, text in zip(found, texts, strict=True)):
            raise pa.ArrowInvalid("not a value of the type")
        return pa.array(found, storage).cast(kind)
    except (pa.ArrowException, OverflowError) as error:
        raise InvalidRequestError(
            "a partition directory's value does not fit the column's type: give the right schema",
            column=column,
            type=str(kind),
        ) from error


def _parser(kind: pa.DataType, time_zone: str) -> tuple[Callable[[str], Any], pa.DataType]:
    """Return a function that parses text (None if the text is invalid), and the type of the values that it returns."""
    if is_string(kind):
        return (lambda text: text), kind
    if pat.is_boolean(kind):
        return (lambda text: {"true": True, "false": False}.get(text.lower())), kind
    if pat.is_signed_integer(kind):
        return (lambda text: int(text) if _INTEGER.fullmatch(text) else None), kind
    if pat.is_floating(kind):
        return parse_float, kind
    if pat.is_decimal(kind):
        return (lambda text: decimal.Decimal(text) if _DECIMAL.fullmatch(text) else None), kind
    if pat.is_date32(kind):
        return parse_date, pa.int32()
    if pat.is_timestamp(kind):
        if kind.tz is None:
            return _parse_local, pa.timestamp("us")
        return (lambda text: _parse_instant(text, time_zone)), pa.timestamp("us", kind.tz)
    return (lambda text: None), kind


# Java's parsers accept the digits of all scripts for integers and decimals, but only ASCII digits for floats.
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FLOAT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX_FLOAT = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_FLOAT_WORD = re.compile(r"[+-]?(?:NaN|Infinity)")
_BLANKS = "".join(map(chr, range(0x21)))


def parse_float(text: str) -> float | None:
    """Parse a text like Java's ``Double.parseDouble``; return None where the Java function throws."""
    text = text.strip(_BLANKS)
    if _FLOAT_WORD.fullmatch(text):
        return float(text)
    found = _FLOAT.fullmatch(text)
    if found:
        return float(found[1])
    found = _HEX_FLOAT.fullmatch(text)
    if not found:
        return None
    try:
        return float.fromhex(found[1])
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def _parse_local(text: str) -> int | None:
    found = parse_time(text)
    return None if found is None or found.zone else found.micros


def _parse_instant(text: str, time_zone: str) -> int | None:
    found = parse_time(text)
    if found is None:
        return None
    try:
        return find_zone(found.zone or time_zone).instant(found.micros)
    except InvalidRequestError:
        if found.zone:
            return None  # the zone is unknown: the text is not a value of the type
        raise
