"""Match the keys of JSON objects to field names: exactly if possible, else case-insensitively, as in other formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["speller"]


def speller(names: Sequence[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that spells the keys of an object like the fields.

    A key that equals a field's name belongs to that field, whatever other keys there are. A given schema may spell a
    field in another case: then the field's value is that of the key that differs only by case. Fields that differ from
    each other only by case match only their exact keys.

    The function raises ValueError if several keys of an object differ from a field only by case, because the match is
    ambiguous.
    """
    known = frozenset(names)
    many = Counter(name.lower() for name in names)
    folded = {name.lower(): name for name in names if many[name.lower()] == 1}

    def spelled(found: dict[str, Any]) -> dict[str, Any]:
        if known.issuperset(found) or found.keys() >= known:
            return found  # the usual case: nothing to rename
        others: dict[str, Any] = {}
        for key in found:
            name = folded.get(key.lower())
            if name is None or name in found:
                continue
            if name in others:
                raise ValueError(f"an object has several keys that differ from {name} only by case")
            others[name] = found[key]
        return {**found, **others} if others else found

    return spelled
