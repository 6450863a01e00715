"""Build phrases that messages of every layer use: counts with their nouns, suggestions of similar names, advice.

`is_unicode` checks whether a text can be stored at all, and `parse_digits` reads numbers that are written in digits.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

OR_OVERWRITE = "or use mode overwrite, which deletes all that is there"
"""The end of a sentence that refuses a write because of what the destination holds."""

_FEW = 12  # the most names that a reader takes in at a glance


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun, e.g. ``1 job``, ``2 jobs``; pass `plural` if adding an s is wrong."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def is_unicode(text: str) -> bool:
    """Check whether a text can be encoded as UTF-8, that is, contains no lone surrogates.

    Python puts surrogates in place of undecodable bytes in names of files, in arguments and in environment variables.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_digits(text: str, most_digits: int = 20) -> int | None:
    """Return the number that a text of ASCII digits gives; None for another text, or for more digits.

    `int` accepts signs, spaces and other digits too, and fails for thousands of digits.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= most_digits else None


def format_percent(share: float) -> str:
    """Format a share from 0 to 1 as a percentage, rounded down, so that only 1 is ``100%``."""
    return f"{math.floor(100 * share)}%"


def suggest_nearest(name: str, known: Iterable[str], *, listed_by: str = "") -> str:
    """Return a clause for an error message that suggests the known names most similar to an unknown one.

    If no name is similar, the clause lists all known names or, if there are more than a dozen, names the command that
    does, or else the three that differ least.
    """
    folded: dict[str, str] = {}
    for one in sorted(known):
        folded.setdefault(one.lower(), one)
    near = difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(folded[one] for one in near)
    if len(folded) <= _FEW:
        return "use one of " + ", ".join(folded.values())
    if listed_by:
        return f"{listed_by} shows the {len(folded)} known names"
    least_far = difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.0)
    return f"use one of the {len(folded)} known names, such as " + ", ".join(folded[one] for one in least_far)
