"""Check whether a history of operations is linearizable with respect to a sequential model.

Linearizable: in some order, consistent with real time, the model gives the same answers as the history.

A depth-first search repeatedly takes an operation that may come next: one that was invoked
before any other remaining operation ended. Each visited place is remembered as (operations taken, state of the model),
because two orders of the same operations that lead to the same state have the same future. An operation of unknown
outcome may be taken at any time after its invocation, with any answer, or not at all; a failed operation is left out.
The search is exponential in the number of overlapping operations. If it takes too long, it stops, and the answer is
unknown.

Sources: Wing, Gong, "Testing and Verifying Concurrent Objects", JPDC 1993; Lowe, "Testing for linearizability", CCPE
2017, section 2 (remembering visited places).
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import cast

from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.kernel.calls import canonical_key

PLACES_LIMIT = 200_000
"""Maximum number of pairs (operations taken, state) in one search; so many take seconds, and 50 MB."""

_TOLD = 8
"""Maximum number of operations, and of possible answers, that a message lists."""


class Linearizability(enum.Enum):
    """Whether a history is linearizable: yes, no, or unknown because the search was too long."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check for linearizability: the answer and, unless it is yes, an explanation."""

    answer: Linearizability
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A sequential specification of an object: its initial state, and the effect and answer of each operation.

    Attributes:
        initial: the state before the first operation.
        apply: returns the state and the answer after an operation. The function is pure, and defined for every
            operation in every state: an error counts as an answer. It may inspect the operation's arguments, but not
            its answer.
        tell, tell_answer: put an operation and an answer into words.
    """

    initial: Hashable
    apply: Callable[[Hashable, Operation], tuple[Hashable, object]]
    tell: Callable[[Operation], str] = str
    tell_answer: Callable[[object], str] = repr


def judge_linearizable(operations: Sequence[Operation], model: Model, *, limit: int = PLACES_LIMIT) -> Verdict:
    """Decide whether a history is linearizable; if not, name an operation that fits no order, and fitting answers.

    Guarantee: the answers yes and no are exact.

    Up to `limit`, time and memory are exponential in the number of overlapping operations. An operation of unknown
    outcome overlaps with all later ones.

    Args:
        limit: maximum number of search states (sets of operations done so far, and the model's state); beyond it the
            answer is unknown.
    """
    there = [one for one in operations if one.outcome is not Outcome.FAILED]
    try:
        if _find_order(there, model, limit) is not None:
            return Verdict(Linearizability.YES)
        ends = [one for one in there if one.outcome is Outcome.OK]
        ends.sort(key=lambda one: (one.ended, one.invoked))
        # If a prefix has no order, no longer prefix has one.
        count = bisect_left(
            range(len(ends)),
            True,
            key=lambda n: _find_order(_truncate_after(there, ends[: n + 1]), model, limit) is None,
        )
        return Verdict(
            Linearizability.NO, _describe_misfit(_truncate_after(there, ends[: count + 1]), ends[count], model, limit)
        )
    except _SearchLimitError:
        many = f"unknown whether {len(there)} operations have an order"
        return Verdict(Linearizability.UNKNOWN, f"{many}: so many overlap that the search takes too long")


# --- one key ----------------------------------------------------------------------------------------------------------
_Order = list[tuple[Operation, object]]
"""Operations in an order, each with the model's answer."""


class _SearchLimitError(Exception):
    """Raised when a search has visited more pairs (operations taken, state) than the limit allows."""


def _find_order(
    history: Sequence[Operation],
    model: Model,
    limit: int,
    free: Operation | None = None,
    except_for: frozenset[Hashable] = frozenset(),
) -> _Order | None:
    """Return an order of the operations with the model's answers, or None.

    Args:
        free: this operation may have any answer except those in `except_for`.

    Raises:
        _SearchLimitError: the search takes too long.
    """
    operations = sorted(history, key=lambda one: math.inf if one.ended is None else one.ended)
    bits = [1 << index for index in range(len(operations))]
    sure = [one.outcome is Outcome.OK for one in operations]
    earlier = [
        sum(bits[n] for n, them in enumerate(operations) if sure[n] and them.precedes(one)) for one in operations
    ]
    expected = [canonical_key(one.value) for one in operations]
    needed = sum(bit for bit, is_sure in zip(bits, sure, strict=True) if is_sure)

    def is_answer_possible(index: int, answer: object) -> bool:
        if operations[index] is free:
            return canonical_key(answer) not in except_for
        return not sure[index] or canonical_key(answer) == expected[index]

    tried: set[tuple[int, Hashable]] = {(0, model.initial)}
    order: _Order = []
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
        if taken & bits[index] or earlier[index] & ~taken:
            continue
        after, answer = model.apply(state, operations[index])
        place = (taken | bits[index], after)
        if is_answer_possible(index, answer) and place not in tried:
            tried.add(place)
            if len(tried) > limit:
                raise _SearchLimitError
            order.append((operations[index], answer))
            stack.append((*place, 0))
    return None


# --- words ------------------------------------------------------------------------------------------------------------
def _truncate_after(operations: Sequence[Operation], ended: Sequence[Operation]) -> list[Operation]:
    """Cut the history after the last end of the operations `ended`; all operations not in `ended` become unknown."""
    last, known = ended[-1].ended, set(map(id, ended))
    assert last is not None
    begun = [one for one in operations if one.invoked < last]
    return [one if id(one) in known else replace(one, ended=None, outcome=Outcome.UNKNOWN, value=None) for one in begun]


def _describe_misfit(history: list[Operation], last: Operation, model: Model, limit: int) -> str:
    """Describe the last operation, and the answers with which the history would have an order."""
    answers: dict[Hashable, object] = {}
    explained: _Order = []
    while len(answers) < _TOLD and (order := _find_order(history, model, limit, last, frozenset(answers))) is not None:
        explained = explained or order
        answer = next(answer for one, answer in order if one is last)
        answers[canonical_key(answer)] = answer
    could = " or ".join(sorted(map(model.tell_answer, answers.values())))
    before = [model.tell(one) for one, _answer in explained if one is not last]
    rest = "; ".join([*(["…"] if len(before) > _TOLD else []), *before[-_TOLD:]]) or "nothing"
    return f"{model.tell(last)} is impossible: at that time it could have answered {could} (explained: {rest})"


CRASH = "crash"
"""Name of the event that records a database crash in a history. Its argument is the number of lost commits."""


def client_operations(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations of a history without the recorded database crashes."""
    return [one for one in operations if one.name != CRASH]


def lossy_crashes(operations: Sequence[Operation]) -> list[Operation]:
    """Return the recorded database crashes of a history that have lost commits."""
    return [one for one in operations if one.name == CRASH]


def last_crash_position(operations: Sequence[Operation]) -> int:
    """Return the position of the last database crash in a history that has lost commits; -1 if there is none."""
    return max((one.ended or 0 for one in lossy_crashes(operations)), default=-1)


def judge_with_crashes(
    operations: Sequence[Operation],
    crashes: Sequence[Operation],
    model: Model,
    undone: Callable[[Operation], Operation | None] = lambda operation: None,
) -> str:
    """Check linearizability of a history in which database crashes undid some unknown commits.

    Returns:
        An empty string if the history is linearizable for some choice of undone commits; else an explanation.

    Args:
        operations: without the recorded crashes.
        crashes: the recorded crashes.
        undone: returns the replacement of an undone operation, such as what its caller still believes; None to omit.
    """
    if not crashes:
        return judge_linearizable(operations, model).words
    count = sum(cast("int", one.args[0]) for one in crashes)

    def rank_by_likelihood(lost: frozenset[int]) -> tuple[int, int]:
        """Return a sort key for sets of undone operations: closest in size to `count` first, then newest."""
        return abs(len(lost) - count), -sum(operations[number].invoked for number in lost)

    def undo_operations(lost: frozenset[int]) -> list[Operation]:
        left = (undone(one) if number in lost else one for number, one in enumerate(operations))
        return [one for one in left if one is not None]

    losses = sorted(_iter_undone_operation_sets(operations, last_crash_position(crashes)), key=rank_by_likelihood)
    if any(judge_linearizable(undo_operations(lost), model).answer is Linearizability.YES for lost in losses):
        return ""
    those = ", ".join(model.tell(operations[number]) for number in sorted(losses[0])) or "nothing"
    words = judge_linearizable(undo_operations(losses[0]), model).words
    return f"whichever operations the crash has undone; if it has undone {those}: {words}"


def _iter_undone_operation_sets(operations: Sequence[Operation], end: int) -> Iterator[frozenset[int]]:
    """Yield the sets of operations that may be undone, by their numbers."""
    of_each: dict[str, list[int]] = {}
    for number, one in enumerate(operations):
        if one.invoked <= end and one.outcome is Outcome.OK:
            of_each.setdefault(one.who, []).append(number)
    for way in product(*(_list_contiguous_subsequences(numbers) for numbers in of_each.values())):
        yield frozenset(number for run in way for number in run)


def _list_contiguous_subsequences(numbers: Sequence[int]) -> list[Sequence[int]]:
    """Return all parts of a sequence without gaps, also the empty one."""
    count = len(numbers)
    return [(), *(numbers[first:end] for first in range(count) for end in range(first + 1, count + 1))]
