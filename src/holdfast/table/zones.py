"""Convert between timestamps and local times of a time zone like Java, for every year that a timestamp can have.

Arrow's own conversion has no daylight saving time after 2037, and Python has no years after 9999. Zone rules repeat
with the calendar every 400 years, so a later timestamp is converted as in a year that Python supports.
"""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo

from holdfast.errors import InvalidRequestError
from holdfast.table.civil import DAY_MICROS

_EPOCH = datetime.datetime(1970, 1, 1)
_CYCLE_MICROS = 146_097 * DAY_MICROS
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
        utc = _known(instant).replace(tzinfo=datetime.timezone.utc)
        offset = utc.astimezone(self._rules).utcoffset()
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
        micros = _LAST + (micros - _LAST) % _CYCLE_MICROS
    return _EPOCH + datetime.timedelta(microseconds=max(micros, _FIRST))


_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
# java.time.ZoneId.SHORT_IDS, which Spark accepts.
_SHORT = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}


@functools.lru_cache(maxsize=64)
def find_zone(name: str) -> Zone:
    """Return the zone that Spark knows by a name: a region, an offset, or one of Java's short names.

    Raises:
        InvalidRequestError: the name is unknown.
    """
    name = _SHORT.get(name, name)
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
