"""Parse and format single values as Spark does: numbers, dates, times and time zones, for every year that Spark has.

A date is a count of days, a time a count of microseconds, both since 1970-01-01 in the Gregorian calendar, which Spark
extends to all years. Arrow's own conversion has no daylight saving time after 2037, and Python no years after 9999; but
the rules of zones repeat with the calendar every 400 years.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import re
import struct
import zoneinfo
from typing import NamedTuple

from holdfast.errors import InvalidRequestError

DAY_MICROS = 86_400_000_000
BLANKS = "".join(map(chr, range(0x21)))
"""What Java's parsers strip."""
_CYCLE_DAYS = 146_097  # the calendar repeats every 400 years
_EPOCH_DAYS = 719_468  # from 0000-03-01 to 1970-01-01


# --- dates and times --------------------------------------------------------------------------------------------------
def _days(year: int, month: int, day: int) -> int | None:
    """Return a date as a count of days, or None if the month has no such day."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not (1 <= month <= 12 and 1 <= day <= lengths[month - 1]):
        return None
    cycle, year_of_cycle = divmod(year - (month <= 2), 400)  # in a year that starts in March, the leap day is the last
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days_of_years = year_of_cycle * 365 + year_of_cycle // 4 - year_of_cycle // 100
    return cycle * _CYCLE_DAYS + days_of_years + day_of_year - _EPOCH_DAYS


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a count of days: the inverse of `_days`."""
    cycle, day_of_cycle = divmod(days + _EPOCH_DAYS, _CYCLE_DAYS)
    year = (day_of_cycle - day_of_cycle // 1460 + day_of_cycle // 36524 - day_of_cycle // 146_096) // 365
    day_of_year = day_of_cycle - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return cycle * 400 + year + (month >= 10), (month + 2) % 12 + 1, day


def date_text(days: int) -> str:
    """Format a date: ``2026-01-02``. Years past 9999 have a sign, as in Java."""
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def time_text(micros: int) -> str:
    """Format a local time: ``2026-01-02 03:04:05.12``, without trailing zeros of the fraction."""
    days, rest = divmod(micros, DAY_MICROS)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{date_text(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


class LocalTime(NamedTuple):
    """A parsed local time.

    Attributes:
        micros: the time; digits beyond the microsecond are cut off.
        zone: the time zone that the text contains; empty if it contains none.
        is_cut: whether one of the digits cut off is not zero.
    """

    micros: int
    zone: str
    is_cut: bool


_DATE = r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?"
_DATE_ONLY = re.compile(_DATE)
_TIME = re.compile(
    _DATE + r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?)?(?: ?([A-Za-z+-][^ ]*))?)?"
)


def parse_date(text: str) -> int | None:
    """Parse a date like Spark (``2026-1-2``, ``2026``) into a count of days; return None if the text is not a date.

    Unlike Spark, this function returns None for a date that is followed by a time of day.
    """
    found = _DATE_ONLY.fullmatch(text.strip(BLANKS))
    return None if found is None else _days(int(found[1]), int(found[2] or 1), int(found[3] or 1))


def parse_time(text: str) -> LocalTime | None:
    """Parse a timestamp like Spark; return None if the text is not one."""
    found = _TIME.fullmatch(text.strip(BLANKS))
    if found is None or len(found[1].lstrip("+-")) > 6 or (found[4] is not None and found[3] is None):
        return None
    days = _days(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    hour, minute, second = (int(found[group] or 0) for group in (4, 5, 6))
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    digits = (found[7] or "").rstrip("0")
    micros = days * DAY_MICROS + (hour * 3600 + minute * 60 + second) * 1_000_000 + int(digits[:6].ljust(6, "0"))
    return LocalTime(micros, found[8] or "", len(digits) > 6)


# --- zones ------------------------------------------------------------------------------------------------------------
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
# Before the first of these times, every zone uses its local mean time; after the second, only repeating rules apply.
_FIRST = (datetime.datetime(1800, 1, 1) - _EPOCH) // _MICROSECOND
_LAST = (datetime.datetime(2400, 1, 1) - _EPOCH) // _MICROSECOND


class Zone:
    """One time zone.

    Args:
        rules: the zone's rules, which give its offset from UTC at each local time and each timestamp.
    """

    def __init__(self, rules: datetime.tzinfo) -> None:
        self._rules = rules

    def local(self, instant: int) -> int:
        """Return the local time of a timestamp; both are in microseconds since 1970-01-01."""
        offset = _known(instant).replace(tzinfo=datetime.timezone.utc).astimezone(self._rules).utcoffset()
        assert offset is not None, "rules with an offset for every instant"
        return instant + offset // _MICROSECOND

    def instant(self, local: int) -> int:
        """Return the timestamp of a local time.

        If the local time occurs twice, return the earlier timestamp. If it is skipped, return the timestamp that it
        would have if the clocks had not been changed yet. Java, and so Spark, does the same.
        """
        offset = _known(local).replace(tzinfo=self._rules).utcoffset()
        assert offset is not None, "rules with an offset for every local time"
        return local - offset // _MICROSECOND


def _known(micros: int) -> datetime.datetime:
    """Return a time that Python's datetime can represent, and at which zones have the same offset as at `micros`."""
    if micros >= _LAST:
        micros = _LAST + (micros - _LAST) % (_CYCLE_DAYS * DAY_MICROS)
    return _EPOCH + datetime.timedelta(microseconds=max(micros, _FIRST))


_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{1,2})(?::?([0-9]{1,2}))?)?")


@functools.lru_cache(maxsize=64)
def find_zone(name: str) -> Zone:
    """Return the zone of a name: a region or an offset.

    Raises:
        InvalidRequestError: the name is unknown. Java's short names, such as PST, are: Spark guesses what they mean.
    """
    if name in ("UTC", "GMT", "UT", "Z", "Etc/UTC"):  # needs no zone data
        return Zone(datetime.timezone.utc)
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.group(2, 3, 4))
        length = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes < 60 and seconds < 60 and length <= datetime.timedelta(hours=18):
            return Zone(datetime.timezone(-length if offset[1] == "-" else length))
    else:
        try:
            return Zone(zoneinfo.ZoneInfo(name))
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise InvalidRequestError(
        "no such time zone: set the session's time zone to a region such as Europe/Berlin", zone=name
    )


# --- numbers ----------------------------------------------------------------------------------------------------------
_FLOAT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX_FLOAT = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_FLOAT_WORD = re.compile(r"[+-]?(?:NaN|Infinity)")
_SPECIAL_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def parse_float(text: str) -> float | None:
    """Parse a text like Java's ``Double.parseDouble``; return None where the Java function throws."""
    text = text.strip(BLANKS)
    if _FLOAT_WORD.fullmatch(text):
        return float(text)
    if found := _FLOAT.fullmatch(text):
        return float(found[1])
    if not (found := _HEX_FLOAT.fullmatch(text)):
        return None
    try:
        return float.fromhex(found[1])
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def as_single(number: float) -> float:
    """Round a number to 32 bits; one that is too large becomes infinite."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


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
        exact = as_single(float(text)) if single else float(text)
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


_EXACT_DIGITS = 38
_WHOLE = re.compile(r"[+-]?0*([0-9]+)\.?", re.ASCII)
_DIGITS_OF_SINGLE = 9  # enough to distinguish any two 32-bit floats


def is_rounded(text: str, number: float, *, single: bool) -> bool:
    """Check whether storing a number in a float column would change the number.

    Args:
        text: the text of the number.
        number: the same number, parsed as a double.
        single: whether the float has 32 bits.
    """
    kept = as_single(number) if single else number
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
