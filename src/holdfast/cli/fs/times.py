"""Parse times that users type."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import click

_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{3}(?:\d{3})?)?)?)?(?:Z|[+-]\d\d:\d\d)?")


def time_ms(text: str) -> int:
    """Parse a date or a time, in UTC if it has no zone, into milliseconds since the epoch.

    `click.option` uses this function as a type.
    """
    stripped = text.strip()
    try:
        if not _TIME.fullmatch(stripped):
            raise ValueError("not a time")
        found = datetime.fromisoformat(stripped.replace("Z", "+00:00"))
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is not a time: write 2013-01-31, 2013-01-31T12:00 or 2013-01-31T12:00:00+01:00"
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    return round(found.timestamp() * 1000)
