"""Check that each unit of work has taken effect exactly once, given the committed effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effect:
    """One committed effect of a unit of work.

    Attributes:
        unit: the job and an explicit id of the unit within the job; never a position in an order that may change.
        by: name of the process that committed the effect, for messages.
    """

    unit: Hashable
    by: str = ""


def describe_repeated_units(effects: Iterable[Effect]) -> list[str]:
    """Describe each unit that has more than one committed effect, which is never allowed (T2); empty if none has."""
    listed = list(effects)
    counts = Counter(effect.unit for effect in listed)
    return [
        f"unit {unit!r} took effect {count} times: by {', then '.join(e.by for e in listed if e.unit == unit)}"
        for unit, count in counts.items()
        if count > 1
    ]


def describe_unmatched_units(units: Iterable[Hashable], effects: Iterable[Effect]) -> list[str]:
    """Describe units without an effect, and effects without a unit; after a success there must be neither (T2)."""
    wanted, there = dict.fromkeys(units), list(effects)
    done = {effect.unit for effect in there}
    found = [f"unit {unit!r} did not take effect" for unit in wanted if unit not in done]
    return found + [f"unit {e.unit!r} does not exist, and {e.by} committed it" for e in there if e.unit not in wanted]


def describe_false_progress(claimed: AbstractSet[Hashable], effects: Iterable[Effect]) -> list[str]:
    """Describe how a record of progress contradicts the committed effects (T9); an empty list if it does not.

    Args:
        claimed: the units that are done according to the record, so that a retry would skip them. If the record is a
            count n, it claims the first n units, which is wrong as soon as one of them was deferred.
    """
    done = {effect.unit for effect in effects}
    found = [
        f"progress says that unit {unit!r} is done, and it did not take effect" for unit in _sort_units(claimed - done)
    ]
    return found + [f"unit {unit!r} took effect, and progress does not show it" for unit in _sort_units(done - claimed)]


def _sort_units(units: Iterable[Hashable]) -> list[Hashable]:
    return sorted(units, key=repr)
