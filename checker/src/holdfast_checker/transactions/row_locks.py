"""Simulate row locks of a database server under READ COMMITTED, where each statement of a commit is a step.

A commit of a backend in SQL consists of many statements, and those of other connections come in between. Here each
statement is a call. A `RowLockingTable` does what all such databases do: a shared lock excludes exclusive ones; who
gets a lock after a wait sees the row as the previous holder left it; a row that does not exist cannot be locked, only
created; and creating it waits for another connection that has created it and not committed yet. When a connection ends,
or breaks, its locks are released and its rows are gone.

Source: PostgreSQL manual, 13.2.1 and 13.3.2; MySQL manual, 17.7.2.1 and 17.7.2.4 (READ COMMITTED: no gap locks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from holdfast.errors import UnavailableError
from holdfast.transactions.base import Commit, Outcome, Record
from holdfast.transactions.validation import Step, StepKind, apply_steps, steps_of_group, validate_group
from holdfast_checker.kernel.calls import Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import (
    DATABASE,
    SimulatedDatabase,
    make_failed_alternative,
    make_lost_reply_alternative,
    make_record_map,
    range_accesses,
    record_accesses,
    reserve_versions,
    scan_records,
)
from holdfast_checker.simulated.locks import (
    LockableDatabase,
    LockableState,
    RecordLock,
    lock_accesses,
    lock_alternatives,
)

_Changes = tuple[tuple[bytes, Record | None], ...]


class RowLockingTable(LockableDatabase):
    """A simulated table of a SQL database with row locks, as a shared resource.

    Calls: `lock` a row, shared or exclusive, and read it; `create` a row that does not exist; `count` the rows of a
    range; `commit` with the changed rows, or `rollback`; and outside of transactions `get_many` and `scan`. A
    connection that breaks ends its transaction.
    """

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        image = cast("LockableState", state)
        if call.operation in ("get_many", "scan", "make_durable"):
            return super().alternatives(state, call, actor)
        if call.operation == "rollback":
            return [Alternative(state=image.without(actor))]
        if call.operation == "lock":
            ways = lock_alternatives(image, actor, *cast("tuple[bytes, bool]", call.args))
        elif call.operation == "create":
            ways = _create_row_alternatives(image, actor, cast("bytes", call.args[0]))
        elif call.operation == "count":  # the rows that are committed at this moment
            ways = [Alternative(state=image, reply=Reply(len(scan_records(image.records, *call.args).records)))]
        else:
            ways = _commit_alternatives(image, actor, cast("_Changes", call.args[1]))
        return [*ways, make_failed_alternative(image.without(actor))] if ways else []

    def footprint(self, call: Call) -> Footprint:
        if call.operation == "count":
            return range_accesses(call.args[0], call.args[1])
        if call.operation == "create":
            key = cast("bytes", call.args[0])
            return lock_accesses((key,), writes=True) | record_accesses((key,), writes=False)
        if call.operation in ("commit", "rollback"):
            locked, changes = cast("tuple[tuple[bytes, ...], _Changes]", call.args)
            written = tuple(key for key, _record in changes)
            return lock_accesses(locked, writes=True) | record_accesses(written, writes=True)
        return super().footprint(call)


def _create_row_alternatives(image: LockableState, actor: str, key: bytes) -> list[Alternative]:
    """Return the results of a call that creates a row: None, or the existing record; no result while it must wait."""
    record = image.records.as_dict().get(key)
    if record is not None:
        return [Alternative(state=image, reply=Reply(record))]
    if any(one.creates for one in image.locks if one.key == key and one.holder != actor):
        return []
    created = RecordLock(key, actor, exclusive=True, creates=True)
    return [Alternative(state=replace(image, locks=image.locks | {created}), reply=Reply(None))]


def _commit_alternatives(image: LockableState, actor: str, changes: _Changes) -> list[Alternative]:
    """Return the results of a call that writes changed rows and releases the actor's locks."""
    after = {**image.records.as_dict(), **dict(changes)}
    ended = image.without(actor)
    done = replace(ended, records=make_record_map({key: one for key, one in after.items() if one is not None}))
    if not changes:
        return [Alternative(state=done)]
    lost = (
        make_lost_reply_alternative(done, "reply lost", Fault.LOST_REPLY),
        make_lost_reply_alternative(ended, "request lost", Fault.FAILURE),
    )
    return [Alternative(state=done), *lost]


_LOCK_ATTEMPTS = 5


class StatementSteppedDatabase(SimulatedDatabase):
    """The database of one process whose commits consist of several statements, each a step: see `RowLockingTable`."""

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        port, base = self._port, reserve_versions(self._port, len(commits))
        steps = steps_of_group(commits)
        seen, counts = lock_and_count(port, commits, steps)
        result = validate_group(commits, steps, seen, counts, base)
        changes = apply_steps(seen, result.valid, base)
        keys = tuple(dict.fromkeys(step.key for step in steps))
        end = "commit" if changes else "rollback"
        port.call(Call(DATABASE, end, (keys, tuple(changes.items()))))
        return list(result.outcomes)


def lock_and_count(
    port: Port, commits: Sequence[Commit], steps: Sequence[Step]
) -> tuple[dict[bytes, Record], Mapping[tuple[int, int], int]]:
    """Lock the records of all steps of a group of commits, then count the records in their ranges, as SQL backends do.

    Returns:
        The existing locked records, and the counts by (commit, range).
    """
    seen = lock_records(port, steps)
    return seen, count_records_in_ranges(port, commits)


def lock_records(port: Port, steps: Sequence[Step]) -> dict[bytes, Record]:
    """Lock the record of each step, in order, and return the existing ones by key."""
    seen: dict[bytes, Record] = {}
    for step in steps:
        record = lock_record(port, step)
        if record is not None:
            seen[step.key] = record
    return seen


def lock_record(port: Port, step: Step) -> Record | None:
    """Lock the record that a step of a commit reads or writes, and return it; if there is none, lock a placeholder row.

    An insert only tries to create the row: an existing record is returned unlocked.

    Raises:
        UnavailableError: others keep creating and deleting the record.
    """
    if step.kind is StepKind.INSERT:
        return _create_row_or_get_existing(port, step.key)
    for _ in range(_LOCK_ATTEMPTS):
        record = cast("Record | None", port.call(Call(DATABASE, "lock", (step.key, needs_exclusive(step)))))
        if record is not None or lock_absent_record(port, step.key):
            return record
    port.call(Call(DATABASE, "rollback", ((step.key,), ())))
    raise UnavailableError("others keep creating and deleting a record: retry later", key=step.key)


def needs_exclusive(step: Step) -> bool:
    """Check whether a step needs an exclusive lock: all do, except for those that only read a record."""
    return step.kind is not StepKind.READ


def lock_absent_record(port: Port, key: bytes) -> bool:
    """Lock the absence of a record by creating a placeholder row until the transaction ends.

    Returns:
        Whether the row was created; if not, the record exists already."""
    return _create_row_or_get_existing(port, key) is None


def _create_row_or_get_existing(port: Port, key: bytes) -> Record | None:
    return cast("Record | None", port.call(Call(DATABASE, "create", (key,))))


def count_records_in_ranges(port: Port, commits: Sequence[Commit]) -> dict[tuple[int, int], int]:
    """Count the records in each range that commits validate, up to one more than expected, by (commit, range)."""
    return {
        (call, index): cast("int", port.call(Call(DATABASE, "count", (one.start, one.end, one.count + 1))))
        for call, commit in enumerate(commits)
        for index, one in enumerate(commit.ranges)
    }
