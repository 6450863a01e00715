"""Decide in linear time whether a history of a register is linearizable, if each value is written once.

The reads of a value come after its write and before the next one: together they are a *cluster*. A cluster precedes
another one if one of its operations had ended before one of the other cluster's operations began. Two clusters that
precede each other have no order. If there are no such clusters, and no read had ended before its value was written,
there is an order.

The code does not assume that the operations are those of a register, but finds out: it asks the model what each
operation does in every state to which the operations can lead.

Source: Gibbons, Korach, "Testing shared memories", SIAM J. Comput. 1997, section 4.1 (read-mapped, zones).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from holdfast_checker.histories.history import Operation, Outcome
from holdfast_checker.kernel.calls import canonical

_STATES = 2_000
"""A model is inspected only if it has at most this number of reachable states."""

_Apply = Callable[[Hashable, Operation], tuple[Hashable, object]]


@dataclass(slots=True)
class _Cluster:
    """A value's write and its reads. `write` is None for the initial value, which precedes everything."""

    write: Operation | None
    reads: list[Operation] = field(default_factory=list)

    @property
    def all(self) -> list[Operation]:
        return [*([self.write] if self.write else []), *self.reads]

    @property
    def first_end(self) -> float:
        return min(map(_end, self.all)) if self.write else -1

    @property
    def last_start(self) -> int:
        return max(one.invoked for one in self.all)

    def core(self) -> list[Operation]:
        """Return the operations that prove a contradiction: the write, the first to end, and the last to begin."""
        first = [min(self.all, key=_end)] if self.write else []
        return [*([self.write] if self.write else []), *first, max(self.all, key=lambda one: one.invoked)]


def _end(operation: Operation) -> float:
    return math.inf if operation.ended is None or operation.outcome is not Outcome.OK else operation.ended


@dataclass(frozen=True, slots=True)
class Register:
    """Operations that are reads and writes of one register.

    Attributes:
        writes: for each operation, the state to which it leads; None for a read. No state of a register is None.
        answers: for each state, the canonical key of the answer that a read gives.
    """

    initial: Hashable
    operations: Sequence[Operation]
    writes: Sequence[Hashable | None]
    answers: Mapping[Hashable, Hashable]

    def with_history(self, operations: Sequence[Operation | None]) -> Register:
        """Return the register with operations that end differently; None leaves an operation out."""
        those = [(one, state) for one, state in zip(operations, self.writes, strict=True) if one is not None]
        return replace(self, operations=[one for one, _state in those], writes=[state for _one, state in those])

    def contradiction(self) -> tuple[Operation, ...] | None:
        """Return a few operations that have no order; None if all operations together have one."""
        by_state = {self.initial: _Cluster(None)}
        by_answer = {answer: state for state, answer in self.answers.items()}
        for one, state in zip(self.operations, self.writes, strict=True):
            if state is not None:
                by_state[state] = _Cluster(one)
        for one, state in zip(self.operations, self.writes, strict=True):
            if state is None and one.outcome is Outcome.OK:
                read_from = by_state.get(by_answer.get(canonical(one.value)))
                if read_from is None:
                    return (one,)  # no write of the value had begun
                if read_from.write and _end(one) < read_from.write.invoked:
                    return one, read_from.write
                read_from.reads.append(one)
        # A write of unknown outcome that no operation read may never have happened, so it is left out.
        clusters = [one for one in by_state.values() if one.reads or (one.write and one.write.outcome is Outcome.OK)]
        pair = _without_order(clusters)
        if pair is None:
            return None
        core = {id(one): one for cluster in pair for one in cluster.core()}
        return tuple(sorted(core.values(), key=lambda one: (one.invoked, one.who)))


def _without_order(clusters: Sequence[_Cluster]) -> tuple[_Cluster, _Cluster] | None:
    """Return two clusters that precede each other.

    In a *forward* cluster, the first end precedes the last start. The intervals between first end and last start of two
    forward clusters must not overlap. Nor may the interval of a forward cluster enclose that of a cluster that is not
    forward, which reaches from the last start to the first end.
    """
    forward = sorted((one for one in clusters if one.first_end < one.last_start), key=lambda one: one.first_end)
    for one, other in pairwise(forward):
        if other.first_end < one.last_start:
            return one, other
    starts = [one.first_end for one in forward]
    for cluster in clusters:
        if cluster.first_end >= cluster.last_start:
            around = bisect_left(starts, cluster.last_start) - 1
            if around >= 0 and cluster.first_end < forward[around].last_start:
                return forward[around], cluster
    return None


# --- finding out ------------------------------------------------------------------------------------------------------
def reachable(initial: Hashable, operations: Sequence[Operation], apply: _Apply) -> set[Hashable] | None:
    """Return all states that these operations lead to, each taken once or not, in any order; None if there are many."""
    found = {initial}
    fresh = found
    for _ in operations:
        fresh = {apply(state, one)[0] for state in fresh for one in operations} - found
        found |= fresh
        if not fresh:
            break
        if len(found) > _STATES:
            return None
    return found


def as_register(
    initial: Hashable, operations: Sequence[Operation], apply: _Apply, states: set[Hashable]
) -> Register | None:
    """Return the operations as reads and writes of a register, or None if they are not.

    Each value must be written once, and differ from the initial one.

    Args:
        states: all reachable states.
    """
    writes: list[Hashable | None] = []
    answers: dict[Hashable, Hashable] = {}
    for one in operations:
        ends = {state: apply(state, one) for state in states}
        said = {state: canonical(answer) for state, (_after, answer) in ends.items()}
        afters = {after for after, _answer in ends.values()}
        if all(after == state for state, (after, _answer) in ends.items()):
            if len(set(said.values())) < len(said) or (answers and answers != said):
                return None  # its answer does not tell the state
            answers = said
            writes.append(None)
        elif len(afters) > 1 or len(set(said.values())) > 1 or None in afters:
            return None
        elif one.outcome is Outcome.OK and canonical(one.value) not in said.values():
            return None  # no write answers that
        else:
            writes += afters
    written = [state for state in writes if state is not None]
    if len({initial, *written}) < len(written) + 1:
        return None
    return Register(initial, operations, writes, answers)
