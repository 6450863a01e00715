"""Say what some history of a world must reach: a world in which nothing happens violates nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from holdfast_checker.histories.history import HISTORY, Operation, Outcome, history_of
from holdfast_checker.histories.undone import end_of_crashes, of_clients
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.transactions.scripts import FAILED


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that a history may reach.

    Attributes:
        meaning: what is reached, in a few words.
        holds: whether the end of a history shows it, given its operations, if the world records any.
    """

    meaning: str
    holds: Callable[[Sequence[Operation], View], bool]


def _value(operation: Operation) -> tuple[object, ...]:
    return cast("tuple[object, ...]", operation.value) if operation.outcome is Outcome.OK else ("",)


def _steps(operation: Operation) -> tuple[object, ...]:
    return cast("tuple[object, ...]", operation.notes[-1]) if operation.notes else ()


CRASHED = Goal(
    "a crash undoes what had an answer, and somebody goes on",
    lambda operations, view: any(one.invoked > end_of_crashes(history_of(view)) > 0 for one in operations),
)

GOALS: Mapping[str, Goal] = {
    "all": Goal(
        "every transaction takes effect",
        lambda operations, view: all(
            any(one.who == who and _value(one)[0] == "saw" and FAILED not in _steps(one) for one in operations)
            for who in {one.who for one in operations}
        ),
    ),
    "conflict": Goal(
        "an attempt conflicts, and a later one of the same transaction takes effect",
        lambda operations, view: any(
            one.outcome is Outcome.FAILED and one.notes and any(_value(it)[0] == "saw" for it in operations[at:])
            for at, one in enumerate(operations)
        ),
    ),
    "done": Goal(
        "a transaction is told that it took effect before",
        lambda operations, view: any(_value(one)[0] == "done" for one in operations),
    ),
    "unknown": Goal(
        "the outcome of a transaction stays unknown to its caller",
        lambda operations, view: any(one.outcome is Outcome.UNKNOWN for one in operations),
    ),
    "crashed": CRASHED,
    "error": Goal(
        "the error of a function reaches its caller",
        lambda operations, view: any(_value(one)[0] == "saw" and FAILED in _steps(one) for one in operations),
    ),
    "given-up": Goal(
        "a transaction is given up after its last attempt",
        lambda operations, view: any(
            one.outcome is Outcome.FAILED and not any(it.who == one.who for it in operations[at + 1 :])
            for at, one in enumerate(operations)
        ),
    ),
}
"""By name."""


@dataclass(slots=True)
class GoalTracker:
    """Notes which goals the histories of a world reach, as a property that is never violated.

    Args:
        wanted: the goals that must be reached.
        goals: the goals that there are, by name.
    """

    wanted: tuple[str, ...]
    reached: set[str] = field(default_factory=set)
    goals: Mapping[str, Goal] = field(default_factory=lambda: GOALS)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name in self.wanted if name not in self.reached)

    def watching(self) -> Property:
        """Return the property, which has no title because nobody needs to hear of it."""

        def end(view: View) -> None:
            operations = of_clients(history_of(view)) if HISTORY in view.states else ()
            self.reached |= {name for name in self.missing if self.goals[name].holds(operations, view)}

        return Property(name="goals", title="", meaning="", end=end)
