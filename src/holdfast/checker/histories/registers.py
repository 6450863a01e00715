"""Linearizability of a register of which every value is written once: decided in a blink, however many overlap.

Reads of a value stand behind its write and in front of the next one: together they are a *cluster*. It is before
another cluster if one of its operations had ended before one of the other began. So two clusters that are each before
the other have no order, and if no two are so, and no read had ended before its value was written, there is one.

Whether operations are those of a register is found out, not believed: the model is asked what each does in every state
that these operations can lead to.

Source: Gibbons, Korach, "Testing shared memories", SIAM J. Comput. 1997, section 4.1 (read-mapped, zones).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from holdfast.checker.histories.history import Operation, Outcome
from holdfast.checker.kernel.canonical import canonical

__all__ = ["Register", "as_register", "reachable"]

_STATES = 2_000
"""States that operations lead to; a model with more is not looked at whole."""

_Apply = Callable[[Hashable, Operation], tuple[Hashable, object]]


@dataclass(slots=True)
class _Cluster:
    """A value's write, and its reads. None wrote what was there at the start: that was before everything."""

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
        """The write, and those that ended first and began last."""
        first = [min(self.all, key=_end)] if self.write else []
        return [*([self.write] if self.write else []), *first, max(self.all, key=lambda one: one.invoked)]


def _end(operation: Operation) -> float:
    return math.inf if operation.ended is None or operation.outcome is not Outcome.OK else operation.ended


@dataclass(frozen=True, slots=True)
class Register:
    """Operations that are reads and writes of one register.

    Attributes:
        writes: by operation the state that it leads to; None for a read. States are never None here.
        answers: by state, what reads answer there, as keys.
    """

    initial: Hashable
    operations: Sequence[Operation]
    writes: Sequence[Hashable | None]
    answers: Mapping[Hashable, Hashable]

    def with_history(self, operations: Sequence[Operation | None]) -> Register:
        """The same register with another end for each operation; None leaves it out."""
        those = [(one, state) for one, state in zip(operations, self.writes, strict=True) if one is not None]
        return replace(self, operations=[one for one, _state in those], writes=[state for _one, state in those])

    def contradiction(self) -> tuple[Operation, ...] | None:
        """Operations that have no order, a handful; None if all have one."""
        by_state = {self.initial: _Cluster(None)}
        by_answer = {answer: state for state, answer in self.answers.items()}
        for one, state in zip(self.operations, self.writes, strict=True):
            if state is not None:
                by_state[state] = _Cluster(one)
        for one, state in zip(self.operations, self.writes, strict=True):
            if state is None and one.outcome is Outcome.OK:
                read_from = by_state.get(by_answer.get(canonical(one.value)))
                if read_from is None:
                    return (one,)  # nobody has begun to write it
                if read_from.write and _end(one) < read_from.write.invoked:
                    return one, read_from.write
                read_from.reads.append(one)
        # A write that nobody has read and of which nobody knows need not have been.
        clusters = [one for one in by_state.values() if one.reads or (one.write and one.write.outcome is Outcome.OK)]
        pair = _without_order(clusters)
        if pair is None:
            return None
        core = {id(one): one for cluster in pair for one in cluster.core()}
        return tuple(sorted(core.values(), key=lambda one: (one.invoked, one.who)))


def _without_order(clusters: Sequence[_Cluster]) -> tuple[_Cluster, _Cluster] | None:
    """Two clusters of which each has to be before the other.

    From the first end to the last start of a cluster there is no room for a whole other one, if it had ended something
    before it started its last: a *forward* cluster. Two of these must not overlap, and none may lie around a cluster
    that starts its last before it ends its first.
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
    """All states that these operations can lead to, in whatever order and each once or not; None if they are many."""
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
    """The operations as reads and writes of a register, each value written once and not there at the start; or None.

    Args:
        states: all that are reachable.
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
