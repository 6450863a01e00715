"""From the calendar of Spark before 3.0 into today's: dates before 1582-10-15, instants before 1900.

Old Spark and Hive counted days in the hybrid calendar, Julian before 1582-10-15. What they wrote names the same day and
time of day for people only if its year, month and day are taken from that calendar and counted again in the proleptic
Gregorian one. Instants also go through their zone's clock, which Java's old calendar did not know before 1900.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import UnsupportedError
from holdfast.formats.calendars.zones import ZoneHistory, zone_history

__all__ = ["rebase_dates", "rebase_instants"]

_DAY_US = 86_400_000_000
_GREGORIAN_FROM_DAY = -141_427  # 1582-10-15, since 1970-01-01
_LAST_SHIFT_US = -2_208_988_800_000_000  # 1900-01-01T00:00:00Z: from then on both calendars agree in every zone

# Years are counted from March, so that a leap day ends its year, and from far back, so that no number is negative: four
# years of 365.25 days each, and a whole number of the Gregorian calendar's 400 years.
_YEARS_BACK = 6_000_000
_DAYS_BACK = _YEARS_BACK * 1461 // 4 + 719_470  # from the Julian 1 March of the year 0 to 1970-01-01
_FIXED_ZONE = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d))?(?::?(\d\d))?")


def rebase_dates(dates: Any) -> Any:
    """Dates of the hybrid calendar (date32) as the same year, month and day of the Gregorian one.

    29 February of a year that has none there becomes 1 March, as in Spark.
    """
    days = dates.cast(pa.int32()).cast(pa.int64())
    if not _any_before(days, _GREGORIAN_FROM_DAY):
        return dates
    return _regarded_as_gregorian(days).cast(pa.int32()).cast(pa.date32())


def rebase_instants(instants: Any, zone: str | None) -> Any:
    """Instants that went through the old calendar as those that show the same date and time in `zone`.

    Args:
        instants: timestamps in microseconds.
        zone: where they were written, None if their file does not tell.

    Raises:
        UnsupportedError: an instant before 1900 needs a zone that is not told or not known.
    """
    micros = instants.cast(pa.int64())
    if not _any_before(micros, _LAST_SHIFT_US):
        return instants
    history = _history(zone)
    old_clock = pc.add(micros, history.offset_s * 1_000_000)
    days = _floor_divide(old_clock, _DAY_US)
    moved_us = pc.multiply(pc.subtract(_regarded_as_gregorian(days), days), _DAY_US)
    shift_us: Any = pa.scalar(history.shift_s * 1_000_000, pa.int64())
    for start_s, shift_s in history.later_shifts:
        later = pc.greater_equal(micros, start_s * 1_000_000)
        shift_us = pc.if_else(later, pa.scalar(shift_s * 1_000_000, pa.int64()), shift_us)
    return pc.add(micros, pc.add(moved_us, shift_us)).cast(instants.type)


def _any_before(values: Any, limit: int) -> bool:
    least = pc.min(values).as_py()
    return least is not None and least < limit


def _history(zone: str | None) -> ZoneHistory:
    if zone is None:
        raise UnsupportedError(
            "instants before 1900 of an old Spark need the time zone of their writer, which the file does not tell: "
            "write them again with Spark 3.1 or later, or leave the column out"
        )
    found = zone_history(zone)
    if found is not None:
        return found
    fixed = _FIXED_ZONE.fullmatch(zone)
    if fixed is None:
        raise UnsupportedError(
            "instants before 1900 were written in a time zone that is not known here: "
            "write them again with Spark in another zone, or leave the column out",
            zone=zone,
        )
    hours, minutes, seconds = (int(part or 0) for part in fixed.groups()[1:])
    ahead_s = 3600 * hours + 60 * minutes + seconds
    return ZoneHistory(-ahead_s if fixed.group(1) == "-" else ahead_s, 0, ())


def _regarded_as_gregorian(days: Any) -> Any:
    """Days of the hybrid calendar, int64, as the days that have the same names in the Gregorian one."""
    from_march = pc.add(days, _DAYS_BACK)
    years = pc.divide(pc.add(pc.multiply(from_march, 4), 3), 1461)
    # What the Gregorian calendar left out by then, less the two days that it started ahead.
    left_out = pc.subtract(pc.subtract(pc.divide(years, 100), pc.divide(years, 400)), _YEARS_BACK * 3 // 400 + 2)
    return pc.if_else(pc.less(days, _GREGORIAN_FROM_DAY), pc.subtract(days, left_out), days)


def _floor_divide(values: Any, divisor: int) -> Any:
    """Arrow's division rounds towards zero."""
    quotient = pc.divide(values, divisor)
    return pc.if_else(pc.less(values, pc.multiply(quotient, divisor)), pc.subtract(quotient, 1), quotient)
