"""Rebase dates before 1582-10-15 and timestamps before 1900 from the calendar of Spark before 3.0.

Old Spark and Hive used the hybrid calendar, which is Julian before 1582-10-15. To preserve the year, month and day that
users see, stored values are converted to these fields with the hybrid calendar, and back with the proleptic Gregorian
one. Timestamps also depend on the offset of their time zone, for which Java's old calendar used different values before
1900.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import UnsupportedError
from holdfast.formats.calendars.zones import ZoneHistory, fixed_offset_s, zone_history

_DAY_US = 86_400_000_000
_GREGORIAN_FROM_DAY = -141_427  # 1582-10-15, since 1970-01-01
_LAST_SHIFT_US = -2_208_988_800_000_000  # 1900-01-01T00:00:00Z: from then on both calendars agree in all zones

# Years start in March, so that a leap day is the last day of its year, and the epoch is so early that no number is
# negative. The offset is a multiple of four Julian years and of the Gregorian calendar's 400 years.
_YEARS_BACK = 6_000_000
_DAYS_BACK = _YEARS_BACK * 1461 // 4 + 719_470  # from the Julian 1 March of the year 0 to 1970-01-01


@dataclass(frozen=True, slots=True)
class FileCalendars:
    """Which values of a file use the hybrid calendar, according to the metadata that Spark writes.

    If a file has no such metadata, its values are not converted; this is also Spark's default.

    Attributes:
        old_dates: whether dates, and timestamps other than INT96, use the hybrid calendar.
        old_int96: whether INT96 timestamps use the hybrid calendar.
        zone: the time zone of the writer; None if the file does not contain it.
    """

    old_dates: bool
    old_int96: bool
    zone: str | None

    @classmethod
    def of(cls, notes: Mapping[bytes, bytes]) -> FileCalendars:
        version = notes.get(b"org.apache.spark.version")
        if version is None:
            return cls(False, False, None)
        zone = notes.get(b"org.apache.spark.timeZone")
        return cls(  # Spark compares versions as text, too
            version < b"3.0.0" or b"org.apache.spark.legacyDateTime" in notes,
            version < b"3.1.0" or b"org.apache.spark.legacyINT96" in notes,
            None if zone is None else zone.decode(),
        )


def rebase_dates(dates: Any) -> Any:
    """Convert dates of the hybrid calendar (date32) to the same year, month and day in the Gregorian one.

    As in Spark, 29 February becomes 1 March in years that are not leap years in the Gregorian calendar.
    """
    days = dates.cast(pa.int32()).cast(pa.int64())
    if not _any_before(days, _GREGORIAN_FROM_DAY):
        return dates
    return _regarded_as_gregorian(days).cast(pa.int32()).cast(pa.date32())


def rebase_instants(instants: Any, zone: str | None) -> Any:
    """Convert timestamps written with the old calendar so that they still show the same date and time in `zone`.

    Args:
        instants: timestamps in microseconds.
        zone: the time zone of the writer; None if the file does not contain it.

    Raises:
        UnsupportedError: a timestamp is before 1900, and the zone is missing or unknown.
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
            "timestamps before 1900 from an old Spark need the time zone of their writer, which the file lacks: "
            "rewrite them with Spark 3.1 or later, or leave the column out"
        )
    found = zone_history(zone)
    if found is not None:
        return found
    offset_s = fixed_offset_s(zone)
    if offset_s is None:
        raise UnsupportedError(
            "timestamps before 1900 were written in an unknown time zone: "
            "rewrite them with Spark in another zone, or leave the column out",
            zone=zone,
        )
    return ZoneHistory(offset_s, 0, ())


def _regarded_as_gregorian(days: Any) -> Any:
    """Convert days (int64) to those that have the same year, month and day in the Gregorian calendar."""
    from_march = pc.add(days, _DAYS_BACK)
    years = pc.divide(pc.add(pc.multiply(from_march, 4), 3), 1461)
    # The days that the Gregorian calendar had skipped by then, minus its initial lead of two days.
    left_out = pc.subtract(pc.subtract(pc.divide(years, 100), pc.divide(years, 400)), _YEARS_BACK * 3 // 400 + 2)
    return pc.if_else(pc.less(days, _GREGORIAN_FROM_DAY), pc.subtract(days, left_out), days)


def _floor_divide(values: Any, divisor: int) -> Any:
    """Divide and round down; Arrow's own division rounds towards zero."""
    quotient = pc.divide(values, divisor)
    return pc.if_else(pc.less(values, pc.multiply(quotient, divisor)), pc.subtract(quotient, 1), quotient)
