"""Match the keys of JSON objects to field names: exactly if possible, else case-insensitively, as in other formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any


def speller(names: Sequence[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that renames the keys of an object to the names of the fields that they match.

    A key that equals a field's name belongs to that field, whatever other keys there are. If no key equals the name,
    which happens if the user's schema spells a field with different case, the key that differs only in case belongs to
    the field. Fields whose names differ from each other only in case match only their exact keys.

    The function raises ValueError if several keys of an object differ from a field's name only in case, because the
    match is ambiguous.
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
