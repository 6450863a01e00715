"""Check that each unit of a job has exactly one committed effect, whatever is retried, duplicated or replayed.

A *unit* is a piece of work that must take effect once, such as one task's rows or one file to move.

The check inspects the effects in the store, not the replies that actors got.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from holdfast_checker.kernel.world import Property, View


@dataclass(frozen=True, slots=True)
class Effect:
    """One committed effect of a unit.

    Attributes:
        unit: the job and an explicit id of the unit within the job; never a position in an order that may change.
        by: who committed the effect, for messages.
    """

    unit: Hashable
    by: str = ""


def what_is_repeated(effects: Iterable[Effect]) -> list[str]:
    """Describe units with more than one effect, which is never allowed, not even temporarily (T2)."""
    listed = list(effects)
    counts = Counter(effect.unit for effect in listed)
    return [
        f"unit {unit!r} took effect {count} times: by {', then '.join(e.by for e in listed if e.unit == unit)}"
        for unit, count in counts.items()
        if count > 1
    ]


def what_is_missing(units: Iterable[Hashable], effects: Iterable[Effect]) -> list[str]:
    """Describe units without an effect, and effects without a unit. Neither is allowed after a success (T2)."""
    wanted, there = dict.fromkeys(units), list(effects)
    done = {effect.unit for effect in there}
    found = [f"unit {unit!r} did not take effect" for unit in wanted if unit not in done]
    return found + [f"unit {e.unit!r} does not exist, and {e.by} committed it" for e in there if e.unit not in wanted]


def what_strays(claimed: AbstractSet[Hashable], effects: Iterable[Effect]) -> list[str]:
    """Describe how a record of progress differs from the committed effects (T9).

    Args:
        claimed: the units that are done according to the record, so that a retry would skip them. If the record is a
            count n, it claims the first n units, which is wrong as soon as one of them was deferred.
    """
    done = {effect.unit for effect in effects}
    found = [
        f"progress says that unit {unit!r} is done, and it did not take effect" for unit in _in_order(claimed - done)
    ]
    return found + [f"unit {unit!r} took effect, and progress does not show it" for unit in _in_order(done - claimed)]


def _in_order(units: Iterable[Hashable]) -> list[Hashable]:
    return sorted(units, key=repr)


def exactly_once_property(
    *,
    name: str = "T2",
    units: Iterable[Hashable],
    effects_of: Callable[[View], Iterable[Effect]],
    is_success: Callable[[View], bool],
) -> Property:
    """Return the property that no unit ever has two effects, and that each has one when the job has succeeded.

    `World.observed` must include every call that changes the effects, or what `is_success` inspects.
    """
    wanted = tuple(units)

    def step(before: View, after: View, actor: str) -> str | None:
        effects = list(effects_of(after))
        found = what_is_repeated(effects)
        if is_success(after):
            found += what_is_missing(wanted, effects)
        return "; ".join(found) or None

    return Property(
        name=name,
        title="exactly once",
        meaning="Each unit of a successful job has taken effect once; no unit of any job ever takes effect twice.",
        step=step,
    )


def progress_property(
    *,
    name: str = "T9",
    claimed_of: Callable[[View], AbstractSet[Hashable]],
    effects_of: Callable[[View], Iterable[Effect]],
) -> Property:
    """Return the property that the record of progress always equals the committed effects: see `what_strays`.

    `World.observed` must include every call that changes the record or the effects.
    """

    def step(before: View, after: View, actor: str) -> str | None:
        return "; ".join(what_strays(claimed_of(after), effects_of(after))) or None

    return Property(
        name=name,
        title="progress is a set",
        meaning="The record of progress names the units that have taken effect, these and no others.",
        step=step,
    )
