"""Simulate what happens inside of a database server during a commit: rows, and locks on them, under READ COMMITTED.

A commit of a backend in SQL consists of many statements, and those of other connections come in between. Here each
statement is a call. A `Table` knows what every such database does: a shared lock excludes exclusive ones; whoever gets
a lock after a wait sees the row as the previous holder left it; a row that does not exist cannot be locked, only
created; and creating it waits for another connection that has created it and not committed yet. When a connection ends,
or breaks, its locks are released and its rows are gone.

Source: PostgreSQL manual, 13.2.1 and 13.3.2; MySQL manual, 17.7.2.1 and 17.7.2.4 (READ COMMITTED: no gap locks).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast.errors import UnavailableError
from holdfast.transactions.base import Commit, Outcome, Record
from holdfast.transactions.steps import Kind, Step, apply_steps, judge, steps_of
from holdfast_checker.kernel.calls import Access, Alternative, Call, Fault, Footprint, Reply
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import (
    DATABASE,
    Records,
    lost,
    range_accesses,
    record_accesses,
    records_of,
    scan_of,
    unavailable,
)
from holdfast_checker.simulated.database_handle import SimulatedDatabase, versions

_LOCKS = "locks"


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that a connection holds on a row.

    Attributes:
        creates: whether the connection has created the row, so that others do not see it yet.
    """

    key: bytes
    holder: str
    exclusive: bool
    creates: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """The state of a table: what is committed, and the locks of the transactions that are not."""

    records: Records
    locks: frozenset[Lock] = frozenset()

    def others(self, key: bytes, holder: str) -> list[Lock]:
        """Return the locks of other connections on a row."""
        return [lock for lock in self.locks if lock.key == key and lock.holder != holder]


class Table:
    """A resource: a table of records, as a database server sees it.

    Calls: `lock` a row, shared or exclusive, and read it; `create` a row that does not exist; `count` the rows of a
    range; `commit` with the changed rows, or `rollback`; and outside of transactions `get_many` and `scan`.

    Args:
        start: the records at the start of every history.
    """

    def __init__(self, start: Mapping[bytes, Record]) -> None:
        self._start = Rows(records_of(start))

    def initial(self) -> Rows:
        return self._start

    def key(self, state: object) -> Hashable:
        return state  # all parts are hashable

    def waits_for(self, state: object, call: Call) -> None:
        """Return None: several connections may share a lock."""

    def bury(self, state: object, actor: str) -> object:
        return _released(cast("Rows", state), actor)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        rows = cast("Rows", state)
        ways = _WAYS[call.operation](rows, actor, *call.args)
        if ways and call.operation != "rollback":
            ways.append(unavailable(_released(rows, actor)))
        return ways

    def footprint(self, call: Call) -> Footprint:
        if call.operation == "get_many":
            return record_accesses(call.args[0], writes=False)
        if call.operation == "scan":
            start, end, _limit, guards = call.args
            return range_accesses(start, end) | record_accesses(guards, writes=False)
        if call.operation == "make_durable":
            return frozenset()
        if call.operation == "count":
            return range_accesses(call.args[0], call.args[1])
        if call.operation in ("lock", "create"):
            key = cast("bytes", call.args[0])
            writes = call.operation == "create" or bool(call.args[1])
            locks = frozenset({Access(_LOCKS, key.decode("latin-1"), writes=writes)})
            return locks | record_accesses((key,), writes=False)
        locked, changes = cast("tuple[tuple[bytes, ...], tuple[tuple[bytes, Record | None], ...]]", call.args)
        released = frozenset(Access(_LOCKS, key.decode("latin-1"), writes=True) for key in locked)
        return released | record_accesses(tuple(key for key, _record in changes), writes=True)


def _released(rows: Rows, holder: str) -> Rows:
    """Return the state after a connection's transaction has ended."""
    if all(lock.holder != holder for lock in rows.locks):
        return rows
    return replace(rows, locks=frozenset(lock for lock in rows.locks if lock.holder != holder))


def _lock(rows: Rows, actor: str, key: bytes, exclusive: bool) -> list[Alternative]:
    """Lock a row, and return its record; None, without a lock, if no row is visible."""
    record = rows.records.as_dict().get(key)
    if record is None:
        return [Alternative(state=rows, reply=Reply(None))]
    if any(exclusive or lock.exclusive for lock in rows.others(key, actor)):
        return []
    return [Alternative(state=replace(rows, locks=rows.locks | {Lock(key, actor, exclusive)}), reply=Reply(record))]


def _create(rows: Rows, actor: str, key: bytes) -> list[Alternative]:
    """Create a row, and return None; the existing record if there is one."""
    record = rows.records.as_dict().get(key)
    if record is not None:
        return [Alternative(state=rows, reply=Reply(record))]
    if any(lock.creates for lock in rows.others(key, actor)):
        return []
    lock = Lock(key, actor, exclusive=True, creates=True)
    return [Alternative(state=replace(rows, locks=rows.locks | {lock}), reply=Reply(None))]


def _count(rows: Rows, actor: str, start: bytes, end: bytes, most: int) -> list[Alternative]:
    """Count the rows that are committed at this moment."""
    return [Alternative(state=rows, reply=Reply(len(scan_of(rows.records, start, end, most).records)))]


def _commit(
    rows: Rows, actor: str, locked: tuple[bytes, ...], changes: tuple[tuple[bytes, Record | None], ...]
) -> list[Alternative]:
    """Write the changed rows, and release the locks."""
    after = {**rows.records.as_dict(), **dict(changes)}
    ended = _released(rows, actor)
    done = replace(ended, records=records_of({key: one for key, one in after.items() if one is not None}))
    ways = [Alternative(state=done)]
    if changes:
        ways.append(lost(done, "reply lost", Fault.LOST_REPLY))
        ways.append(lost(ended, "request lost", Fault.FAILURE))
    return ways


def _rollback(rows: Rows, actor: str, locked: tuple[bytes, ...], changes: tuple[()]) -> list[Alternative]:
    """Release the locks."""
    return [Alternative(state=_released(rows, actor))]


def _get_many(rows: Rows, actor: str, keys: tuple[bytes, ...]) -> list[Alternative]:
    records = rows.records.as_dict()
    return [Alternative(state=rows, reply=Reply(tuple((key, records[key]) for key in keys if key in records)))]


def _scan(rows: Rows, actor: str, start: bytes, end: bytes, limit: int, guards: tuple[bytes, ...]) -> list[Alternative]:
    return [Alternative(state=rows, reply=Reply(scan_of(rows.records, start, end, limit, guards)))]


_WAYS: Mapping[str, Callable[..., list[Alternative]]] = {
    "lock": _lock,
    "create": _create,
    "count": _count,
    "commit": _commit,
    "rollback": _rollback,
    "make_durable": lambda rows, actor: [Alternative(state=rows)],  # a table loses nothing
    "get_many": _get_many,
    "scan": _scan,
}


_LOCK_ATTEMPTS = 5


class SteppedDatabase(SimulatedDatabase):
    """A handle on a `Table`, whose commits take a step for each statement."""

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        port, base = self._port, versions(self._port, len(commits))
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
        return _create_row(port, step.key)  # an existing record is not locked: the insert has failed
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
    return _create_row(port, key) is None


def _create_row(port: Port, key: bytes) -> Record | None:
    return cast("Record | None", port.call(Call(DATABASE, "create", (key,))))


def count_ranges(port: Port, commits: Sequence[Commit]) -> dict[tuple[int, int], int]:
    """Count the records of all ranges."""
    return {
        (call, index): cast("int", port.call(Call(DATABASE, "count", (one.start, one.end, one.count + 1))))
        for call, commit in enumerate(commits)
        for index, one in enumerate(commit.ranges)
    }
