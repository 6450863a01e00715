"""Simulate transactions that lock what they read, and processes that wait until a record has changed.

Each lock is a step, and so is the commit, which releases all locks. A process that holds no lock waits for one. A
process that holds locks already never waits: it waits by making its request later, or the database ends its
transaction, as it does with one of two that wait for each other. So no world gets stuck, and nothing that could happen
is left out: a process that waits with its locks does nothing that others notice.

Commits of those that lock nothing in advance wait for the locks on what they validate and write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from holdfast.errors import DeadlockError
from holdfast.transactions.base import Commit, LockingTransaction, Outcome, Record, ScanPage
from holdfast_checker.kernel.calls import Access, Alternative, Call, Footprint, Reply
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import (
    DATABASE,
    DatabaseResource,
    DatabaseState,
    SimulatedDatabase,
    make_failed_alternative,
    record_accesses,
)

_LOCKS = "locks"
_LATE = "reply lost, effect comes later"

_Locks = tuple[tuple[bytes, bool], ...]
"""Keys, each with whether the lock is exclusive."""


@dataclass(frozen=True, slots=True)
class RecordLock:
    """A lock that a transaction holds on a record.

    Attributes:
        creates: whether the transaction has created the record, so that others do not see it yet.
    """

    key: bytes
    holder: str
    exclusive: bool
    creates: bool = False


@dataclass(frozen=True, slots=True)
class LockableState(DatabaseState):
    """The state of a database, with the locks of the transactions that have not ended."""

    locks: frozenset[RecordLock] = frozenset()

    def has_conflicting_lock(self, key: bytes, actor: str, *, exclusive: bool) -> bool:
        """Check whether another actor holds a lock that prevents `actor` from locking this key."""
        return any(one.key == key and one.holder != actor and (exclusive or one.exclusive) for one in self.locks)

    def is_locked(self, keys: Mapping[bytes, bool], actor: str) -> bool:
        """Check whether others' locks prevent `actor` from locking one of `keys` (True means an exclusive lock)."""
        return any(self.has_conflicting_lock(key, actor, exclusive=exclusive) for key, exclusive in keys.items())

    def without(self, actor: str) -> LockableState:
        """Return the state after the transaction of `actor` has ended and released its locks."""
        if all(one.holder != actor for one in self.locks):
            return self
        return replace(self, locks=frozenset(one for one in self.locks if one.holder != actor))


class WaitableDatabase(DatabaseResource):
    """A simulated database with a call `wait`, which blocks until given records have changed.

    A process that polled in a loop would have infinite executions. Waiting for a change keeps them finite, and omits
    nothing: between two changes, all polls return the same.
    """

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        if call.operation != "wait":
            return super().alternatives(state, call, actor)
        records = cast("DatabaseState", state).records.as_dict()
        seen = cast("tuple[tuple[bytes, int], ...]", call.args[0])
        is_same = all((records[key].version if key in records else 0) == version for key, version in seen)
        return [] if is_same else [Alternative(state=state)]

    def footprint(self, call: Call) -> Footprint:
        if call.operation != "wait":
            return super().footprint(call)
        seen = cast("tuple[tuple[bytes, int], ...]", call.args[0])
        return record_accesses([key for key, _version in seen], writes=False)


class LockableDatabase(WaitableDatabase):
    """A `WaitableDatabase` with locks: `lock` also reads the record, `apply` commits, `release` rolls back.

    `until_free` waits for locks. The actors must not be mortal: a crash of one would release its locks, and could spare
    others an error.
    """

    def initial_state(self) -> LockableState:
        start = super().initial_state()
        return LockableState(start.records, crashes=start.crashes)

    def state_key(self, state: object) -> Hashable:
        return (super().state_key(state), cast("LockableState", state).locks)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        image = cast("LockableState", state)
        ways: Sequence[Alternative]
        if call.operation == "lock":
            ways = lock_alternatives(image, actor, *cast("tuple[bytes, bool]", call.args))
            if not ways:
                return _list_blocked_alternatives(image, actor)
            return ways if ways[0].reply.value is None else [*ways, make_failed_alternative(image.without(actor))]
        if call.operation == "until_free":
            return [] if image.is_locked(dict(cast("_Locks", call.args[0])), actor) else [Alternative(state=image)]
        if call.operation == "release":
            return [Alternative(state=image.without(actor))]
        if call.operation == "apply":
            if image.is_locked(keys_of_commits(cast("tuple[Commit, ...]", call.args[0])), actor):
                return _list_blocked_alternatives(image, actor)
            ways = super().alternatives(image.without(actor), _commit_in_call(call), actor)
            return [way for way in ways if way.label != _LATE]  # a transaction ends with its connection
        if call.operation == "commit_group":
            if image.is_locked(keys_of_commits(cast("tuple[Commit, ...]", call.args[0])), actor):
                return []
        if call.operation == "crash" and image.locks:
            return []  # it would end a transaction that holds locks: as if it came before, and a call failed
        ways = super().alternatives(state, call, actor)
        if call.operation == "carry_out":
            late = zip(ways, image.late, strict=True)
            return [way for way, (_base, commits) in late if not image.is_locked(keys_of_commits(commits), actor)]
        return ways

    def footprint(self, call: Call) -> Footprint:
        if call.operation == "lock":
            key, exclusive = cast("tuple[bytes, bool]", call.args)
            return record_accesses((key,), writes=False) | lock_accesses((key,), writes=exclusive)
        if call.operation == "until_free":
            free = tuple(key for key, _exclusive in cast("_Locks", call.args[0]))
            return record_accesses(free, writes=False) | lock_accesses(free, writes=False)
        if call.operation == "release":
            return lock_accesses(cast("tuple[bytes, ...]", call.args[0]), writes=True)
        if call.operation == "apply":
            held = cast("tuple[bytes, ...]", call.args[2])
            keys = tuple(keys_of_commits(cast("tuple[Commit, ...]", call.args[0])))
            locks = lock_accesses(held, writes=True) | lock_accesses(keys, writes=False)
            return super().footprint(_commit_in_call(call)) | locks
        found = super().footprint(call)
        if call.operation == "commit_group":
            found |= lock_accesses(tuple(keys_of_commits(cast("tuple[Commit, ...]", call.args[0]))), writes=False)
        return found

    def state_after_death(self, state: object, actor: str) -> object:
        return cast("LockableState", state).without(actor)


def lock_alternatives(image: LockableState, actor: str, key: bytes, exclusive: bool) -> list[Alternative]:
    """Return the outcomes of a call that locks and reads a record; an empty list if the actor must wait.

    The reply is the record. If the record does not exist, the reply is None, and nothing is locked."""
    record = image.records.as_dict().get(key)
    if record is None:
        return [Alternative(state=image, reply=Reply(None))]
    if image.has_conflicting_lock(key, actor, exclusive=exclusive):
        return []
    locked = replace(image, locks=image.locks | {RecordLock(key, actor, exclusive)})
    return [Alternative(state=locked, reply=Reply(record))]


def _list_blocked_alternatives(image: LockableState, actor: str) -> list[Alternative]:
    """Return the results for an actor that must wait for a lock: a deadlock error if it already holds locks."""
    ended = image.without(actor)
    if ended is image:
        return []
    error = DeadlockError("the database has ended the transaction: repeat it")
    return [Alternative(state=ended, reply=Reply(error=error))]


def _commit_in_call(call: Call) -> Call:
    return Call(DATABASE, "commit_group", call.args[:2])


def keys_of_commits(commits: Sequence[Commit]) -> dict[bytes, bool]:
    """Return the keys that commits validate or write, each with whether a commit writes it."""
    found: dict[bytes, bool] = {}
    for commit in commits:
        for key in commit.reads:
            found.setdefault(key, False)
        found.update(dict.fromkeys((*commit.puts, *commit.inserts, *commit.deletes, *commit.adds), True))
    return found


def lock_accesses(keys: Sequence[bytes], *, writes: bool) -> Footprint:
    """Return the footprint (accesses) of a call that inspects, or with `writes` changes, the locks on `keys`."""
    return frozenset(Access(_LOCKS, key.decode("latin-1"), writes=writes) for key in keys)


class SimulatedLockedTransaction:
    """A process's transaction on a simulated database that locks each record it reads.

    Args:
        as_value: converts a commit to an immutable value.
    """

    def __init__(self, port: Port, as_value: Callable[[Commit], Commit]) -> None:
        self._port = port
        self._as_value = as_value
        self._held: dict[bytes, None] = {}

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        found = {}
        for key in sorted(keys):
            try:
                record = cast("Record | None", self._port.call(Call(DATABASE, "lock", (key, exclusive))))
            except DeadlockError:
                self._held.clear()
                self._wait_for_locks(((key, exclusive),))
                raise
            if record is not None:
                self._held[key] = None
                found[key] = record
        return found

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        return cast("ScanPage", self._port.call(Call(DATABASE, "scan", (start, end, limit, ()))))

    def apply(self, commit: Commit) -> Outcome:
        held = tuple(self._held)
        self._held.clear()
        value = self._as_value(commit)
        call = Call(DATABASE, "apply", ((value,), int(self._port.token(), 16), held))
        try:
            return cast("tuple[Outcome, ...]", self._port.call(call))[0]
        except DeadlockError:
            self._wait_for_locks(tuple(sorted(keys_of_commits((value,)).items())))
            raise

    def _wait_for_locks(self, locks: _Locks) -> None:
        """Wait until other transactions have released locks; an immediate retry would fail again."""
        self._port.call(Call(DATABASE, "until_free", (locks,)))

    def release(self) -> None:
        """Roll back: release the locks of a transaction that was not applied."""
        if self._held:
            held = tuple(self._held)
            self._held.clear()
            self._port.call(Call(DATABASE, "release", (held,)))


class LockingDatabase(SimulatedDatabase):
    """A process's handle on a `LockableDatabase`."""

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        transaction = SimulatedLockedTransaction(self._port, self.as_value)
        try:
            yield transaction
        finally:
            transaction.release()
