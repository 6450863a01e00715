"""Numbers with their nouns, for the sentences of every layer."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str, plural: str = "") -> str:
    """E.g. ``1 job``, ``2 jobs``, ``1,000 histories``; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
