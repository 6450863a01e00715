"""A load that has reported success is all there, although the database has crashed and lost commits meanwhile.

A database may be set up to make commits durable only after it has answered; see `DurableStore.make_durable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from holdfast.errors import ConflictError, FencedError
from holdfast.records.load_record import Load, Loaded
from holdfast.records.load_task import LoadRow, LoadTask
from holdfast.records.loads import abort_old_loads, begin_load, finish_load
from holdfast.records.store import Store
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Outcome, Record
from holdfast.transactions.memory.store import MemoryTransactionStore

TASKS: list[list[list[LoadRow]]] = [
    [[("a", {"n": 1}), ("b", {"n": 2})], [("c", {"n": 3})]],
    [[("d", {"n": 4})]],
]
"""The batches of each task."""

ATTEMPTS = 4
LOADED = {row: dict(columns) for batches in TASKS for batch in batches for row, columns in batch}


class Crashing(MemoryTransactionStore):
    """A store that crashes before one of its calls, and loses some of the newest commits that are not durable."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.loses = 0, 0
        self.at: int | None = None
        self.then: Callable[[], object] = lambda: None
        self.unsaved: list[dict[bytes, Record]] = []

    def crash(self, loses: int) -> None:
        lost = self.unsaved[-loses:] if loses else []
        if lost:
            self._records, self._keys = lost[0], sorted(lost[0])
            del self.unsaved[-loses:]

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._count()
        before = dict(self._records)
        outcomes = super().commit_group(commits)
        if before != self._records:
            self.unsaved.append(before)
        return outcomes

    def make_durable(self) -> None:
        self._count()
        self.unsaved.clear()

    def _count(self) -> None:
        if self.calls == self.at:
            self.at = None
            self.crash(self.loses)
            self.then()
        self.calls += 1


def load_like_spark(store: Store, *, overwrite: bool) -> None:
    """Load the rows: a task that fails is run again."""
    database, environment = store.database, store.environment
    load = begin_load(database, environment, "words", overwrite=overwrite)
    loaded = [_run_task(store, load, number) for number in range(len(TASKS))]
    finish_load(database, environment, load, sum(loaded, Loaded()))


def _run_task(store: Store, load: Load, number: int) -> Loaded:
    for _ in range(ATTEMPTS):
        task = LoadTask(store.database, store.environment, load, number)
        with suppress(ConflictError):
            for batch in TASKS[number]:
                task.write(batch)
            return task.finish()
    raise AssertionError("the task fails again and again")


@pytest.mark.parametrize(("existing", "overwrite"), [(False, False), (True, False), (True, True)])
def test_no_crash_takes_rows_from_a_load_that_has_succeeded(existing: bool, overwrite: bool) -> None:
    """A crash before each call, with each number of lost commits, and once more after the end."""
    before = {"old": {"n": 0}} if existing else {}
    expected = LOADED if overwrite else before | LOADED
    calls = _load_with_a_crash(existing, overwrite, None, 0, expected)
    repeated = 0
    for at in range(calls):
        for loses in range(1, calls):
            repeated += _load_with_a_crash(existing, overwrite, at, loses, expected) > calls
    assert repeated > calls, "many crashes have cost something"


def _load_with_a_crash(existing: bool, overwrite: bool, at: int | None, loses: int, expected: object) -> int:
    """Check what a load leaves, and return how many calls it took."""
    database = Crashing()
    store = Store(database, "memory://loads", Environment())
    if existing:
        store.create_table("words")
        store.put("words", "old", 0, column="n")
    database.make_durable()
    database.calls, database.at, database.loses = 0, at, loses
    load_like_spark(store, overwrite=overwrite)
    calls = database.calls
    database.crash(calls)
    assert dict(store.scan("words")) == expected, f"a crash before call {at} loses {loses} commits"
    return calls


def test_rows_that_come_after_the_count_are_noticed_although_a_crash_has_undone_the_seal() -> None:
    database = Crashing()
    store = Store(database, "memory://loads", Environment())
    load = begin_load(database, store.environment, "words", overwrite=True)
    task, late = (LoadTask(database, store.environment, load, 0) for _ in range(2))
    task.write([("a", {"n": 1})])
    loaded = task.finish()
    database.at, database.loses = database.calls + 1, 1  # between the seal and the end
    database.then = lambda: late.write([("b", {"n": 2})])
    with pytest.raises(ConflictError, match="not the same"):
        finish_load(database, store.environment, load, loaded)
    assert database.at is None
    assert store.tables() == []


def test_a_load_that_is_aborted_after_a_crash_has_undone_its_end_reports_no_success() -> None:
    database = Crashing()
    store = Store(database, "memory://loads", Environment())
    load = begin_load(database, store.environment, "words", overwrite=True)
    task = LoadTask(database, store.environment, load, 0)
    task.write([("a", {"n": 1})])
    loaded = task.finish()
    database.at, database.loses = database.calls + 2, 1  # between the end and what makes it durable
    database.then = lambda: abort_old_loads(database, store.environment, -1)
    with pytest.raises(FencedError, match="aborted"):
        finish_load(database, store.environment, load, loaded)
    assert database.at is None
    assert store.tables() == []


@pytest.mark.parametrize("history", [False, True])
def test_no_crash_leaves_records_of_a_dropped_table_behind(history: bool) -> None:
    """A crash before each call, with each number of lost commits: what it brings back is dropped or collected again."""
    calls, at = 1, 0
    while at < calls:
        for loses in range(1, calls + 1):
            database = Crashing()
            store = Store(database, "memory://loads", Environment())
            store.create_table("words", history=history)
            store.put("words", "a", 0, column="n")
            database.make_durable()
            database.calls, database.at, database.loses = 0, at, loses
            store.drop_table("words")
            calls = database.calls
            store.collect()
            for table in store.tables():
                store.drop_table(table.name)
            left = database.scan(b"", b"\xff", 10).records
            assert not left, f"a crash before call {at} loses {loses} commits"
        at += 1
