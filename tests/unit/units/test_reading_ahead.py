"""Test units whose cells are read with the commit of the units before them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.records.database import Database
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Outcome, Record
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import Job, begin_job
from holdfast.units.progress import Statistics
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Cell, Unit, UnitSettings, UnitTransaction

_ENVIRONMENT = Environment()


class _Ahead(MemoryBackend):
    """A database in memory that reads ahead.

    Attributes:
        before_commit: called before each commit that reads ahead.
        after_commit: called after it, before its reply arrives.
        reads: round trips of reads.
    """

    reads_ahead = True

    def __init__(self) -> None:
        super().__init__(_ENVIRONMENT.ids)
        self.before_commit: Callable[[], object] = lambda: None
        self.after_commit: Callable[[], object] = lambda: None
        self.reads = 0

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        self.before_commit()
        outcome = self.commit(commit)
        found = super().get_many(keys)
        self.after_commit()
        return outcome, found

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        self.reads += 1
        return super().get_many(keys)

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        before = self.reads
        outcomes = super().commit_group(commits)
        self.reads = before  # it has read here, in the database
        return outcomes


@pytest.fixture
def database() -> _Ahead:
    found = _Ahead()
    Database(found, "memory://ahead", _ENVIRONMENT).create_table("t")
    return found


def count(txn: UnitTransaction, key: int, cell: str) -> None:
    """Add 1 to a cell, by reading and writing it."""
    found = txn.get("t", cell, default=0)
    assert isinstance(found, int)
    txn.put("t", cell, found + 1)


def named(key: int, cell: str) -> Iterable[Cell]:
    return [("t", cell)]


def begun(database: _Ahead, name: str = "ahead") -> Job:
    return begin_job(database, name, kind="map", shards=1, environment=_ENVIRONMENT)


def run(
    database: _Ahead,
    cells: Sequence[str],
    *,
    group: int = 1,
    function: Callable[..., object] = count,
    reads: Callable[..., Iterable[Cell]] = named,
    job: Job | None = None,
) -> Statistics:
    """Run a unit for each cell."""
    execution = UnitExecution(function, database, UnitSettings(group=group), _ENVIRONMENT, reads=reads)
    task = ShardTask(execution, database, job or begun(database), 0)
    return task.run([Unit.of(number, cell) for number, cell in enumerate(cells)])


def value(database: _Ahead, cell: str) -> object:
    return Database(database, "memory://ahead", _ENVIRONMENT).get("t", cell)


@pytest.mark.parametrize("group", [1, 2, 3, 20])
def test_groups_after_the_first_take_one_round_trip(database: _Ahead, group: int) -> None:
    first, second = begun(database), begun(database, "many")
    database.reads = 0
    run(database, ["a"], group=group, job=first)
    few, database.reads = database.reads, 0
    many = run(database, ["a", "b"] * 10, group=group, job=second)
    assert database.reads == few
    assert many.units == 20
    assert many.conflicts == 0
    assert (value(database, "a"), value(database, "b")) == (11, 10)


def test_what_others_change_meanwhile_is_a_conflict(database: _Ahead) -> None:
    db = Database(database, "memory://ahead", _ENVIRONMENT)
    others = iter([lambda: db.put("t", "a", 100)])
    database.after_commit = lambda: next(others, lambda: None)()
    found = run(database, ["a"] * 5)
    assert value(database, "a") == 104, "the first unit, the other's write, the four units after it"
    assert found.conflicts == 1


def test_what_was_read_for_another_unit_is_not_validated(database: _Ahead) -> None:
    """Units that follow a group that was cut short are read again; nobody depends on what they were to read."""
    db = Database(database, "memory://ahead", _ENVIRONMENT)

    def choose(txn: UnitTransaction, key: int, cell: str) -> None:
        if key != 1:
            count(txn, key, cell)

    database.after_commit = lambda: db.add("t", "b")
    found = run(database, ["a", "b", "a"], function=choose)
    assert found.conflicts == 0
    assert value(database, "a") == 2


def test_a_twin_that_is_faster_leaves_nothing_to_be_done_twice(database: _Ahead) -> None:
    """The units that were read ahead were to be done when they were seen, and are not anymore when they run."""
    job = begun(database)
    cells = ["a", "b", "c"] * 4
    twins = iter([lambda: run(database, cells, job=job)])
    database.after_commit = lambda: next(twins, lambda: None)()
    found = run(database, cells, job=job)
    assert [value(database, cell) for cell in "abc"] == [4, 4, 4]
    assert found.units < len(cells)


@pytest.mark.parametrize("units", [3, 4, 5, 7])
def test_what_a_twin_has_done_before_a_commit_is_not_done_again(database: _Ahead, units: int) -> None:
    """The commit conflicts, and the group that was seen before it is done by then, too: a full one, or the last one."""
    job = begun(database)
    twins = iter([lambda: run(database, ["a"] * units, group=2, job=job)])
    database.before_commit = lambda: next(twins, lambda: None)()
    found = run(database, ["a"] * units, group=2, job=job)
    assert value(database, "a") == units
    assert (found.units, found.skipped) == (0, units)


def test_a_hint_that_fails_fails_its_own_unit(database: _Ahead) -> None:
    def fails(key: int, cell: str) -> Iterable[Cell]:
        if key == 2:
            raise KeyError(key)
        return named(key, cell)

    with pytest.raises(InvalidRequestError, match="unit=2"):
        run(database, ["a"] * 4, reads=fails)
    assert value(database, "a") == 2


def test_a_db_that_cannot_is_read_as_usual() -> None:
    plain = MemoryBackend(_ENVIRONMENT.ids)
    Database(plain, "memory://plain", _ENVIRONMENT).create_table("t")
    execution = UnitExecution(count, plain, UnitSettings(group=2), _ENVIRONMENT, reads=named)
    assert not execution.reads_ahead
    task = ShardTask(execution, plain, begin_job(plain, "j", kind="map", shards=1, environment=_ENVIRONMENT), 0)
    assert task.run([Unit.of(number, "a") for number in range(5)]).units == 5
    assert Database(plain, "memory://plain", _ENVIRONMENT).get("t", "a") == 5
