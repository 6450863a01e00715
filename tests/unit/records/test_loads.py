"""Load rows from tasks that fail, are repeated, or go on after the end; see `holdfast.records.loads`."""

from __future__ import annotations

import json
import pickle
from collections.abc import Collection, Iterable
from dataclasses import replace

import pytest

from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    FencedError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast.records.database import Database
from holdfast.records.keys import cells_range, dropped_range, load_key, loads_range, table_histories_range
from holdfast.records.load_task import LoadRow, LoadTask
from holdfast.records.loads import OPEN, Load, Loaded, abort_load, abort_old_loads, begin_load, finish_load
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Outcome, Record
from holdfast.transactions.memory import MemoryBackend


class Losing(MemoryBackend):
    """A database that counts reads, and loses the replies of the next commits, which have taken effect or not."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[bool] = []
        self.requests = 0

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        self.requests += 1
        return super().get_many(keys)

    def commit(self, commit: Commit) -> Outcome:
        if self.lost:
            if self.lost.pop(0):
                super().commit(commit)
            raise OutcomeUnknownError("the reply was lost")
        return super().commit(commit)


@pytest.fixture
def database() -> Losing:
    return Losing()


@pytest.fixture
def db(database: Losing) -> Database:
    return Database(database, "memory://loads", Environment())


def begin(db: Database, table: str = "words", *, overwrite: bool = False) -> Load:
    return begin_load(db.backend, db.environment, table, overwrite=overwrite)


def task(db: Database, load: Load, number: int = 0) -> LoadTask:
    return LoadTask(db.backend, db.environment, load, number)


def finish(db: Database, load: Load, *tasks: LoadTask) -> None:
    finish_load(db.backend, db.environment, load, [one.finish() for one in tasks])


def rows(*names: str, start: int = 0) -> list[LoadRow]:
    return [(name, {"n": start + number, "text": name}) for number, name in enumerate(names)]


def load_words(db: Database, *names: str, overwrite: bool = False) -> None:
    load = begin(db, overwrite=overwrite)
    attempt = task(db, load)
    attempt.write(rows(*names))
    finish(db, load, attempt)


def content(db: Database, table: str = "words") -> dict[object, object]:
    return dict(db.scan(table))


def leftovers(db: Database, tables: Iterable[str] = ("words",)) -> int:
    """Count the records that belong to no table, after a collection."""
    db.collect()
    known = {table.id for table in db.tables() if table.name in tables}
    ranges = [loads_range(), dropped_range()]
    inside = 0
    for table_id in known:
        for start, end in (cells_range(table_id), table_histories_range(table_id)):
            inside += len(db.backend.scan(start, end, 10_000).records)
    total = sum(len(db.backend.scan(start, end, 10_000).records) for start, end in ((b"Sc", b"Si"), *ranges))
    return total - inside


def test_a_new_table_appears_at_the_end(db: Database) -> None:
    load = pickle.loads(pickle.dumps(begin(db)))
    first, second = task(db, load, 0), task(db, load, 1)
    first.write(rows("a", "b"))
    second.write([("c", {"n": None, "text": "c"}), ("d", {"n": None})])
    with pytest.raises(NotFoundError):
        db.table("words")
    finish(db, load, first, second)
    assert content(db) == {"a": {"n": 0, "text": "a"}, "b": {"n": 1, "text": "b"}, "c": {"text": "c"}}
    assert leftovers(db) == 0


def test_an_empty_load_makes_an_empty_table(db: Database) -> None:
    load = begin(db)
    finish(db, load, task(db, load))
    assert content(db) == {}


@pytest.mark.parametrize("history", [0, 3])
def test_an_overwrite_replaces_everything_and_keeps_the_history_setting(db: Database, history: int) -> None:
    db.create_table("words", history=history)
    db.put("words", "old", 1)
    load = begin(db, overwrite=True)
    attempt = task(db, load)
    attempt.write(rows("new"))
    assert content(db) == {"old": {"value": 1}}
    finish(db, load, attempt)
    assert content(db) == {"new": {"n": 0, "text": "new"}}
    assert db.table("words").history == history
    if history:
        db.put("words", "new", 9, column="n")
        assert db.history("words", "new", column="n") == [(1, 0), (2, 9)]
    assert leftovers(db) == 0


def test_an_attempt_that_repeats_another_adds_nothing(db: Database) -> None:
    load = begin(db)
    dead, attempt = task(db, load), task(db, load)
    dead.write(rows("a", "b"))
    attempt.write(rows("a"))
    attempt.write(rows("b", start=1))
    finish(db, load, attempt)
    assert content(db) == {"a": {"n": 0, "text": "a"}, "b": {"n": 1, "text": "b"}}


@pytest.mark.parametrize("late", ["x", "a"])
def test_what_only_a_loser_has_written_is_not_published(db: Database, late: str) -> None:
    """Neither if it is a row of its own, nor if it is another value, which the numbers of cells do not show."""
    load = begin(db)
    loser, winner = task(db, load), task(db, load)
    winner.write(rows("a"))
    loser.write(rows(late, start=7))
    with pytest.raises(ConflictError, match="repeated task were not the same"):
        finish(db, load, winner)
    assert not abort_load(db.backend, db.environment, load)
    assert db.tables() == [] and leftovers(db) == 0


@pytest.mark.parametrize("columns", [{"n": 1}, {"other": 1}])
def test_two_rows_of_one_name_in_a_new_table(db: Database, columns: dict[str, int]) -> None:
    """Also if the rows have no column in common, so that no cell is written twice."""
    load = begin(db)
    first, second = task(db, load, 0), task(db, load, 1)
    first.write([("a", {"n": 1})])
    second.write([("a", columns)])
    with pytest.raises(InvalidRequestError, match="several rows have the same name, 1 row too many"):
        finish(db, load, first, second)


def test_how_many_rows_have_names_of_others_is_told(db: Database) -> None:
    load = begin(db)
    first, second = task(db, load, 0), task(db, load, 1)
    first.write(rows("a", "b"))
    second.write(rows("a", "b", "c"))
    with pytest.raises(InvalidRequestError, match="several rows have the same name, 2 rows too many"):
        finish(db, load, first, second)


def test_two_rows_of_one_name_in_one_batch_are_named(db: Database) -> None:
    with pytest.raises(InvalidRequestError, match=r"two of the rows have the same name.* row='a'"):
        task(db, begin(db)).write([("a", {"n": 1}), ("a", {"n": 2})])


def test_two_rows_of_one_name_in_an_append_are_named(db: Database) -> None:
    db.create_table("words")
    load = begin(db)
    first, second = task(db, load, 0), task(db, load, 1)
    first.write(rows("a"))
    for attempt in (first, second):
        with pytest.raises(InvalidRequestError, match=r"two of the rows have the same name.* row='a'"):
            attempt.write(rows("a"))


@pytest.mark.parametrize("end", ["finish", "abort"])
@pytest.mark.parametrize("existing", [False, True])
def test_a_zombie_writes_nothing_after_the_end(db: Database, existing: bool, end: str) -> None:
    if existing:
        db.create_table("words")
    load = begin(db)
    winner, zombie = task(db, load), task(db, load)
    winner.write(rows("a"))
    if end == "finish":
        finish(db, load, winner)
    else:
        assert not abort_load(db.backend, db.environment, load)
    before = content(db) if db.tables() else None
    with pytest.raises(FencedError, match="has ended"):
        zombie.write(rows("z"))
    assert (content(db) if db.tables() else None) == before
    assert leftovers(db) == 0


def test_a_sealed_load_takes_no_rows_although_it_is_not_finished(db: Database) -> None:
    load = begin(db)
    attempt = task(db, load)
    attempt.write(rows("a"))
    with pytest.raises(InvalidRequestError):
        finish_load(db.backend, db.environment, load, [replace(attempt.finish(), loaded=Loaded(2, 4, 0))])
    with pytest.raises(FencedError):
        attempt.write(rows("b"))
    finish(db, load, attempt)  # sealed twice


def test_an_append_adds_updates_and_deletes_cells(db: Database) -> None:
    load_words(db, "a", "b")
    load = begin(db)
    attempt = task(db, load)
    attempt.write([("b", {"n": 7, "text": None}), ("c", {"n": 8})])
    assert attempt.finish().loaded == Loaded(rows=2, cells=2)
    finish(db, load, attempt)
    assert content(db) == {"a": {"n": 0, "text": "a"}, "b": {"n": 7}, "c": {"n": 8}}
    assert leftovers(db) == 0


def test_a_repeated_attempt_of_an_append_undoes_no_work_of_others(db: Database) -> None:
    db.create_table("words", history=True)
    load = begin(db)
    task(db, load).write(rows("a"))
    db.put("words", "a", 100, column="n")
    attempt = task(db, load)
    attempt.write(rows("a", "b"))
    finish(db, load, attempt)
    assert db.history("words", "a", column="n") == [(1, 0), (2, 100)]
    assert content(db)["b"] == {"n": 1, "text": "b"}


def test_an_append_notices_that_the_table_was_replaced(db: Database) -> None:
    load_words(db, "a")
    load = begin(db)
    load_words(db, "b", overwrite=True)
    with pytest.raises(ConflictError, match="another table has the name now"):
        task(db, load).write(rows("c"))
    assert content(db) == {"b": {"n": 0, "text": "b"}}


def test_of_two_overwrites_at_once_the_first_wins(db: Database) -> None:
    load_words(db, "a")
    one, two = begin(db, overwrite=True), begin(db, overwrite=True)
    tasks = [task(db, load) for load in (one, two)]
    for attempt, name in zip(tasks, "bc", strict=True):
        attempt.write(rows(name))
    finish(db, one, tasks[0])
    with pytest.raises(ConflictError, match="another table has the name now"):
        finish(db, two, tasks[1])
    abort_load(db.backend, db.environment, two)
    assert content(db) == {"b": {"n": 0, "text": "b"}}
    assert leftovers(db) == 0


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("happened", [False, True])
def test_lost_replies_change_nothing(database: Losing, db: Database, happened: bool, existing: bool) -> None:
    if existing:
        db.create_table("words", history=True)
    database.lost = [happened]
    load = begin(db)
    attempt = task(db, load)
    database.lost = [happened]
    attempt.write(rows("a"))
    database.lost = [happened]
    attempt.write(rows("b", start=1))
    database.lost = [happened, happened]
    finish(db, load, attempt)
    assert content(db) == {"a": {"n": 0, "text": "a"}, "b": {"n": 1, "text": "b"}}
    if existing:
        assert db.history("words", "b", column="n") == [(1, 1)]
    assert abort_old_loads(database, db.environment, -1) == happened, "a load of which nobody knows"
    assert leftovers(db) == 0


def test_an_abort_after_the_end_leaves_the_table(database: Losing, db: Database) -> None:
    load = begin(db)
    attempt = task(db, load)
    attempt.write(rows("a"))
    database.lost = []
    finish(db, load, attempt)
    assert not abort_load(db.backend, db.environment, load)
    assert content(db) == {"a": {"n": 0, "text": "a"}}


def test_an_abort_sees_that_the_driver_died_after_the_decision(database: Losing, db: Database) -> None:
    load = begin(db)
    attempt = task(db, load)
    attempt.write(rows("a"))

    class Died(BaseException):
        pass

    def die(commit: Commit) -> Outcome:
        if commit.deletes:  # the last step: the record of the load is deleted
            raise Died
        return MemoryBackend.commit(database, commit)

    database.commit = die  # type: ignore[method-assign]  # the driver dies in this call
    with pytest.raises(Died):
        finish(db, load, attempt)
    del database.commit
    assert abort_load(db.backend, db.environment, load)
    assert content(db) == {"a": {"n": 0, "text": "a"}}
    assert leftovers(db) == 0


def test_a_load_whose_last_step_fails_has_taken_effect(database: Losing, db: Database) -> None:
    load = begin(db)
    attempt = task(db, load)
    attempt.write(rows("a"))

    def fail(commit: Commit) -> Outcome:
        if commit.deletes:  # the last step: the record of the load is deleted
            raise UnavailableError("the database is not available")
        return MemoryBackend.commit(database, commit)

    database.commit = fail  # type: ignore[method-assign]  # the database fails in this call
    finish(db, load, attempt)
    del database.commit
    assert content(db) == {"a": {"n": 0, "text": "a"}}
    db.collect(loads_older_than_s=-1)
    assert leftovers(db) == 0


def test_a_collection_aborts_loads_of_dead_drivers(db: Database) -> None:
    load = begin(db)
    attempt = task(db, load)
    attempt.write(rows("a"))
    db.collect()
    attempt.write(rows("b"))
    report = attempt.finish()
    assert db.collect(loads_older_than_s=-1.0) == 4 + 1  # the cells, and what the attempt has counted
    with pytest.raises(FencedError, match="has ended"):
        attempt.finish()
    with pytest.raises(FencedError, match="aborted"):
        finish_load(db.backend, db.environment, load, [report])
    assert leftovers(db) == 0


@pytest.mark.parametrize("existing", [False, True])
def test_what_cannot_be_stored_is_named(db: Database, existing: bool) -> None:
    if existing:
        db.create_table("words")
    attempt = task(db, begin(db))
    with pytest.raises(InvalidRequestError, match="row='b' column='n'"):
        attempt.write([*rows("a"), ("b", {"n": object()})])  # type: ignore[dict-item]  # the mistake under test
    assert attempt.finish().loaded == Loaded()


@pytest.mark.parametrize("damage", [b"{}", b"[]", b"\xff", b'{"state":"open"}'])
def test_a_damaged_record_is_reported(db: Database, damage: bytes) -> None:
    load = begin(db)
    db.backend.commit(Commit(puts={load_key(load.id): damage}))
    with pytest.raises(CorruptDataError, match="record of a load"):
        task(db, load).write(rows("a"))


@pytest.mark.parametrize(
    "damage",
    [
        {"hidden": 2**63},
        {"hidden": -1},
        {"before": 2**63},
        {"history": -1},
        {"appends": 1},
        {"started_s": "then"},
        {"state": "closed"},
        {"table": "a b"},
    ],
    ids=str,
)
def test_a_damaged_field_is_reported(db: Database, damage: dict[str, object]) -> None:
    load = begin(db)
    fields = json.loads(load.to_bytes(OPEN))
    db.backend.commit(Commit(puts={load.key: json.dumps(fields | damage).encode()}))
    with pytest.raises(CorruptDataError, match="record of a load"):
        task(db, load).write(rows("a"))


def test_a_batch_reads_what_is_there_in_one_request(database: Losing, db: Database) -> None:
    requests = []
    for name, history in (("plain", 0), ("words", 2)):
        db.create_table(name, history=history)
        attempt = task(db, begin(db, name))
        before = database.requests
        attempt.write(rows("a", "b", "c"))
        requests.append(database.requests - before)
    assert requests[1] == requests[0] + 1
