"""Give the shipped code handles on simulated databases: transaction stores whose calls are steps of the world.

`SteppedDatabase` does inside of a commit what the backends in SQL do, each statement as a step of its own: it locks the
records in the order of their keys, what is only read in shared mode, creates rows for absent records so that their
absence is locked too, counts ranges while their guards are locked, judges, applies, and ends. The order of the steps
and the judgment are the shipped functions. The backends' own statements are held to the same by the conformance suite.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from holdfast.errors import UnavailableError
from holdfast.transactions.base import Backend, Commit, Outcome, Record, ScanPage
from holdfast.transactions.steps import Kind, Step, apply_steps, judge, seen_count, steps_of
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.process import Port
from holdfast_checker.transactions.database import DATABASE

_LOCK_ATTEMPTS = 5


class SimulatedDatabase(Backend):
    """A handle on a `Database`, whose commits are single steps."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = self._port.call(Call(DATABASE, "get_many", (tuple(sorted(keys)),)))
        return dict(cast("tuple[tuple[bytes, Record], ...]", found))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return cast("ScanPage", self._port.call(Call(DATABASE, "scan", (start, end, limit, tuple(sorted(guards))))))

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        call = Call(DATABASE, "commit_group", (tuple(commits), _versions(self._port, len(commits))))
        return list(cast("tuple[Outcome, ...]", self._port.call(call)))

    def make_durable(self) -> None:
        self._port.call(Call(DATABASE, "make_durable"))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _versions(port: Port, count: int) -> int:
    """Return the first of several consecutive versions that nobody else has."""
    first, *_others = [int(port.token(), 16) for _ in range(max(count, 1))]
    return first


class SteppedDatabase(SimulatedDatabase):
    """A handle on a `Table`, whose commits take a step for each statement."""

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        port, base = self._port, _versions(self._port, len(commits))
        steps = steps_of(commits)
        seen, counts = lock_and_count(port, commits, steps)
        judgment = judge(commits, steps, seen, counts, base)
        changes = apply_steps(seen, judgment.valid, base)
        keys = tuple(dict.fromkeys(step.key for step in steps))
        end = "commit" if changes else "rollback"
        port.call(Call(DATABASE, end, (keys, tuple(changes.items()))))
        return list(judgment.outcomes)


def lock_and_count(
    port: Port, commits: Sequence[Commit], steps: Sequence[Step]
) -> tuple[dict[bytes, Record], Mapping[tuple[int, int], int]]:
    """Lock all records, then count the ranges: every insert into a range has waited for the guard, or is seen."""
    seen = lock_records(port, steps)
    return seen, count_ranges(port, commits)


def lock_records(port: Port, steps: Sequence[Step]) -> dict[bytes, Record]:
    """Lock the record of each step, in their order, and return those that exist."""
    seen: dict[bytes, Record] = {}
    for step in steps:
        record = lock_record(port, step)
        if record is not None:
            seen[step.key] = record
    return seen


def lock_record(port: Port, step: Step) -> Record | None:
    """Lock one record, or its absence; return the record.

    Raises:
        UnavailableError: others keep creating and deleting the record.
    """
    if step.kind is Kind.INSERT:
        return _create(port, step.key)  # an existing record is not locked: the insert has failed
    for _ in range(_LOCK_ATTEMPTS):
        record = cast("Record | None", port.call(Call(DATABASE, "lock", (step.key, needs_exclusive(step)))))
        if record is not None or lock_absence(port, step.key):
            return record
    port.call(Call(DATABASE, "rollback", ((step.key,), ())))
    raise UnavailableError("others keep creating and deleting a record: retry later", key=step.key)


def needs_exclusive(step: Step) -> bool:
    """Return whether a step needs an exclusive lock: all do, except for those that only read a record."""
    return step.kind is not Kind.READ


def lock_absence(port: Port, key: bytes) -> bool:
    """Create a row in place of an absent record, for as long as the transaction lasts; return whether that worked."""
    return _create(port, key) is None


def _create(port: Port, key: bytes) -> Record | None:
    return cast("Record | None", port.call(Call(DATABASE, "create", (key,))))


def count_ranges(port: Port, commits: Sequence[Commit]) -> dict[tuple[int, int], int]:
    """Count the records of all ranges."""
    return {
        (call, index): cast("int", port.call(Call(DATABASE, "count", (one.start, one.end, seen_count(one)))))
        for call, commit in enumerate(commits)
        for index, one in enumerate(commit.ranges)
    }
