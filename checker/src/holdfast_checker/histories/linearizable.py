"""Check linearizability: in some order, consistent with real time, a sequential model gives the same answers.

A history is divided by key. If a key is a register to which each value is written only once, `registers` decides
directly. Otherwise a depth-first search repeatedly takes an operation that may come next: one that was invoked before
any other remaining operation ended. Each visited place is remembered as (operations taken, state of the model), because
two orders of the same operations that lead to the same state have the same future. A read whose answer fits is taken
immediately, since it cannot help to take it later. The search backtracks if a read waits for a value that no remaining
operation writes. An operation of unknown outcome may be taken at any time after its invocation, with any answer, or not
at all; a failed operation is left out. The search is exponential in the number of overlapping operations. If it takes
too long, it stops, and the answer is unknown.

Sources: Wing, Gong, "Testing and Verifying Concurrent Objects", JPDC 1993; Lowe, "Testing for linearizability", CCPE
2017, section 2 (remembering visited places); Herlihy, Wing, "Linearizability", TOPLAS 1990, section 3 (a history is
linearizable if and only if its part for each key is; then every prefix is, too); Gibbons, Korach: see `registers`.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import product
from typing import cast

from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.histories.registers import as_register, reachable
from holdfast_checker.kernel.calls import canonical

PLACES_LIMIT = 200_000
"""Maximum number of pairs (operations taken, state) in one search; so many take seconds, and 50 MB."""

_TOLD = 8
"""Maximum number of operations, and of possible answers, that a message lists."""


class Answer(enum.Enum):
    """The answer to the question whether an order exists."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer and, if it is not yes, an explanation."""

    answer: Answer
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A sequential model: it says what operations do if they run one after another.

    Attributes:
        initial: the state before the first operation.
        apply: returns the state and the answer after an operation. The function is pure, and defined for every
            operation in every state: an error counts as an answer. It may inspect the operation's arguments, but not
            its answer.
        key_of: returns the key of an operation; operations with different keys are independent, and each key has its
            own model.
        tell, tell_answer: put an operation and an answer into words.
        is_small: whether to list the states to which the operations can lead before the search, which is faster if
            there are few of them, and necessary to recognize registers.
    """

    initial: Hashable
    apply: Callable[[Hashable, Operation], tuple[Hashable, object]]
    key_of: Callable[[Operation], Hashable] = lambda operation: None
    is_small: bool = True
    tell: Callable[[Operation], str] = str
    tell_answer: Callable[[object], str] = repr


def judge_linearizable(operations: Sequence[Operation], model: Model, *, limit: int = PLACES_LIMIT) -> Verdict:
    """Judge whether a history is linearizable; if not, name an operation that fits nowhere, and answers that would fit.

    Guarantee: the answers yes and no are exact.

    If a key is a register to which each value is written only once, time and memory are linear in its operations.
    Otherwise, up to `limit`, they are exponential in the number of overlapping operations. An operation of unknown
    outcome overlaps with all later ones.

    Args:
        limit: maximum number of search states (sets of operations done so far, and the model's state) for each key;
            beyond it the answer is unknown.
    """
    verdicts = [_judge(part) for part in _parts(operations, model, limit)]
    worst = (Answer.NO, Answer.UNKNOWN)
    return next((one for answer in worst for one in verdicts if one.answer is answer), Verdict(Answer.YES))


def is_linearizable(operations: Sequence[Operation], model: Model, *, limit: int = PLACES_LIMIT) -> bool:
    """Check whether a history is known to be linearizable: like `judge_linearizable`, but without an explanation."""
    try:
        return all(part.core(part.operations) is None for part in _parts(operations, model, limit))
    except _GivenUpError:
        return False


def _parts(operations: Sequence[Operation], model: Model, limit: int) -> list[_Part]:
    """Return the operations on each key, without those that failed."""
    parts: dict[Hashable, list[Operation]] = {}
    for operation in operations:
        if operation.outcome is not Outcome.FAILED:
            parts.setdefault(model.key_of(operation), []).append(operation)
    return [_Part(part, model, limit) for part in parts.values()]


# --- one key ----------------------------------------------------------------------------------------------------------
_Order = list[tuple[Operation, object]]
"""Operations in an order, each with the model's answer."""


class _GivenUpError(Exception):
    """Raised when a search has visited more pairs (operations taken, state) than the limit allows."""


class _Part:
    """The operations on one key."""

    def __init__(self, operations: list[Operation], model: Model, limit: int) -> None:
        self.operations = operations
        self.model = model
        self._limit = limit
        states = reachable(model.initial, operations, model.apply) if model.is_small else None
        self._register = None if states is None else as_register(model.initial, operations, model.apply, states)
        self._states = states or {model.initial}
        self._reads = [
            states is not None and all(model.apply(state, one)[0] == state for state in states) for one in operations
        ]

    def core(self, history: Sequence[Operation | None]) -> tuple[Operation, ...] | None:
        """Return None if the history has an order; if not, the operations that have none, or () if these are not known.

        Raises:
            _GivenUpError: the search takes too long.
        """
        if self._register is not None:
            return self._register.with_history(history).contradiction()
        return () if self.find_order(history) is None else None

    def answers(self, history: Sequence[Operation | None], number: int) -> list[object]:
        """Return what the operation with this number could have answered; only some if there are many answers."""
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
        """Return an order of the operations with the model's answers, or None.

        Args:
            free: the operation with this number may have any answer except those in `except_for`.

        Raises:
            _GivenUpError: the search takes too long.
        """
        # Reads are tried first, then operations by their end. A read of unknown outcome proves nothing, so it is left
        # out.
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
    """A depth-first search for an order."""

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
            """Check whether a read that was not taken needs a value that no remaining operation writes."""
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
                    stack[-1] = (taken, state, len(operations))  # reading later improves nothing
                stack.append((*place, 0))
        return None

    def _wanted(self, fits: Callable[[int, object], bool], free: int) -> list[tuple[int, AbstractSet[Hashable], int]]:
        """Return each read's bit, the states in which its answer fits, and the operations (bits) that lead there."""
        if not any(self.reads):
            return []
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
        # If a prefix has no order, no longer prefix has one.
        count = bisect_left(
            range(len(ends)), True, key=lambda n: part.core(_until(operations, ends[: n + 1])) is not None
        )
        return Verdict(Answer.NO, _tell(part, _until(operations, ends[: count + 1]), ends[count]))
    except _GivenUpError:
        many = f"unknown whether {len(operations)} operations have an order"
        return Verdict(Answer.UNKNOWN, f"{many}: so many overlap that the search takes too long")


def _until(operations: Sequence[Operation], ended: Sequence[int]) -> list[Operation | None]:
    """Cut the history after the last end of the operations `ended`; all operations not in `ended` become unknown."""
    last, known = operations[ended[-1]], frozenset(ended)
    assert last.ended is not None
    return [
        None
        if one.invoked >= last.ended
        else (one if number in known else replace(one, ended=None, outcome=Outcome.UNKNOWN, value=None))
        for number, one in enumerate(operations)
    ]


def _tell(part: _Part, history: list[Operation | None], number: int) -> str:
    """Describe the last operation, and the answers with which the history would have an order."""
    last, core = history[number], part.core(history)
    assert last is not None, "it has ended"
    tell = part.model.tell
    could = " or ".join(sorted(map(part.model.tell_answer, part.answers(history, number))))
    if core:
        others = "; ".join(tell(one) for one in core if one is not last)
        rest = f"it contradicts these: {others}" if others else "no write of that value had begun"
    else:
        order = part.find_order(history, number) or []
        before = [tell(one) for one, _answer in order if one is not last]
        rest = f"explained: {'; '.join([*(['…'] if len(before) > _TOLD else []), *before[-_TOLD:]]) or 'nothing'}"
    return f"{tell(last)} is impossible: at that time it could have answered {could} ({rest})"


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
