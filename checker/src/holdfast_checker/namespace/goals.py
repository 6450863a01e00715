"""Say what some history of a world must reach: a world in which nothing happens violates nothing."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.transactions.goals import CRASHED, Goal


def _is_refused(operation: Operation) -> bool:
    return isinstance(operation.value, str) and operation.value.endswith("Error")


GOALS: Mapping[str, Goal] = {
    "all": Goal(
        "every call does what it is asked for",
        lambda operations, view: all(
            one.name == "collect" or (one.outcome is Outcome.OK and not _is_refused(one)) for one in operations
        ),
    ),
    "refused": Goal(
        "a call is refused, because another one was first",
        lambda operations, view: any(map(_is_refused, operations)),
    ),
    "crashed": CRASHED,
    "unknown": Goal(
        "the outcome of a call stays unknown to its caller",
        lambda operations, view: any(one.outcome is Outcome.UNKNOWN and one.name != "collect" for one in operations),
    ),
}
"""By name."""
