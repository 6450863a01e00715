"""Linearizability: can a history be put into one order, within real time, in which a sequential model says the same?

The search takes, again and again, one of the operations that may come next: those before whose invocation no other open
one had ended. What was tried is remembered as (operations taken, state of the model): two orders of the same operations
that lead to the same state have the same future. An operation whose outcome nobody knows may be taken at any time after
its invocation, with any answer, or not at all; one that has failed is left out.

Sources: Wing, Gong, "Testing and Verifying Concurrent Objects", JPDC 1993; Lowe, "Testing for linearizability", CCPE
2017, section 2 (what was tried is remembered); Herlihy, Wing, "Linearizability", TOPLAS 1990, section 3 (a history is
linearizable iff it is so key by key; every part from its start on is, too).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from holdfast.checker.kernel.canonical import canonical
from holdfast.checker.kernel.history import Operation, Outcome, history_of
from holdfast.checker.kernel.world import Property, View
from holdfast.errors import InvalidRequestError

__all__ = ["OPERATIONS_LIMIT", "Model", "explain_linearizable", "linearizable_property"]

OPERATIONS_LIMIT = 64
"""Operations of one key. The search may take time that is exponential in how many of them overlap."""

_TOLD = 8
"""Of the operations that can be explained, so many are told: the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What operations do, one after the other.

    Attributes:
        initial: the state before the first operation.
        apply: the state and the answer after an operation. Pure, and defined for every operation in every state:
            an error is an answer. It may look at what was asked, not at what was answered.
        key_of: splits a history into parts that have nothing to do with each other, each with a model of its own.
    """

    initial: Hashable
    apply: Callable[[Hashable, Operation], tuple[Hashable, object]]
    key_of: Callable[[Operation], Hashable] = lambda operation: None


def explain_linearizable(operations: Sequence[Operation], model: Model, *, limit: int = OPERATIONS_LIMIT) -> str | None:
    """None if the history is linearizable; else which operation cannot be placed, and which answers it could have had.

    Guarantee: exact, in both directions. Memory and time grow with the number of sets of operations that may have been
    taken at one time: exponential in the operations that overlap, among which those of unknown outcome always are.

    Raises:
        InvalidRequestError: one key has more operations than `limit`: take shorter histories or smaller keys.
    """
    parts: dict[Hashable, list[Operation]] = {}
    for operation in operations:
        if operation.outcome is not Outcome.FAILED:
            parts.setdefault(model.key_of(operation), []).append(operation)
    for key, part in parts.items():
        if len(part) > limit:
            raise InvalidRequestError(
                "the history has too many operations to be put in order: take shorter histories or smaller keys",
                key=key,
                operations=len(part),
                limit=limit,
            )
    return next((words for part in parts.values() if (words := _explain(part, model))), None)


def _explain(operations: list[Operation], model: Model) -> str | None:
    if _find_order(operations, model, None) is not None:
        return None
    ends = sorted((one for one in operations if one.outcome is Outcome.OK), key=lambda one: (one.ended, one.invoked))
    for count, last in enumerate(ends, start=1):
        prefix = _until(operations, ends[:count], last)
        if _find_order(prefix, model, None) is None:
            return _tell(prefix, model, last)
    raise AssertionError("a history that has no order has a first operation that cannot be placed")


def _until(operations: list[Operation], ended: list[Operation], last: Operation) -> list[Operation]:
    """The history up to the end of `last`: what had not ended by then is open."""
    assert last.ended is not None
    known = set(map(id, ended))
    return [
        one if id(one) in known else replace(one, ended=None, outcome=Outcome.UNKNOWN, value=None)
        for one in operations
        if one.invoked < last.ended
    ]


def _tell(prefix: list[Operation], model: Model, last: Operation) -> str:
    """The prefix without the end of `last` has an order, so `last` could have had an answer."""
    answers: dict[Hashable, object] = {}
    before: list[Operation] = []
    while (order := _find_order(prefix, model, last, frozenset(answers))) is not None:
        before = before or [one for one, _answer in order if one is not last]
        answer = next(answer for one, answer in order if one is last)
        answers[canonical(answer)] = answer
    could = " or ".join(sorted(map(repr, answers.values())))
    rest = "; ".join([*(["…"] if len(before) > _TOLD else []), *map(str, before[-_TOLD:])]) or "nothing"
    return f"{last} cannot have been: after what had ended before, it could have answered {could} (explained: {rest})"


def _find_order(
    operations: list[Operation], model: Model, free: Operation | None, except_for: frozenset[Hashable] = frozenset()
) -> list[tuple[Operation, object]] | None:
    """An order of the operations with the model's answers, or None.

    Args:
        free: this one may have any answer but those of `except_for`.
    """
    bits = [1 << index for index in range(len(operations))]
    earlier = [
        sum(bits[other] for other, them in enumerate(operations) if them.precedes(one) and them.outcome is Outcome.OK)
        for one in operations
    ]
    expected = [canonical(one.value) for one in operations]
    needed = sum(bit for bit, one in zip(bits, operations, strict=True) if one.outcome is Outcome.OK)
    tried = {(0, model.initial)}
    order: list[tuple[Operation, object]] = []
    stack = [(0, model.initial, 0)]  # taken, state, the next to try
    while stack:
        taken, state, index = stack.pop()
        if taken & needed == needed:
            return order
        if index == len(operations):
            if order:
                order.pop()
            continue
        stack.append((taken, state, index + 1))
        one = operations[index]
        if taken & bits[index] or earlier[index] & ~taken:
            continue
        after, answer = model.apply(state, one)
        if one is free:
            fits = canonical(answer) not in except_for
        else:
            fits = one.outcome is not Outcome.OK or canonical(answer) == expected[index]
        place = (taken | bits[index], after)
        if fits and place not in tried:
            tried.add(place)
            order.append((one, answer))
            stack.append((*place, 0))
    return None


def linearizable_property(
    *,
    name: str = "N4",
    model: Model,
    history_of: Callable[[View], Sequence[Operation]] = history_of,
    limit: int = OPERATIONS_LIMIT,
) -> Property:
    """The history of a world is linearizable. Judged whenever it has grown; equal histories are judged once."""
    known: dict[Hashable, str | None] = {}

    def step(before: View, after: View, actor: str) -> str | None:
        operations = tuple(history_of(after))
        if operations == tuple(history_of(before)):
            return None
        key = canonical(operations)
        if key not in known:
            known[key] = explain_linearizable(operations, model, limit=limit)
        return known[key]

    return Property(
        name=name,
        title="linearizable",
        meaning="Every operation takes effect at one instant between its invocation and its end.",
        step=step,
    )
