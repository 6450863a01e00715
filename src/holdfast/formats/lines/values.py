"""Parse text into values like Spark's CSV and JSON readers.

This module accepts every text that Spark reads without loss. It rejects a text that Spark would change: an invalid
value (null in Spark), a decimal to be rounded, a timestamp to be truncated to microseconds, a date followed by
something that Spark drops, or a time to which Spark would add today's date. Nobody would notice the change.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import struct
import zoneinfo
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.types import is_string

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


_NAMED = {"NaN": "nan", "Inf": "inf", "-Inf": "-inf"}
_JAVA_NUMBER = re.compile(r"([+-]?)(NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_JAVA_HEX = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)
_JAVA_BLANKS = "".join(chr(code) for code in range(0x21))


def double_value(text: str, *, single: bool = False) -> float:
    """Parse a number as Java's Double.parseDouble does, and also Spark's words for NaN and the infinities."""
    if text in _NAMED:
        return float(_NAMED[text])
    bare = text.strip(_JAVA_BLANKS)
    found = _JAVA_NUMBER.fullmatch(bare)
    if found is not None:
        word = found[2]
        number = float(found[1] + (word if word in ("NaN", "Infinity") else word.rstrip("fFdD")))
    elif _JAVA_HEX.fullmatch(bare) is not None:
        number = float.fromhex(bare.rstrip("fFdD") if "p" in bare.lower() else bare)
    else:
        raise ValueError("not a number")
    if not single or number != number or number in (float("inf"), float("-inf")):
        return number
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


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
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T]00?:00(?::00(?:\.0*)?)?Z?)?)?)?", re.ASCII)
_TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?(?: ?([A-Za-z+-][^ ]*))?)?)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2})(?::?(\d{1,2}))?)?", re.ASCII)
_SECONDS_OF_DAY = 86400


def _days(sign: str, year: str, month: str | None, day: str | None) -> int:
    """Return the days since 1970-01-01 in the proleptic Gregorian calendar."""
    y, m, d = int(sign + year), int(month or 1), int(day or 1)
    leap = y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not (1 <= m <= 12 and 1 <= d <= lengths[m - 1]):
        raise ValueError("the date does not exist")
    y -= m <= 2
    era, year_of_era = divmod(y, 400)
    day_of_year = (153 * ((m + 9) % 12) + 2) // 5 + d - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def date_days(text: str) -> int:
    """Parse a date as Spark does (``2020-01-31``, ``2020-1-31``, ``2020-1``, ``2020``) into days since 1970-01-01."""
    found = _DATE.fullmatch(text.strip(_JAVA_BLANKS))
    if found is None:
        raise ValueError("not a date")
    return _days(*found.groups())


def timestamp_micros(text: str, time_zone: str | None) -> int:
    """Parse a timestamp as Spark does, into microseconds since 1970: a date, optionally with a time and a zone.

    Args:
        text: the timestamp.
        time_zone: the zone of a text that does not contain one; empty if unknown; None to parse a local time, without
            zones.
    """
    found = _TIMESTAMP.fullmatch(text.strip(_JAVA_BLANKS))
    if found is None:
        raise ValueError("not a timestamp")
    sign, year, month, day, hour, minute, second, fraction, zone = found.groups()
    digits = (fraction or "").rstrip("0")
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        raise ValueError("the time does not exist")
    if len(digits) > 6:
        raise ValueError("a timestamp is more precise than microseconds")
    days = _days(sign, year, month, day)
    seconds = days * _SECONDS_OF_DAY + h * 3600 + m * 60 + s
    if time_zone is None:
        if zone is not None:
            raise ValueError("a timestamp has a time zone, but the column's type has none")
    elif zone is None and not time_zone:
        raise ValueError("a timestamp has no time zone (set the option timeZone, or use holdfast.read)")
    else:
        seconds -= _offset_seconds(zone or time_zone, seconds)
    micros = seconds * 1_000_000 + int(digits.ljust(6, "0"))
    if not -(1 << 63) <= micros < 1 << 63:
        raise ValueError("a timestamp is out of range")
    return micros


def _offset_seconds(zone: str, local_seconds: int) -> int:
    """Return a zone's offset east of UTC at a local time.

    A local time that occurs twice has the first of its two offsets; one that is skipped has the offset before the gap.
    """
    if zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    found = _OFFSET.fullmatch(zone)
    if found is not None:
        sign, hours, minutes, seconds = found.groups()
        offset = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        if offset > 18 * 3600 or int(minutes or 0) > 59 or int(seconds or 0) > 59:
            raise ValueError("no such time zone")
        return -offset if sign == "-" else offset
    days, seconds_of_day = divmod(local_seconds, _SECONDS_OF_DAY)
    # Spark's calendar has more years than Python's. Zone rules repeat every 400 years, and nothing changes before 1900.
    first, last = datetime.date(1, 1, 2).toordinal() - 719163, datetime.date(9998, 12, 31).toordinal() - 719163
    days = first if days < first else days if days <= last else days - ((days - last) // 146097 + 1) * 146097
    local = datetime.datetime(1970, 1, 1) + datetime.timedelta(days=days, seconds=seconds_of_day)
    offset_then = local.replace(tzinfo=_zone(zone)).utcoffset()
    assert offset_then is not None, "a ZoneInfo always has an offset"
    return offset_then.days * _SECONDS_OF_DAY + offset_then.seconds


@lru_cache(maxsize=64)
def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("no such time zone") from None


_EXACT_DIGITS = 38
_WHOLE = re.compile(r"[+-]?0*([0-9]+)\.?", re.ASCII)
_DIGITS_OF_SINGLE = 9  # enough to distinguish any two 32-bit floats
_SURELY_DOUBLE, _SURELY_SINGLE = 15, 7  # all whole numbers with so many digits are exact in a float of 64 or 32 bits


def is_rounded(text: str, number: float, *, single: bool) -> bool:
    """Check whether storing a number in a float column would change the number.

    Args:
        text: the text of the number.
        number: the same number, parsed as a double.
        single: whether the float has 32 bits.
    """
    kept = _as_single(number) if single else number
    whole = _WHOLE.fullmatch(text)
    if whole is not None and len(whole[1]) <= _EXACT_DIGITS:
        return not math.isfinite(kept) or int(kept) != int(text.rstrip("."))
    if kept == number or math.isnan(number):
        return False
    if math.isinf(kept):
        return True
    said = decimal.Decimal(repr(number)).normalize()
    digits = len(said.as_tuple().digits)
    return digits > _DIGITS_OF_SINGLE or decimal.Context(prec=digits).create_decimal_from_float(kept) != said


def _as_single(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def refuse_rounded(texts: Any, doubles: Any, kind: pa.DataType, column: str) -> None:
    """Check that a float type preserves the numbers in a column of strings.

    Args:
        texts: a string array.
        doubles: the same values as doubles.
        kind: a float type.
        column: the name of the column, for the error.

    Raises:
        InvalidRequestError: a number would be rounded; the error contains it.
    """
    single = pat.is_float32(kind)
    surely = pc.match_substring_regex(texts, rf"^[+-]?[0-9]{{1,{_SURELY_SINGLE if single else _SURELY_DOUBLE}}}$")
    others = pc.invert(pc.match_substring_regex(texts, r"^[+-]?[0-9]+\.?$"))
    if single:
        shown = doubles.cast(pa.float32(), safe=False).cast(pa.string())
        others = pc.and_(others, pc.equal(shown, doubles.cast(pa.string())))
    surely = pc.or_(surely, others)
    unsure = pc.invert(pc.fill_null(surely, True))
    for text, number in zip(texts.filter(unsure).to_pylist(), doubles.filter(unsure).to_pylist(), strict=True):
        if is_rounded(text, number, single=single):
            raise InvalidRequestError(
                "the column's type rounds a number: correct the file or use another schema",
                column=column,
                type=str(kind),
                value=text[:80],
            )
