"""A load that has reported success is all there, although the database has crashed and lost commits meanwhile.

A database may be set up to make commits durable only after it has answered; see `Backend.make_durable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from holdfast.errors import ConflictError, FencedError, UnavailableError
from holdfast.records.database import Database
from holdfast.records.load_task import LoadRow, LoadTask
from holdfast.records.loads import AttemptReport, Load, abort_load, abort_old_loads, begin_load, finish_load
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Outcome, Record
from holdfast.transactions.memory import MemoryBackend
from tests.forgetful_database import ForgetfulDatabase
from tests.units_world import Shaky

TASKS: list[list[list[LoadRow]]] = [
    [[("a", {"n": 1}), ("b", {"n": 2})], [("c", {"n": 3})]],
    [[("d", {"n": 4})]],
]
"""The batches of each task."""

ATTEMPTS = 4
LOADED = {row: dict(columns) for batches in TASKS for batch in batches for row, columns in batch}


class Crashing(MemoryBackend):
    """A database that crashes before one of its calls, and loses some of the newest commits that are not durable.

    Args:
        keeps: whether `make_durable` makes anything durable: not if a replica takes over that lags.
    """

    def __init__(self, *, keeps: bool = True) -> None:
        super().__init__()
        self.keeps = keeps
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
        if self.keeps:
            self.unsaved.clear()

    def _count(self) -> None:
        if self.calls == self.at:
            self.at = None
            self.crash(self.loses)
            self.then()
        self.calls += 1


def load_like_spark(db: Database, *, overwrite: bool) -> None:
    """Load the rows: a task that fails is run again."""
    database, environment = db.backend, db.environment
    load = begin_load(database, environment, "words", overwrite=overwrite)
    finish_load(database, environment, load, [_run_task(db, load, number) for number in range(len(TASKS))])


def _run_task(db: Database, load: Load, number: int) -> AttemptReport:
    for _ in range(ATTEMPTS):
        task = LoadTask(db.backend, db.environment, load, number)
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
    db = Database(database, "memory://loads", Environment())
    if existing:
        db.create_table("words")
        db.put("words", "old", 0, column="n")
    database.make_durable()
    database.calls, database.at, database.loses = 0, at, loses
    load_like_spark(db, overwrite=overwrite)
    calls = database.calls
    database.crash(calls)
    assert dict(db.scan("words")) == expected, f"a crash before call {at} loses {loses} commits"
    return calls


@pytest.mark.parametrize(("existing", "overwrite"), [(False, False), (True, False), (True, True)])
def test_no_failover_takes_rows_from_a_load_that_reports_success_later(existing: bool, overwrite: bool) -> None:
    """Before each call, with each number of lost commits. A load that is refused says so, and may be repeated."""
    expected = LOADED if overwrite or not existing else {"old": {"n": 0}} | LOADED
    database, db = _begun(existing)
    load_like_spark(db, overwrite=overwrite)
    calls, refused = database.calls, 0
    for at in range(calls):
        for loses in range(1, at + 1):
            database, db = _begun(existing)
            database.at, database.loses = at, loses
            try:
                load_like_spark(db, overwrite=overwrite)
            except (ConflictError, FencedError):
                refused += 1
                load_like_spark(db, overwrite=overwrite)
            assert dict(db.scan("words")) == expected, f"a failover before call {at} loses {loses} commits"
    assert refused > calls


def _begun(existing: bool) -> tuple[Crashing, Database]:
    """Return a database that loses what comes from now on."""
    database = Crashing(keeps=False)
    db = Database(database, "memory://loads", Environment())
    if existing:
        db.create_table("words")
        db.put("words", "old", 0, column="n")
    database.unsaved.clear()
    database.calls = 0
    return database, db


@pytest.mark.parametrize("attempts", [1, 2])
@pytest.mark.parametrize(("existing", "overwrite"), [(False, False), (True, False), (True, True)])
def test_rows_that_a_failover_loses_after_their_task_are_to_be_loaded_again(
    existing: bool, overwrite: bool, attempts: int
) -> None:
    database, db = _begun(existing)
    load = begin_load(database, db.environment, "words", overwrite=overwrite)
    tasks = [LoadTask(database, db.environment, load, 0) for _ in range(attempts)]
    for task in tasks:
        task.write([("a", {"n": 1})])
    empty = LoadTask(database, db.environment, load, 1)
    reports = [tasks[-1].finish(), empty.finish()]
    database.crash(1)
    with pytest.raises(ConflictError, match=r"lost rows that tasks had written.*: load them again"):
        finish_load(database, db.environment, load, reports)
    abort_load(database, db.environment, load)
    load_like_spark(db, overwrite=overwrite)
    assert db.get("words", "a", column="n") == 1


@pytest.mark.parametrize("by", ["a failover", "an abort"])
@pytest.mark.parametrize("overwrite", [True, False])
def test_rows_that_are_lost_while_they_are_counted_are_not_taken_for_rows_with_one_name(
    overwrite: bool, by: str
) -> None:
    database = ForgetfulDatabase(keeps=False)
    shaky, environment = Shaky(database), Environment()
    load = begin_load(database, environment, "words", overwrite=overwrite)
    task = LoadTask(database, environment, load, 0)
    task.write([("a", {"n": 1})])
    report = task.finish()

    def lose(_number: int, name: str) -> None:
        if name == "scan" and shaky.calls.count(name) == 1:
            if by == "a failover":
                database.forget(2)  # the seal, and the batch
            else:
                abort_load(database, environment, load)
                Database(database, "memory://", environment).collect()

    shaky.before = lose
    with pytest.raises((ConflictError, FencedError), match=r"load them again|aborted"):
        finish_load(shaky, environment, load, [report])


def test_rows_that_come_after_the_count_are_noticed_although_a_crash_has_undone_the_seal() -> None:
    database = Crashing()
    db = Database(database, "memory://loads", Environment())
    load = begin_load(database, db.environment, "words", overwrite=True)
    task, late = (LoadTask(database, db.environment, load, 0) for _ in range(2))
    task.write([("a", {"n": 1})])
    report = task.finish()
    database.at, database.loses = database.calls + 1, 1  # between the seal and the end
    database.then = lambda: late.write([("b", {"n": 2})])
    with pytest.raises(ConflictError, match="not the same"):
        finish_load(database, db.environment, load, [report])
    assert database.at is None
    assert db.tables() == []


def test_a_load_that_is_aborted_after_a_crash_has_undone_its_end_reports_no_success() -> None:
    database = Crashing()
    db = Database(database, "memory://loads", Environment())
    load = begin_load(database, db.environment, "words", overwrite=True)
    task = LoadTask(database, db.environment, load, 0)
    task.write([("a", {"n": 1})])
    report = task.finish()
    database.at, database.loses = database.calls + 2, 1  # between the end and what makes it durable
    database.then = lambda: abort_old_loads(database, db.environment, -1)
    with pytest.raises(FencedError, match="aborted"):
        finish_load(database, db.environment, load, [report])
    assert database.at is None
    assert db.tables() == []


def test_a_database_that_loses_each_end_of_a_load_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Crashing()
    db = Database(database, "memory://loads", Environment())
    load = begin_load(database, db.environment, "words", overwrite=True)
    task = LoadTask(database, db.environment, load, 0)
    task.write([("a", {"n": 1})])
    report = task.finish()
    monkeypatch.setattr(database, "make_durable", lambda: database.crash(1))
    with pytest.raises(UnavailableError, match="loses what it has committed"):
        finish_load(database, db.environment, load, [report])
    monkeypatch.undo()
    finish_load(database, db.environment, load, [report])
    assert db.get("words", "a", column="n") == 1


@pytest.mark.parametrize("history", [False, True])
def test_no_crash_leaves_records_of_a_dropped_table_behind(history: bool) -> None:
    """A crash before each call, with each number of lost commits: what it brings back is dropped or collected again."""
    calls, at = 1, 0
    while at < calls:
        for loses in range(1, calls + 1):
            database = Crashing()
            db = Database(database, "memory://loads", Environment())
            db.create_table("words", history=history)
            db.put("words", "a", 0, column="n")
            database.make_durable()
            database.calls, database.at, database.loses = 0, at, loses
            with suppress(ConflictError):  # the drop itself is lost
                db.drop_table("words")
            calls = database.calls
            db.collect()
            for table in db.tables():
                db.drop_table(table.name)
            left = database.scan(b"", b"\xff", 10).records
            assert not left, f"a crash before call {at} loses {loses} commits"
        at += 1
