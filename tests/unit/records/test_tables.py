"""Tables: created once, dropped in one step, and never mixed up with a later table of the same name."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import pytest

import holdfast
from holdfast.errors import ConflictError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.records import CellTransaction, Database, open_database
from holdfast.records.keys import cells_range, dropped_mark_key, dropped_marks_range, table_histories_range, table_key
from holdfast.records.tables import ALL_VERSIONS, Table, TableCache, list_tables
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Conflict
from holdfast.transactions.transaction import Transaction
from tests.unit.records.databases import FAST, SERVERS, begin, memory_db, open_dbs
from tests.units_world import Shaky, refused_after_failovers


def _records(db: Database) -> int:
    return len(db.backend.scan(b"S", b"T", 10_000).records)


def test_create_list_and_find() -> None:
    db = memory_db()
    assert db.tables() == []
    with pytest.raises(NotFoundError, match="the database has no tables"):
        db.table("stock")
    created = db.create_table("stock")
    assert db.table("stock") == created
    assert [one.name for one in db.tables()] == ["stock"]
    for name, history, length in (("a", True, ALL_VERSIONS), ("Z.z-_9", 3, 3), ("9", False, 0)):
        assert db.create_table(name, history=history).history == length
    assert [one.name for one in db.tables()] == ["9", "Z.z-_9", "a", "stock"]
    with pytest.raises(NotFoundError, match="did you mean stock"):
        db.get("stok", "apples")


def test_many_tables_are_listed_page_by_page() -> None:
    db = memory_db()
    for number in range(1100):
        db.create_table(f"t{number:04}")
    assert [one.name for one in db.tables()] == [f"t{number:04}" for number in range(1100)]


def test_an_existing_table_is_kept() -> None:
    db = memory_db()
    db.create_table("stock", history=2)
    db.put("stock", "apples", 5)
    with pytest.raises(ConflictError, match="allow that with exist_ok"):
        db.create_table("stock", history=2)
    with pytest.raises(ConflictError, match="another history: pass its history, or drop it, which deletes its rows"):
        db.create_table("stock", exist_ok=True)
    assert db.create_table("stock", history=2, exist_ok=True) == db.table("stock")
    assert db.get("stock", "apples") == 5


@pytest.mark.parametrize("backend", [*FAST, *SERVERS])
def test_a_table_takes_the_place_of_another_one(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as (db, other):
        for name in ("stock", "new"):
            db.create_table(name)
            db.put(name, "apples", name)
        db.put("stock", "pears", 1)
        assert db.rename_table("new", "stock", replace=True) == db.table("stock")
        assert dict(other.scan("stock")) == {"apples": {"value": "new"}}
        assert [one.name for one in db.tables()] == ["stock"]
        assert db.backend.scan(*dropped_marks_range(), 9).records == []
        assert db.rename_table("stock", "goods").name == "goods"
        assert other.get("goods", "apples") == "new"
        assert _records(db) == 2


def test_what_cannot_be_renamed() -> None:
    db = memory_db()
    db.create_table("stock")
    db.create_table("new")
    with pytest.raises(ConflictError, match="a table has this name"):
        db.rename_table("new", "stock")
    with pytest.raises(ConflictError, match="a table has this name"):
        db.rename_table("stock", "stock", replace=True)
    with pytest.raises(NotFoundError, match="did you mean stock"):
        db.rename_table("stok", "new", replace=True)
    with pytest.raises(InvalidRequestError, match="the name of a table"):
        db.rename_table("stock", "a b")
    assert [one.name for one in db.tables()] == ["new", "stock"]


@pytest.mark.parametrize("name", ["stock", "new"])
def test_a_transaction_that_uses_a_table_fails_if_its_name_changes(name: str) -> None:
    db = memory_db()
    for table in ("stock", "new"):
        db.create_table(table)
    cells = begin(db.backend)
    cells.put(name, "apples", 1)
    cells.end_unit()
    db.rename_table("new", "stock", replace=True)
    assert isinstance(db.backend.commit(cells.to_commit()), Conflict)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "-a", ".a", "a" * 65, "a\n", "a\0", None, 1, b"a"])
def test_other_names_are_refused(name: Any) -> None:
    db = memory_db()
    for call in (
        lambda: db.create_table(name),
        lambda: db.drop_table(name),
        lambda: db.table(name),
        lambda: db.get(name, "a"),
        lambda: list(db.scan(name)),
    ):
        with pytest.raises(InvalidRequestError, match="the name of a table"):
            call()


@pytest.mark.parametrize("history", [-1, None, "all", 1.0, 2**62])
def test_other_histories_are_refused(history: Any) -> None:
    with pytest.raises(InvalidRequestError, match="the history of a table"):
        memory_db().create_table("stock", history=history)


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("backend", [*FAST, *SERVERS])
def test_cells_of_a_dropped_table_never_appear_again(
    backend: str, history: bool, request: pytest.FixtureRequest
) -> None:
    with open_dbs(backend, request) as (db, other):
        db.create_table("kept")
        db.put("kept", "apples", 1)
        db.create_table("stock", history=history)
        db.transact(lambda cells: [cells.put("stock", number, number) for number in range(600)])
        other.drop_table("stock")
        with pytest.raises(NotFoundError):
            db.get("stock", 5)
        assert _records(db) == 2
        db.create_table("stock", history=history)
        assert db.get("stock", 5) is None
        assert list(other.scan("stock")) == []
        if history:
            assert db.history("stock", 5) == []
        assert db.get("kept", "apples") == 1


def test_what_a_crash_left_of_a_dropped_table_is_collected() -> None:
    db = memory_db()
    table = db.create_table("stock", history=True)
    for number in range(1200):
        db.put("stock", number, number)
    db.backend.commit(Commit(deletes=[table.key], puts={dropped_mark_key(table.id): b""}))  # and then it died
    assert db.create_table("stock").id != table.id
    db.put("stock", 1, "new")
    assert db.collect() == 2400
    assert db.collect() == 0
    assert dict(db.scan("stock")) == {1: {"value": "new"}}
    for first, last in (cells_range(table.id), table_histories_range(table.id), dropped_marks_range()):
        assert not db.backend.scan(first, last, 1).records


def test_a_table_whose_drop_a_failover_undoes_is_not_reported_as_dropped_and_loses_nothing() -> None:
    rows = {row: {"value": row} for row in range(100)}

    def prepare(db: Database) -> None:
        db.create_table("t")
        db.put_many("t", ((row, row) for row in rows))

    def drop(db: Database) -> None:
        assert dict(db.scan("t")) == rows
        db.drop_table("t")
        with db.snapshot() as seen:
            assert not list_tables(seen.reader)

    assert refused_after_failovers(prepare, drop, "drop it again") > 0


def test_a_table_that_others_make_while_one_of_its_name_is_dropped_stays() -> None:
    other = memory_db()
    shaky = Shaky(other.backend)
    db = Database(shaky, "memory://", Environment())
    db.create_table("t")
    shaky.calls.clear()

    def make(_number: int, name: str) -> None:
        if name == "commit" and shaky.calls.count(name) == 1:
            other.create_table("t")

    shaky.after = make
    db.drop_table("t")
    other.put("t", "a", 1)


def test_a_missing_table_cannot_be_dropped() -> None:
    db = memory_db()
    db.create_table("stock")
    with pytest.raises(NotFoundError, match="did you mean stock"):
        db.drop_table("stocks")


@pytest.mark.parametrize("backend", FAST)
def test_who_uses_a_table_that_is_dropped_meanwhile_conflicts(backend: str, request: pytest.FixtureRequest) -> None:
    operations = ["get", "put", "add", "delete", "scan", "get_row"]
    with open_dbs(backend, request) as (db, other):
        db.create_table("log")
        for case in product(operations, (False, True), (False, True), (False, True)):
            operation, history, recreated, cached = case
            db.create_table("stock", history=history)
            db.put("stock", "apples", 5)
            cells = begin(db.backend)
            if cached:  # the definition is not among the reads
                cells = CellTransaction(Transaction(db.backend), TableCache(db.backend).get)
            _use(cells, operation)
            cells.put("log", "done", operation)
            cells.end_unit()
            other.drop_table("stock")
            if recreated:
                other.create_table("stock", history=history)
            before = _records(other)
            outcome = db.backend.commit(cells.to_commit())
            assert isinstance(outcome, Conflict), case
            assert table_key("stock") in outcome.keys, case
            assert (other.get("log", "done"), _records(other)) == (None, before), case
            if recreated:
                other.drop_table("stock")


def _use(cells: CellTransaction, operation: str) -> None:
    if operation == "put":
        cells.put("stock", "apples", 1)
    elif operation == "scan":
        cells.scan("stock")
    else:
        getattr(cells, operation)("stock", "apples")


def test_a_function_whose_table_is_dropped_meanwhile_says_so_and_changes_nothing() -> None:
    db = memory_db()
    db.create_table("log")
    db.create_table("stock")
    runs = []

    def work(cells: CellTransaction) -> None:
        cells.put("log", "done", 1)
        cells.add("stock", "apples", 1)
        if not runs:
            db.drop_table("stock")
        runs.append(1)

    with pytest.raises(NotFoundError, match="no such table"):
        db.transact(work)
    assert len(runs) == 1, "the second run ends at the missing table"
    assert db.get("log", "done") is None


def test_an_old_entry_in_the_cache_of_tables_is_noticed() -> None:
    db = memory_db()
    cache = TableCache(db.backend)
    db.create_table("stock")
    old = cache.get("stock")
    db.drop_table("stock")
    new = db.create_table("stock")
    assert cache.get("stock") == old
    cells = CellTransaction(begin(db.backend)._read_set, cache.get)
    cells.put("stock", "apples", 1)
    cells.end_unit()
    assert isinstance(db.backend.commit(cells.to_commit()), Conflict)
    cache.forget()
    assert cache.get("stock") == new


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"[]",
        b"nonsense",
        b'{"id": -1, "history": 0}',
        b'{"id": %d, "history": 0}' % 2**63,
        b'{"id": true, "history": 0}',
        b'{"id": 1, "history": true}',
        b'{"id": 1, "history": -1}',
        b"\xff",
    ],
)
def test_a_damaged_definition_is_told(value: bytes) -> None:
    db = memory_db()
    db.backend.commit(Commit(puts={table_key("stock"): value}))
    for call in (db.tables, lambda: db.get("stock", "a"), lambda: db.drop_table("stock")):
        with pytest.raises(CorruptDataError, match="definition"):
            call()


@pytest.mark.parametrize("table_id", [0, 2**63 - 1])
def test_ids_have_63_bits(table_id: int) -> None:
    db = memory_db()
    table = Table("stock", table_id, 0, 0)
    db.backend.commit(Commit(puts={table.key: table.to_bytes()}))
    db.put("stock", "apples", 5)
    assert db.table("stock").id == table_id and db.get("stock", "apples") == 5


def test_a_db_is_opened_by_its_url(tmp_path: Any) -> None:
    url = f"sqlite://{tmp_path}/shop.db"
    with pytest.raises(NotFoundError):
        open_database(url)
    with holdfast.open_database(url, create=True) as db:
        db.create_table("stock")
        assert repr(db) == f"Database({url!r})"
        assert db.full_url == url
        with pytest.raises(InvalidRequestError, match="pass its URL"):
            pickle.dumps(db)
    db.close()
    with open_database(url) as again:
        assert [table.name for table in again.tables()] == ["stock"]
