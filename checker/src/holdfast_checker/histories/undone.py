"""Judge histories on a database that crashes, and then has forgotten what it had acknowledged.

Operations that began before a crash was over may be undone, although their callers were told of their success, and
live on. What a crash takes away are the newest commits; so of each caller, operations that follow each other are
undone. The others, and all that began later, must have an order as if the undone ones had never been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import cast

from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.histories.linearizable import Model, is_linearizable, judge_linearizable

CRASH = "crash"
"""The name of an operation that marks a crash: see `history.mark`. Its argument is how many commits were lost."""


def of_clients(operations: Sequence[Operation]) -> list[Operation]:
    """Return operations without the marks of crashes."""
    return [one for one in operations if one.name != CRASH]


def crashes_in(operations: Sequence[Operation]) -> list[Operation]:
    """Return the marks of crashes that have lost commits."""
    return [one for one in operations if one.name == CRASH]


def end_of_crashes(operations: Sequence[Operation]) -> int:
    """Return the position after which no crash loses commits; -1 if none does."""
    return max((one.ended or 0 for one in crashes_in(operations)), default=-1)


def judge_with_crashes(
    operations: Sequence[Operation],
    crashes: Sequence[Operation],
    model: Model,
    undone: Callable[[Operation], Operation | None] = lambda operation: None,
) -> str:
    """Return why operations have no order, whichever of them are undone; empty if they have one.

    Args:
        operations: without the marks of crashes.
        crashes: these marks.
        undone: returns what remains of an operation that is undone, such as what its caller still believes.
    """
    if not crashes:
        return judge_linearizable(operations, model).words
    count = sum(cast("int", one.args[0]) for one in crashes)

    def likelihood(lost: frozenset[int]) -> tuple[int, int]:
        """Put those first that are as many as the lost commits, and of them the newest."""
        return abs(len(lost) - count), -sum(operations[number].invoked for number in lost)

    def without(lost: frozenset[int]) -> list[Operation]:
        left = (undone(one) if number in lost else one for number, one in enumerate(operations))
        return [one for one in left if one is not None]

    losses = sorted(_losses(operations, end_of_crashes(crashes)), key=likelihood)
    if any(is_linearizable(without(lost), model) for lost in losses):
        return ""
    those = ", ".join(model.tell(operations[number]) for number in sorted(losses[0])) or "nothing"
    words = judge_linearizable(without(losses[0]), model).words
    return f"whichever operations the crash has undone; if it has undone {those}: {words}"


def _losses(operations: Sequence[Operation], end: int) -> Iterator[frozenset[int]]:
    """Yield the sets of operations that may be undone, by their numbers."""
    of_each: dict[str, list[int]] = {}
    for number, one in enumerate(operations):
        if one.invoked <= end and one.outcome is Outcome.OK:
            of_each.setdefault(one.who, []).append(number)
    for way in product(*(_runs(numbers) for numbers in of_each.values())):
        yield frozenset(number for run in way for number in run)


def _runs(numbers: Sequence[int]) -> list[Sequence[int]]:
    """Return all parts of a sequence without gaps, also the empty one."""
    count = len(numbers)
    return [(), *(numbers[first:end] for first in range(count) for end in range(first + 1, count + 1))]
