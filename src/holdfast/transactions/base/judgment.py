"""Judge the transactions of a group, once their records are locked: the validation phase of paper 004 (3.4).

This is the reference for every backend. SQLite, MySQL and the one in memory call it; the function in PostgreSQL does
the same inside the database, and the conformance suite holds both to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.transactions.base.steps import ANY, Kind, Step
from holdfast.transactions.base.values import (
    ABSENT,
    MAX_NUMBER,
    AlreadyDone,
    Commit,
    Committed,
    Conflict,
    Outcome,
    RangeCount,
    Record,
    takes_adds,
)


def version_of(base: int, call: int) -> int:
    """Return the version of the records that a transaction of a group writes."""
    return base + call


@dataclass(frozen=True, slots=True)
class Judgment:
    """The verdict on a group.

    Attributes:
        outcomes: the outcome of each transaction.
        valid: the steps of the transactions that take effect, in the order of their keys.
    """

    outcomes: Sequence[Outcome]
    valid: Sequence[Step]


def judge(
    commits: Sequence[Commit],
    steps: Sequence[Step],
    seen: Mapping[bytes, Record],
    counts: Mapping[tuple[int, int], int],
    base: int,
) -> Judgment:
    """Decide which transactions take effect.

    Args:
        steps: as `steps_of` returned them.
        seen: the records that existed, of the keys of all steps; all are locked. Only the values of those to which
            something is added count, and of these the first byte.
        counts: maps (transaction, index of its range) to the number of records in the range, before any write.
        base: the version that the first transaction would give to its records.
    """
    conflicts: dict[int, list[bytes]] = {}
    done: dict[int, int] = {}
    for step in steps:
        record = seen.get(step.key)
        if step.kind is Kind.PROGRESS:
            if record is not None and record.number >= step.delta:
                done[step.call] = record.number
        elif _is_stale(step, record) or (step.kind is Kind.ADD and not _can_add(step.delta, record)):
            conflicts.setdefault(step.call, []).append(step.key)
    for call, commit in enumerate(commits):
        for index, one in enumerate(commit.ranges):
            if counts[call, index] != one.count:
                conflicts.setdefault(call, []).append(one.guard)
    _judge_bounds(commits, steps, seen, conflicts, done)
    outcomes: list[Outcome] = []
    for call in range(len(commits)):
        if call in done:
            outcomes.append(AlreadyDone(done[call]))
        elif call in conflicts:
            outcomes.append(Conflict(tuple(sorted(set(conflicts[call])))))
        else:
            outcomes.append(Committed(version_of(base, call)))
    ended = done.keys() | conflicts.keys()
    return Judgment(outcomes, [step for step in steps if step.call not in ended])


def _is_stale(step: Step, record: Record | None) -> bool:
    return step.expected != ANY and step.expected != (ABSENT if record is None else record.version)


def _can_add(delta: int, record: Record | None) -> bool:
    """Whether a record is a number, and stays within its limits. Small adds of a group may pass them: `independent`."""
    if record is None or delta == 0:
        return True
    return takes_adds(record.value) and abs(record.number + delta) <= max(MAX_NUMBER, abs(record.number))


def _judge_bounds(
    commits: Sequence[Commit],
    steps: Sequence[Step],
    seen: Mapping[bytes, Record],
    conflicts: dict[int, list[bytes]],
    done: Mapping[int, int],
) -> None:
    """Check bounds in the order of the transactions, each after the adds of the valid ones before it."""
    for call, commit in enumerate(commits):
        for bound in commit.bounds:
            record = seen.get(bound.key)
            number = 0 if record is None else record.number
            number += sum(
                step.delta
                for step in steps
                if step.key == bound.key
                and step.kind is Kind.ADD
                and step.call <= call
                and step.call not in done
                and (step.call == call or step.call not in conflicts)
            )
            if number > bound.most:
                conflicts.setdefault(call, []).append(bound.key)


def seen_count(one: RangeCount) -> int:
    """Return how many records of a range a backend needs to count before it knows whether the condition holds."""
    return one.count + 1
