"""Say what some history of a world must reach: a world in which nothing happens violates nothing."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast_checker.framework.subject import Goal
from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.transactions.goals import CRASHED, of_operations


def _is_refused(operation: Operation) -> bool:
    return isinstance(operation.value, str) and operation.value.endswith("Error")


GOALS: Mapping[str, Goal] = {
    "all": of_operations(
        "every call does what it is asked for",
        lambda operations: all(
            one.name == "collect" or (one.outcome is Outcome.OK and not _is_refused(one)) for one in operations
        ),
    ),
    "refused": of_operations(
        "a call is refused, because another one was first", lambda operations: any(map(_is_refused, operations))
    ),
    "crashed": CRASHED,
    "unknown": of_operations(
        "the outcome of a call stays unknown to its caller",
        lambda operations: any(one.outcome is Outcome.UNKNOWN and one.name != "collect" for one in operations),
    ),
}
"""By name."""
