"""Convert the values of partition columns to text, like Spark's cast to string, and back; infer their types.

Strings of other writers are parsed like in Spark, according to the column's type: ``05`` is the integer 5, ``1e3`` can
be a decimal, and ``2026-1-2`` a date.
"""

from __future__ import annotations

import decimal
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.nesting import is_string
from holdfast.formats.spark.texts import (
    Zone,
    date_text,
    find_zone,
    java_float,
    parse_date,
    parse_float,
    parse_time,
    time_text,
)


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


# --- inference --------------------------------------------------------------------------------------------------------
# Source: ``PartitioningUtils.inferPartitionColumnValue`` and ``findWiderTypeForPartitionColumn`` of Spark 4.3; this
# code reproduces results observed in Spark.
# The patterns from which Spark infers the type of a directory's value: uuuu-MM-dd and uuuu-MM-dd HH:mm:ss[.S].
_YEAR = r"(?:-?[0-9]{4}|[+-][0-9]{5,7})"
_INFERRED_DATE = re.compile(_YEAR + r"-[0-9]{2}-[0-9]{2}")
_INFERRED_TIME = re.compile(_YEAR + r"-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9])?")


def _is_date(text: str) -> bool:
    """Check whether Spark infers a date from the value in a directory name."""
    if not _INFERRED_DATE.fullmatch(text):
        return False
    days = parse_date(text)
    return days is not None and -(2**31) <= days < 2**31


def _is_timestamp(text: str) -> bool:
    """Check whether Spark infers a timestamp from a directory name's value, which allows at most tenths of a second."""
    if not _INFERRED_TIME.fullmatch(text):
        return False
    found = parse_time(text)
    return found is not None and -(2**63) <= found.micros < 2**63


_MOST_DIGITS = 38
_SHORT_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,10})?")
# The number of digits of each integer type, for widening it to a decimal.
_DIGITS = {pa.int32(): 10, pa.int64(): 20}
_INSTANT = pa.timestamp("us", "UTC")


def infer_type(texts: Sequence[str | None], *, enabled: bool = True, timestamp: pa.DataType = _INSTANT) -> pa.DataType:
    """Return the type that Spark infers for a partition column: the narrowest that fits all values, or string.

    Args:
        texts: the values as they are in directory names, escaped; None for null.
        enabled: Spark's ``spark.sql.sources.partitionColumnTypeInference.enabled``; if False, the type is always
            string.
        timestamp: the type of timestamps, which Spark takes from ``spark.sql.timestampType``.

    Returns:
        The type; the null type if there are only nulls.
    """
    kinds = {_infer_one(text, timestamp) if enabled else pa.string() for text in texts if text is not None}
    return functools.reduce(_wider, sorted(kinds, key=str)) if kinds else pa.null()


def _infer_one(text: str, timestamp: pa.DataType) -> pa.DataType:
    if _INTEGER.fullmatch(text):
        number = int(text)
        if -(2**31) <= number < 2**31:
            return pa.int32()
        if -(2**63) <= number < 2**63:
            return pa.int64()
    digits = _whole_digits(text)
    if digits is not None and digits <= _MOST_DIGITS:
        return pa.decimal128(digits, 0)
    if parse_float(text) is not None:
        return pa.float64()
    if _is_timestamp(_plain(text)):
        return timestamp
    return pa.date32() if _is_date(text) else pa.string()


def _plain(text: str) -> str:
    """Unescape colons, the only characters in a timestamp that directory names escape."""
    return text.replace("%3A", ":").replace("%3a", ":")


def _whole_digits(text: str) -> int | None:
    """Count the digits of a number without a fraction, as Java's BigDecimal does; None for any other text."""
    if not _SHORT_DECIMAL.fullmatch(text):
        return None
    _, digits, exponent = decimal.Decimal(text).as_tuple()
    if not isinstance(exponent, int) or exponent < 0:
        return None
    return len(digits) + exponent


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other:
        return one
    pair = {one, other}
    if pair == {pa.int32(), pa.float64()}:
        return pa.float64()
    if pa.float64() not in pair and all(kind in _DIGITS or pat.is_decimal(kind) for kind in pair):
        if pair == {pa.int32(), pa.int64()}:
            return pa.int64()
        return pa.decimal128(max(_DIGITS.get(kind) or kind.precision for kind in pair), 0)
    if all(pat.is_date32(kind) or pat.is_timestamp(kind) for kind in pair):
        return one if pat.is_timestamp(one) else other
    assert not is_string(one) or not is_string(other), "equal types are handled above"
    return pa.string()
