"""Linearizability: can a history be put into one order, within real time, in which a sequential model says the same?

A history is taken apart key by key. Where the operations of a key turn out to be those of a register of which each
value is written once, `registers` decides at once. Else the search takes, again and again, one of the operations that
may come next: those before whose invocation no other open one had ended. What was tried is remembered as (operations
taken, state of the model): two orders of the same operations that lead to the same state have the same future. A read
that fits is taken at once, since nothing gets better by waiting, and where one waits for what nobody brings any more,
the search turns back. An operation whose outcome nobody knows may be taken
at any time after its invocation, with any answer, or not at all; one that has failed is left out. The search is
exponential in the operations that overlap; where it would take too long it is given up, and nobody knows.

Sources: Wing, Gong, "Testing and Verifying Concurrent Objects", JPDC 1993; Lowe, "Testing for linearizability", CCPE
2017, section 2 (what was tried is remembered); Herlihy, Wing, "Linearizability", TOPLAS 1990, section 3 (a history is
linearizable iff it is so key by key; every part from its start on is, too); Gibbons, Korach: see `registers`.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from holdfast.checker.histories.history import Operation, Outcome, history_of
from holdfast.checker.histories.registers import as_register, reachable
from holdfast.checker.kernel.canonical import canonical
from holdfast.checker.kernel.world import Property, View

__all__ = ["PLACES_LIMIT", "Answer", "Model", "Verdict", "judge_linearizable", "linearizable_property"]

PLACES_LIMIT = 200_000
"""Places of one search, each a set of operations that were taken and a state: seconds, and 50 MB."""

_TOLD = 8
"""Of operations that can be explained, and of answers that there could have been, so many are told."""


class Answer(enum.Enum):
    """Whether there is an order."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer, and in words why it is not yes."""

    answer: Answer
    words: str = ""


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


def judge_linearizable(operations: Sequence[Operation], model: Model, *, limit: int = PLACES_LIMIT) -> Verdict:
    """Whether the history is linearizable; else which operation cannot be placed, and which answers it could have had.

    Guarantee: yes and no are exact. Memory and time of a key grow linearly with its operations if it is a register of
    which each value is written once, and else, up to `limit`, with the sets of operations that may have been taken at
    one time: exponentially in those that overlap, among which those of unknown outcome always are.

    Args:
        limit: places of each search of an order of one key; beyond it the answer is unknown.
    """
    parts: dict[Hashable, list[Operation]] = {}
    for operation in operations:
        if operation.outcome is not Outcome.FAILED:
            parts.setdefault(model.key_of(operation), []).append(operation)
    verdicts = [_judge(_Part(part, model, limit)) for part in parts.values()]
    worst = (Answer.NO, Answer.UNKNOWN)
    return next((one for answer in worst for one in verdicts if one.answer is answer), Verdict(Answer.YES))


# --- one key ----------------------------------------------------------------------------------------------------------
_Order = list[tuple[Operation, object]]
"""Operations with the model's answers."""


class _GivenUpError(Exception):
    """A search came to too many places."""


class _Part:
    """The operations of one key."""

    def __init__(self, operations: list[Operation], model: Model, limit: int) -> None:
        self.operations = operations
        self.model = model
        self._limit = limit
        states = reachable(model.initial, operations, model.apply)
        self._register = None if states is None else as_register(model.initial, operations, model.apply, states)
        self._states = states or {model.initial}
        self._reads = [
            states is not None and all(model.apply(state, one)[0] == state for state in states) for one in operations
        ]

    def core(self, history: Sequence[Operation | None]) -> tuple[Operation, ...] | None:
        """Operations that have no order, none if they are not known one by one; None if all have one.

        Raises:
            _GivenUpError: it would take too long.
        """
        if self._register is not None:
            return self._register.with_history(history).contradiction()
        return () if self.find_order(history) is None else None

    def answers(self, history: Sequence[Operation | None], number: int) -> list[object]:
        """What the operation of this number could have answered; some if they are many."""
        found: dict[Hashable, object] = {}
        last = history[number]
        assert last is not None
        if self._register is not None:
            for state in self._states:
                answer = self.model.apply(state, last)[1]
                other = [*history[:number], replace(last, value=answer), *history[number + 1 :]]
                if len(found) < _TOLD and self.core(other) is None:
                    found[canonical(answer)] = answer
        else:
            while len(found) < _TOLD and (order := self.find_order(history, number, frozenset(found))) is not None:
                answer = next(answer for one, answer in order if one is last)
                found[canonical(answer)] = answer
        return list(found.values())

    def find_order(
        self, history: Sequence[Operation | None], free: int = -1, except_for: frozenset[Hashable] = frozenset()
    ) -> _Order | None:
        """An order of the operations with the model's answers, or None.

        Args:
            free: the operation of this number may have any answer but those of `except_for`.

        Raises:
            _GivenUpError: it would take too long.
        """
        # Reads are tried first, then who ends first. Of reads of unknown outcome there is nothing to know.
        numbers = [
            number
            for number, one in enumerate(history)
            if one is not None and not (self._reads[number] and one.outcome is not Outcome.OK)
        ]
        numbers.sort(key=lambda number: (not self._reads[number], _end(history[number])))
        those = [one for number in numbers if (one := history[number]) is not None]
        reads = [self._reads[number] for number in numbers]
        search = _Search(those, self.model, reads, self._states, self._limit)
        return search.order(numbers.index(free) if free >= 0 else -1, except_for)


def _end(operation: Operation | None) -> float:
    return math.inf if operation is None or operation.ended is None else operation.ended


@dataclass(slots=True)
class _Search:
    """A search for an order, in depth."""

    operations: Sequence[Operation]
    model: Model
    reads: Sequence[bool]
    states: AbstractSet[Hashable]
    limit: int

    def order(self, free: int, except_for: frozenset[Hashable]) -> _Order | None:
        operations = self.operations
        bits = [1 << index for index in range(len(operations))]
        sure = [one.outcome is Outcome.OK for one in operations]
        earlier = [
            sum(bits[n] for n, them in enumerate(operations) if sure[n] and them.precedes(one)) for one in operations
        ]
        expected = [canonical(one.value) for one in operations]
        needed = sum(bit for bit, is_sure in zip(bits, sure, strict=True) if is_sure)

        def fits(index: int, answer: object) -> bool:
            if index == free:
                return canonical(answer) not in except_for
            return not sure[index] or canonical(answer) == expected[index]

        wanted = self._wanted(fits, free)

        def is_dead_end(taken: int, state: Hashable) -> bool:
            """Somebody has still to read what is not there and nobody brings it any more."""
            return any(not taken & bit and state not in good and not sources & ~taken for bit, good, sources in wanted)

        tried: set[tuple[int, Hashable]] = {(0, self.model.initial)}
        order: _Order = []
        stack = [(0, self.model.initial, 0)]  # taken, state, the next to try
        while stack:
            taken, state, index = stack.pop()
            if taken & needed == needed:
                return order
            if index == len(operations):
                if order:
                    order.pop()
                continue
            stack.append((taken, state, index + 1))
            if taken & bits[index] or earlier[index] & ~taken:
                continue
            after, answer = self.model.apply(state, operations[index])
            place = (taken | bits[index], after)
            if fits(index, answer) and place not in tried:
                tried.add(place)
                if len(tried) > self.limit:
                    raise _GivenUpError
                if is_dead_end(*place):
                    continue
                order.append((operations[index], answer))
                if self.reads[index]:
                    stack[-1] = (taken, state, len(operations))  # nothing gets better by reading later
                stack.append((*place, 0))
        return None

    def _wanted(self, fits: Callable[[int, object], bool], free: int) -> list[tuple[int, AbstractSet[Hashable], int]]:
        """Of each read its bit, the states in which it fits, and the operations (as bits) that may lead to one."""
        apply, operations = self.model.apply, self.operations
        leads: list[AbstractSet[Hashable]] = [
            set() if self.reads[n] else {apply(state, one)[0] for state in self.states}
            for n, one in enumerate(operations)
        ]
        found: list[tuple[int, AbstractSet[Hashable], int]] = []
        for n, one in enumerate(operations):
            if self.reads[n] and n != free:
                good = {state for state in self.states if fits(n, apply(state, one)[1])}
                found.append((1 << n, good, sum(1 << other for other, to in enumerate(leads) if to & good)))
        return found


# --- words ------------------------------------------------------------------------------------------------------------
def _judge(part: _Part) -> Verdict:
    operations = part.operations
    try:
        if part.core(operations) is None:
            return Verdict(Answer.YES)
        ends = [number for number, one in enumerate(operations) if one.outcome is Outcome.OK]
        ends.sort(key=lambda number: (operations[number].ended, operations[number].invoked))
        # Once there is no order there is none later.
        count = bisect_left(
            range(len(ends)), True, key=lambda n: part.core(_until(operations, ends[: n + 1])) is not None
        )
        return Verdict(Answer.NO, _tell(part, _until(operations, ends[: count + 1]), ends[count]))
    except _GivenUpError:
        words = (
            f"nobody knows whether {len(operations)} operations have an order: so many overlap that it takes too long"
        )
        return Verdict(Answer.UNKNOWN, words)


def _until(operations: Sequence[Operation], ended: Sequence[int]) -> list[Operation | None]:
    """The history up to the end of the last of these: what had not ended by then is open."""
    last, known = operations[ended[-1]], frozenset(ended)
    assert last.ended is not None
    return [
        None
        if one.invoked >= last.ended
        else (one if number in known else replace(one, ended=None, outcome=Outcome.UNKNOWN, value=None))
        for number, one in enumerate(operations)
    ]


def _tell(part: _Part, history: list[Operation | None], number: int) -> str:
    """Without the end of the last one the history has an order, so the last one could have had an answer."""
    last, core = history[number], part.core(history)
    could = " or ".join(sorted(map(repr, part.answers(history, number))))
    if core:
        others = "; ".join(str(one) for one in core if one is not last) or "nobody"
        rest = f"it has no place beside these: {others}" if others != "nobody" else "nobody had begun to write that"
    else:
        order = part.find_order(history, number) or []
        before = [str(one) for one, _answer in order if one is not last]
        rest = f"explained: {'; '.join([*(['…'] if len(before) > _TOLD else []), *before[-_TOLD:]]) or 'nothing'}"
    return f"{last} cannot have been: after what had ended before, it could have answered {could} ({rest})"


def linearizable_property(
    *,
    name: str = "N4",
    model: Model,
    history_of: Callable[[View], Sequence[Operation]] = history_of,
    limit: int = PLACES_LIMIT,
) -> Property:
    """The history of a world is linearizable. Judged whenever it has grown; equal histories are judged once.

    Where nobody knows, it is said to be broken, and the words say why: what was not judged does not hold.
    """
    known: dict[Hashable, str | None] = {}

    def step(before: View, after: View, actor: str) -> str | None:
        operations = tuple(history_of(after))
        if operations == tuple(history_of(before)):
            return None
        key = canonical(operations)
        if key not in known:
            known[key] = judge_linearizable(operations, model, limit=limit).words or None
        return known[key]

    return Property(
        name=name,
        title="linearizable",
        meaning="Every operation takes effect at one instant between its invocation and its end.",
        step=step,
    )
