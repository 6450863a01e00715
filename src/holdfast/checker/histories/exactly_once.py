"""Exactly-once units: each unit of a job has one committed effect, whatever is retried, twinned or replayed.

What was promised is looked at where it counts: in the effects that the store holds, not in what anybody was told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from holdfast.checker.kernel.world import Property, View

__all__ = ["Effect", "exactly_once_property", "progress_property", "what_is_missing", "what_is_repeated", "what_strays"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One committed effect of a unit.

    Attributes:
        unit: job and explicit id, never the place in an order that may change.
        by: who committed it, for the words.
    """

    unit: Hashable
    by: str = ""


def what_is_repeated(effects: Iterable[Effect]) -> list[str]:
    """Units with more than one effect, in words. Never allowed, not for a moment (T2)."""
    listed = list(effects)
    counts = Counter(effect.unit for effect in listed)
    return [
        f"unit {unit!r} has taken effect {count} times: by {', then '.join(e.by for e in listed if e.unit == unit)}"
        for unit, count in counts.items()
        if count > 1
    ]


def what_is_missing(units: Iterable[Hashable], effects: Iterable[Effect]) -> list[str]:
    """Units without an effect, and effects of no unit, in words: not allowed once the job was called a success (T2)."""
    wanted, there = dict.fromkeys(units), list(effects)
    done = {effect.unit for effect in there}
    found = [f"unit {unit!r} has not taken effect" for unit in wanted if unit not in done]
    return found + [f"there is no unit {e.unit!r}, and {e.by} committed one" for e in there if e.unit not in wanted]


def what_strays(claimed: AbstractSet[Hashable], effects: Iterable[Effect]) -> list[str]:
    """Where a record of progress and the committed effects differ (T9).

    Args:
        claimed: the units that the record says are done: those that a retry would leave out. A record that is a count
            claims the units below it, and so says more than it knows as soon as one unit was put off.
    """
    done = {effect.unit for effect in effects}
    found = [
        f"progress says that unit {unit!r} is done, and it has not taken effect" for unit in _in_order(claimed - done)
    ]
    return found + [
        f"unit {unit!r} has taken effect, and progress does not know it" for unit in _in_order(done - claimed)
    ]


def _in_order(units: Iterable[Hashable]) -> list[Hashable]:
    return sorted(units, key=repr)


def exactly_once_property(
    *,
    name: str = "T2",
    units: Iterable[Hashable],
    effects_of: Callable[[View], Iterable[Effect]],
    is_success: Callable[[View], bool],
) -> Property:
    """No unit ever has two effects, and when the job was called a success each has one.

    Calls that change effects, or what `is_success` looks at, have to be observed.
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
    """What progress says is done is what has taken effect, at every time: see `what_strays`.

    Calls that change either have to be observed.
    """

    def step(before: View, after: View, actor: str) -> str | None:
        return "; ".join(what_strays(claimed_of(after), effects_of(after))) or None

    return Property(
        name=name,
        title="progress is a set",
        meaning="The record of progress names the units that have taken effect, these and no others.",
        step=step,
    )
