"""Take integers of numpy for what they are, as in columns of a frame."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex


def integer_of(given: object) -> int | None:
    """Return an integer of any library as Python's, whose sums do not leave a range; None if it is none, or a bool."""
    try:
        if not isinstance(given, bool) and isinstance(given, SupportsIndex):
            return index(given)
    except TypeError:  # an array of several numbers, or of floats
        pass
    return None
