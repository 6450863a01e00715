"""Say what some history of a world must reach: a world in which nothing happens violates nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from holdfast_checker.framework.subject import Goal
from holdfast_checker.histories.history import Operation, Outcome, operations_in
from holdfast_checker.histories.undone import end_of_crashes, of_clients
from holdfast_checker.kernel.world import View
from holdfast_checker.transactions.scripts import FAILED


def of_operations(meaning: str, holds: Callable[[Sequence[Operation]], bool]) -> Goal:
    """Return the goal that the operations of the clients show at the end of a history."""
    return Goal(meaning, end=lambda context, view: holds(of_clients(operations_in(view))))


def _goes_on_after_a_crash(context: object, view: View) -> bool:
    operations = operations_in(view)
    return any(one.invoked > end_of_crashes(operations) > 0 for one in of_clients(operations))


CRASHED = Goal("a crash undoes what had an answer, and a client goes on", end=_goes_on_after_a_crash)


def _value(operation: Operation) -> tuple[object, ...]:
    return cast("tuple[object, ...]", operation.value) if operation.outcome is Outcome.OK else ("",)


def _steps(operation: Operation) -> tuple[object, ...]:
    return cast("tuple[object, ...]", operation.notes[-1]) if operation.notes else ()


GOALS: Mapping[str, Goal] = {
    "all": of_operations(
        "every transaction takes effect",
        lambda operations: all(
            any(one.who == who and _value(one)[0] == "saw" and FAILED not in _steps(one) for one in operations)
            for who in {one.who for one in operations}
        ),
    ),
    "conflict": of_operations(
        "an attempt conflicts, and a later one of the same transaction takes effect",
        lambda operations: any(
            one.outcome is Outcome.FAILED and one.notes and any(_value(it)[0] == "saw" for it in operations[at:])
            for at, one in enumerate(operations)
        ),
    ),
    "done": of_operations(
        "a transaction is told that it took effect before",
        lambda operations: any(_value(one)[0] == "done" for one in operations),
    ),
    "unknown": of_operations(
        "the outcome of a transaction stays unknown to its caller",
        lambda operations: any(one.outcome is Outcome.UNKNOWN for one in operations),
    ),
    "crashed": CRASHED,
    "error": of_operations(
        "the error of a function reaches its caller",
        lambda operations: any(_value(one)[0] == "saw" and FAILED in _steps(one) for one in operations),
    ),
    "given-up": of_operations(
        "a transaction is given up after its last attempt",
        lambda operations: any(
            one.outcome is Outcome.FAILED and not any(it.who == one.who for it in operations[at + 1 :])
            for at, one in enumerate(operations)
        ),
    ),
}
"""By name."""
