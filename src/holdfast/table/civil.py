"""Convert dates and local times to text and back like Spark, even outside Python's years 1 to 9999.

A date is a count of days and a local time a count of microseconds, both since 1970-01-01 in the Gregorian calendar,
which Spark extends to all years.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DAY_MICROS = 86_400_000_000
_CYCLE_DAYS = 146_097  # the calendar repeats every 400 years
_EPOCH_DAYS = 719_468  # from 0000-03-01 to 1970-01-01


def _days(year: int, month: int, day: int) -> int | None:
    """Return a date as a count of days, or None if the month has no such day."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not (1 <= month <= 12 and 1 <= day <= lengths[month - 1]):
        return None
    from_march = year - (month <= 2)  # in a year that starts in March, the leap day is the last day
    cycle, year_of_cycle = divmod(from_march, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return (
        cycle * _CYCLE_DAYS
        + year_of_cycle * 365
        + year_of_cycle // 4
        - year_of_cycle // 100
        + day_of_year
        - _EPOCH_DAYS
    )


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a count of days: the inverse of `_days`."""
    cycle, day_of_cycle = divmod(days + _EPOCH_DAYS, _CYCLE_DAYS)
    year = (day_of_cycle - day_of_cycle // 1460 + day_of_cycle // 36524 - day_of_cycle // 146_096) // 365
    day_of_year = day_of_cycle - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return cycle * 400 + year + (month >= 10), (month + 2) % 12 + 1, day


# --- to text ----------------------------------------------------------------------------------------------------------
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


# --- from text --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class LocalTime:
    """A parsed local time. `zone` is the time zone that the text contains; empty if it contains none."""

    micros: int
    zone: str


_DATE = r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?"
_DATE_ONLY = re.compile(_DATE)
_TIME = re.compile(
    _DATE + r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?)?[ ]?((?:[A-Za-z]|[+-][0-9]).*)?)?"
)


def parse_date(text: str) -> int | None:
    """Parse a date like Spark (``2026-1-2``, ``2026``) into a count of days; return None if the text is not a date.

    Unlike Spark, this function returns None for a date that is followed by a time of day.
    """
    found = _DATE_ONLY.fullmatch(text.strip())
    return None if found is None else _days(int(found[1]), int(found[2] or 1), int(found[3] or 1))


def parse_time(text: str) -> LocalTime | None:
    """Parse a timestamp like Spark; return None if the text is not one. Digits beyond the microsecond are cut off."""
    found = _TIME.fullmatch(text.strip())
    if found is None or len(found[1].lstrip("+-")) > 6 or (found[4] is not None and found[3] is None):
        return None
    days = _days(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    hour, minute, second = (int(found[group] or 0) for group in (4, 5, 6))
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((found[7] or "").ljust(6, "0")[:6])
    return LocalTime(days * DAY_MICROS + (hour * 3600 + minute * 60 + second) * 1_000_000 + fraction, found[8] or "")


# The patterns from which Spark infers the type of a directory's value: uuuu-MM-dd and uuuu-MM-dd HH:mm:ss[.S].
_YEAR = r"(?:-?[0-9]{4}|[+-][0-9]{5,7})"
_INFERRED_DATE = re.compile(_YEAR + r"-[0-9]{2}-[0-9]{2}")
_INFERRED_TIME = re.compile(_YEAR + r"-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9])?")


def is_date(text: str) -> bool:
    """Check whether Spark infers a date from the value in a directory name."""
    if not _INFERRED_DATE.fullmatch(text):
        return False
    days = parse_date(text)
    return days is not None and -(2**31) <= days < 2**31


def is_timestamp(text: str) -> bool:
    """Check whether Spark infers a timestamp from a directory name's value, which allows at most tenths of a second."""
    if not _INFERRED_TIME.fullmatch(text):
        return False
    found = parse_time(text)
    return found is not None and -(2**63) <= found.micros < 2**63
