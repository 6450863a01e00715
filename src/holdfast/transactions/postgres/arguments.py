"""Turn a group of transactions into the arguments of the function `commit_group`, and its result into outcomes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter

from holdfast.errors import CorruptDataError
from holdfast.transactions.base import AlreadyDone, Commit, Committed, Conflict, Outcome, Step, version_of
from holdfast.transactions.postgres.arrays import ByteaArray, Int2Array, Int4Array, Int8Array

__all__ = ["arguments_of", "outcomes_of"]

_KEY = itemgetter(0)


def arguments_of(session: int, base: int, commits: Sequence[Commit], steps: Sequence[Step]) -> list[object]:
    """Return the arguments in the order of the function's parameters. Indexes of steps count from 1, as in SQL."""
    keys, calls, kinds, expected, values, deltas = zip(*steps, strict=True)
    arguments: list[object] = [session, base, len(commits)]
    arguments += [ByteaArray.of(keys), Int4Array.of(calls), Int2Array.of(kinds), Int8Array.of(expected)]
    arguments += [ByteaArray.of(values), Int8Array.of(deltas)]
    if not any(commit.ranges or commit.bounds for commit in commits):
        return arguments + _NO_CONDITIONS

    def first_step(key: bytes) -> int:
        return bisect_left(steps, key, key=_KEY) + 1

    ranges = [
        (call, first_step(one.guard), one.start, one.end, one.count + _created_in(commit, one.start, one.end))
        for call, commit in enumerate(commits)
        for one in commit.ranges
    ]
    bounds = [
        (call, first_step(bound.key), bound.most) for call, commit in enumerate(commits) for bound in commit.bounds
    ]
    return [*arguments, *_encode_ranges(ranges), *_encode_bounds(bounds)]


def _encode_ranges(ranges: Sequence[tuple[int, int, bytes, bytes, int]]) -> list[object]:
    calls, guards, starts, ends, counts = zip(*ranges, strict=True) if ranges else ((),) * 5
    return [
        Int4Array.of(calls),
        Int4Array.of(guards),
        ByteaArray.of(starts),
        ByteaArray.of(ends),
        Int8Array.of(counts),
    ]


def _encode_bounds(bounds: Sequence[tuple[int, int, int]]) -> list[object]:
    calls, steps, most = zip(*bounds, strict=True) if bounds else ((),) * 3
    return [Int4Array.of(calls), Int4Array.of(steps), Int8Array.of(most)]


_NO_CONDITIONS = [*_encode_ranges(()), *_encode_bounds(())]


def _created_in(commit: Commit, start: bytes, end: bytes) -> int:
    """Return how many records of a range exist only because the transaction's inserts come before the count."""
    return sum(start <= key < end for key in commit.inserts)


def outcomes_of(status: Sequence[int], base: int, steps: Sequence[Step]) -> list[Outcome]:
    """Return the outcomes that the function reports, two numbers for each transaction.

    Raises:
        CorruptDataError: the numbers are not a result of this group.
    """
    outcomes: list[Outcome] = []
    for call in range(len(status) // 2):
        kind, detail = status[2 * call : 2 * call + 2]
        if kind == 0:
            outcomes.append(Committed(version_of(base, call)))
        elif kind == 1 and 0 < detail <= len(steps):
            outcomes.append(Conflict((steps[detail - 1].key,)))
        elif kind == 2:
            outcomes.append(AlreadyDone(detail))
        else:
            raise CorruptDataError("the database reports an unknown outcome: report this", kind=kind, detail=detail)
    return outcomes
