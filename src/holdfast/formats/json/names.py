"""The keys of JSON objects against the names of fields: exactly, else without regard to case, as in other formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["speller"]


def speller(names: Sequence[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function from an object to one whose keys are spelled as the fields are.

    A key that is a field's name is that field's, whatever other keys there are. A schema that somebody gives may spell
    a field in another case: then its value is that of the key which differs in nothing else. Where several fields
    differ by case only, each has its own key and no other.

    The function raises ValueError for an object with several such keys: no one of them is the field's.
    """
    known = frozenset(names)
    many = Counter(name.lower() for name in names)
    folded = {name.lower(): name for name in names if many[name.lower()] == 1}

    def spelled(found: dict[str, Any]) -> dict[str, Any]:
        if known.issuperset(found) or found.keys() >= known:
            return found  # nearly always: nothing is left to look for
        others: dict[str, Any] = {}
        for key in found:
            name = folded.get(key.lower())
            if name is None or name in found:
                continue
            if name in others:
                raise ValueError(f"an object has several keys that differ from {name} by case only")
            others[name] = found[key]
        return {**found, **others} if others else found

    return spelled
