"""Parse text into values like Spark's CSV and JSON readers.

This module accepts every text that Spark reads without loss. It rejects a text that Spark would change: an invalid
value (null in Spark), a decimal to be rounded, a timestamp to be truncated to microseconds, a date followed by
something that Spark drops, or a time to which Spark would add today's date. Nobody would notice the change.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.nesting import is_string
from holdfast.formats.spark.texts import BLANKS, as_single, find_zone, parse_date, parse_float, parse_time

_PLAIN_INTEGER = r"^[+-]?[0-9]+$"
_PLAIN_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_PLAIN_DECIMAL = r"^[+-]?[0-9]+(\.[0-9]+)?$"
_PLAIN_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_PLAIN_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_LATE = datetime.datetime(2037, 1, 1)  # from then on Arrow ignores daylight saving time
_PLAIN_ZONE = r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])"


# --- columns ----------------------------------------------------------------------------------------------------------
def parse_texts(texts: Any, kind: pa.DataType, column: str, time_zone: str) -> Any:
    """Parse a string array into an array of a type that CSV supports; null stays null.

    Args:
        texts: the string array.
        kind: the type of the result.
        column: the name of the column, for errors.
        time_zone: the zone of timestamps that do not contain one; empty if unknown.

    Raises:
        InvalidRequestError: a text is not a value of the type, or the conversion would lose information.
    """
    if is_string(kind):
        return texts.cast(kind)
    plain, cast = _plain(kind)
    if plain is not None:
        matching = pc.match_substring_regex(texts, plain)
        if pc.all(matching).as_py() in (True, None):  # None: all are null
            try:
                return cast(texts, time_zone)
            except (pa.ArrowInvalid, _Undecided):
                pass  # parse value by value: this finds the invalid value, or accepts values that pyarrow does not
    parse = text_parser(kind, time_zone)
    values: list[Any] = []
    for text in texts.to_pylist():
        try:
            values.append(None if text is None else parse(text))
        except ValueError as error:
            raise InvalidRequestError(
                f"{error}: correct the file or use another schema", column=column, type=str(kind), value=text[:80]
            ) from None
    return pa.array(values, kind)


class _Undecided(Exception):  # a signal within this module
    """Raised if the vectorized conversion cannot tell how Spark would read a text."""


def _plain(kind: pa.DataType) -> tuple[str | None, Callable[[Any, str], Any]]:
    """Return a pattern for the strings that pyarrow reads as Spark does, and the function that casts them."""

    def cast(texts: Any, _: str) -> Any:
        return pc.replace_substring_regex(texts, r"^\+", "").cast(kind)

    if pat.is_integer(kind):
        return _PLAIN_INTEGER, cast
    if pat.is_floating(kind):
        return _PLAIN_NUMBER, cast
    if pat.is_decimal(kind):
        return _PLAIN_DECIMAL, cast
    if pat.is_date(kind):
        return _PLAIN_DATE, cast
    if pat.is_boolean(kind):
        return r"^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$", lambda texts, _: pc.equal(pc.utf8_lower(texts), "true")
    if pat.is_timestamp(kind):
        if kind.tz is None:
            return _PLAIN_TIME + "$", cast
        return _PLAIN_TIME + r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])?$", lambda texts, zone: _cast_instants(
            texts, kind, zone
        )
    return None, cast


def _cast_instants(texts: Any, kind: pa.DataType, time_zone: str) -> Any:
    zoned = pc.match_substring_regex(texts, _PLAIN_ZONE + "$")
    nothing = pa.scalar(None, pa.string())
    instants = pc.if_else(zoned, texts, nothing).cast(pa.timestamp("us", "UTC"))
    if pc.all(zoned).as_py() in (True, None):
        return instants.cast(kind)
    if not time_zone:
        raise _Undecided
    local = pc.if_else(zoned, nothing, texts).cast(pa.timestamp("us"))
    if pc.any(pc.greater_equal(local, _LATE)).as_py():
        raise _Undecided
    try:
        placed = pc.assume_timezone(local, time_zone, ambiguous="earliest", nonexistent="raise")
    except (pa.ArrowInvalid, pa.ArrowKeyError, KeyError) as error:
        raise _Undecided from error
    return pc.coalesce(instants, placed.cast(pa.timestamp("us", "UTC"))).cast(kind)


# --- values -----------------------------------------------------------------------------------------------------------
def text_parser(kind: pa.DataType, time_zone: str) -> Callable[[str], Any]:
    """Return a function that parses one text into a value that `pa.array` accepts for the type.

    The function raises ValueError with a reason.
    """
    if is_string(kind):
        return lambda text: text
    if pat.is_integer(kind):
        return lambda text: _integer(text, kind)
    if pat.is_floating(kind):
        return lambda text: double_value(text, single=pat.is_float32(kind))
    if pat.is_decimal(kind):
        return lambda text: decimal_value(text, kind)
    if pat.is_boolean(kind):
        return _boolean
    if pat.is_date(kind):
        return date_days
    if pat.is_timestamp(kind):
        zone = None if kind.tz is None else time_zone
        return lambda text: timestamp_micros(text, zone)
    return _never


def _never(text: str) -> Any:
    raise ValueError("the column's type has no values")


def _boolean(text: str) -> bool:
    word = text.lower()
    if word not in ("true", "false"):
        raise ValueError("not true or false")
    return word == "true"


def _integer(text: str, kind: pa.DataType) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        raise ValueError("not a whole number")
    number = int(text)
    if not -(1 << (kind.bit_width - 1)) <= number < 1 << (kind.bit_width - 1):
        raise ValueError("a number is too large for the column")
    return number


_NAMED = {"Inf": "inf", "-Inf": "-inf"}


def double_value(text: str, *, single: bool = False) -> float:
    """Parse a number as Java's Double.parseDouble does, and also Spark's words for the infinities."""
    number = float(_NAMED[text]) if text in _NAMED else parse_float(text)
    if number is None:
        raise ValueError("not a number")
    return as_single(number) if single else number


_BIG_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_EXACT = decimal.Context(prec=200, traps=[])


def decimal_value(text: str, kind: pa.DataType) -> decimal.Decimal:
    """Parse a decimal number; commas between digits are ignored, as in Spark."""
    bare = text.replace(",", "")
    if _BIG_DECIMAL.fullmatch(bare) is None:
        raise ValueError("not a decimal number")
    return fit_decimal(decimal.Decimal(bare), kind)


def fit_decimal(number: decimal.Decimal, kind: pa.DataType) -> decimal.Decimal:
    """Return the number with the scale of a decimal type, or raise ValueError if it does not fit exactly."""
    if not number:
        return decimal.Decimal(0)
    if number.adjusted() >= kind.precision - kind.scale:
        raise ValueError("a number is too large for the column")
    whole = number.quantize(decimal.Decimal(1).scaleb(-kind.scale), context=_EXACT)
    if whole != number:
        raise ValueError("a number has more digits than the column stores")
    return whole


# --- dates and timestamps ---------------------------------------------------------------------------------------------
_MIDNIGHT = re.compile(r"^([+-]?[0-9]+-[0-9]+-[0-9]+)[ T]00?:00(?::00(?:\.0*)?)?Z?$")


def date_days(text: str) -> int:
    """Parse a date as Spark does (``2020-01-31``, ``2020-1-31``, ``2020-1``, ``2020``) into days since 1970-01-01."""
    days = parse_date(_MIDNIGHT.sub(r"\1", text.strip(BLANKS)))
    if days is None:
        raise ValueError("not a date, or a date that does not exist")
    return days


def timestamp_micros(text: str, time_zone: str | None) -> int:
    """Parse a timestamp as Spark does, into microseconds since 1970: a date, optionally with a time and a zone.

    Args:
        text: the timestamp.
        time_zone: the zone of a text that does not contain one; empty if unknown; None to parse a local time, without
            zones.
    """
    found = parse_time(text)
    if found is None:
        raise ValueError("not a timestamp, or a time that does not exist")
    if found.is_cut:
        raise ValueError("a timestamp is more precise than microseconds")
    micros = found.micros
    if time_zone is None:
        if found.zone:
            raise ValueError("a timestamp has a time zone, but the column's type has none")
    elif not (found.zone or time_zone):
        raise ValueError("a timestamp has no time zone (set the option timeZone, or use holdfast.read)")
    else:
        try:
            micros = find_zone(found.zone or time_zone).instant(micros)
        except InvalidRequestError:
            raise ValueError("no such time zone") from None
    if not -(1 << 63) <= micros < 1 << 63:
        raise ValueError("a timestamp is out of range")
    return micros
