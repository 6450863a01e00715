"""Test which units lock exclusively what they read: those that would wait for each other with shared locks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from holdfast.errors import DeadlockError
from holdfast.records.database import Database
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, LockingTransaction, Outcome, Record, ScanPage
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import begin_job
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Unit, UnitSettings, UnitTransaction

_ENVIRONMENT = Environment()


class _Deadlocks(MemoryBackend):
    """A database in memory in which the transaction with a certain number is in a deadlock.

    Attributes:
        exclusive: how each transaction has read its cells.
    """

    def __init__(self, number: int) -> None:
        super().__init__(_ENVIRONMENT.ids)
        self.exclusive: list[bool] = []
        self._number = number

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        with super().begin_locking_transaction() as inner:
            yield _Locked(self, inner)

    def reads(self, *, exclusive: bool) -> None:
        self.exclusive.append(exclusive)
        if len(self.exclusive) == self._number:
            raise DeadlockError("a deadlock with another transaction: start over")


class _Locked:
    def __init__(self, db: _Deadlocks, inner: LockingTransaction) -> None:
        self._db = db
        self._inner = inner

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        self._db.reads(exclusive=exclusive)
        return self._inner.read(keys, exclusive=exclusive)

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        return self._inner.scan(start, end, limit)

    def apply(self, commit: Commit) -> Outcome:
        return self._inner.apply(commit)


def test_units_after_a_deadlock_lock_exclusively_for_a_while() -> None:
    database = _Deadlocks(3)
    db = Database(database, "memory://deadlocks", _ENVIRONMENT)
    db.create_table("t")
    job = begin_job(database, "j", kind="map", shards=1, environment=_ENVIRONMENT)

    def count(txn: UnitTransaction, key: int, value: None) -> None:
        found = txn.get("t", "a", default=0)
        assert isinstance(found, int)
        txn.put("t", "a", found + 1)

    execution = UnitExecution(count, database, UnitSettings(buffering="server"), _ENVIRONMENT)
    ShardTask(execution, database, job, 0).run([Unit.of(number, None) for number in range(120)])
    assert db.get("t", "a") == 120
    assert database.exclusive[:3] == [False] * 3
    assert database.exclusive[3:103] == [True] * 100
    assert database.exclusive[103:] == [False] * 18


def test_a_unit_that_always_conflicts_locks_exclusively_at_last() -> None:
    """Several such units, which read and write the same cell, would wait for each other with shared locks."""
    database = _Deadlocks(-1)
    db = Database(database, "memory://conflicts", _ENVIRONMENT)
    db.create_table("t")
    job = begin_job(database, "j", kind="map", shards=1, environment=_ENVIRONMENT)

    def count(txn: UnitTransaction, key: int, value: None) -> None:
        found = txn.get("t", "a", default=0)
        assert isinstance(found, int)
        if not database.exclusive:
            db.add("t", "a")
        txn.put("t", "a", found + 1)

    execution = UnitExecution(count, database, UnitSettings(rounds=1), _ENVIRONMENT)
    found = ShardTask(execution, database, job, 0).run([Unit.of(1, None)])
    assert (found.locked, database.exclusive) == (1, [True])
    assert db.get("t", "a") == 3
