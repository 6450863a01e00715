"""Tables: created once, dropped in one step, and never mixed up with a later table of the same name."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import pytest

import holdfast
from holdfast.errors import ConflictError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.records import CellTransaction, Store, open_store
from holdfast.records.keys import cells_range, dropped_key, dropped_range, table_histories_range, table_key
from holdfast.records.tables import ALL_VERSIONS, Table, TableCache, list_tables
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Conflict
from holdfast.transactions.transaction import Transaction
from tests.unit.records.stores import FAST, SERVERS, begin, memory_store, open_stores
from tests.units_world import Shaky, refused_after_failovers


def _records(store: Store) -> int:
    return len(store.database.scan(b"S", b"T", 10_000).records)


def test_create_list_and_find() -> None:
    store = memory_store()
    assert store.tables() == []
    with pytest.raises(NotFoundError, match="the store has no tables"):
        store.table("stock")
    created = store.create_table("stock")
    assert store.table("stock") == created
    assert [one.name for one in store.tables()] == ["stock"]
    for name, history, length in (("a", True, ALL_VERSIONS), ("Z.z-_9", 3, 3), ("9", False, 0)):
        assert store.create_table(name, history=history).history == length
    assert [one.name for one in store.tables()] == ["9", "Z.z-_9", "a", "stock"]
    with pytest.raises(NotFoundError, match="did you mean stock"):
        store.get("stok", "apples")


def test_many_tables_are_listed_page_by_page() -> None:
    store = memory_store()
    for number in range(1100):
        store.create_table(f"t{number:04}")
    assert [one.name for one in store.tables()] == [f"t{number:04}" for number in range(1100)]


def test_an_existing_table_is_kept() -> None:
    store = memory_store()
    store.create_table("stock", history=2)
    store.put("stock", "apples", 5)
    with pytest.raises(ConflictError, match="allow that with exist_ok"):
        store.create_table("stock", history=2)
    with pytest.raises(ConflictError, match="another history: pass its history, or drop it, which deletes its rows"):
        store.create_table("stock", exist_ok=True)
    assert store.create_table("stock", history=2, exist_ok=True) == store.table("stock")
    assert store.get("stock", "apples") == 5


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "-a", ".a", "a" * 65, "a\n", "a\0", None, 1, b"a"])
def test_other_names_are_refused(name: Any) -> None:
    store = memory_store()
    for call in (
        lambda: store.create_table(name),
        lambda: store.drop_table(name),
        lambda: store.table(name),
        lambda: store.get(name, "a"),
        lambda: list(store.scan(name)),
    ):
        with pytest.raises(InvalidRequestError, match="the name of a table"):
            call()


@pytest.mark.parametrize("history", [-1, None, "all", 1.0, 2**62])
def test_other_histories_are_refused(history: Any) -> None:
    with pytest.raises(InvalidRequestError, match="the history of a table"):
        memory_store().create_table("stock", history=history)


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("backend", [*FAST, *SERVERS])
def test_cells_of_a_dropped_table_never_appear_again(
    backend: str, history: bool, request: pytest.FixtureRequest
) -> None:
    with open_stores(backend, request) as (store, other):
        store.create_table("kept")
        store.put("kept", "apples", 1)
        store.create_table("stock", history=history)
        store.transact(lambda cells: [cells.put("stock", number, number) for number in range(600)])
        other.drop_table("stock")
        with pytest.raises(NotFoundError):
            store.get("stock", 5)
        assert _records(store) == 2
        store.create_table("stock", history=history)
        assert store.get("stock", 5) is None
        assert list(other.scan("stock")) == []
        if history:
            assert store.history("stock", 5) == []
        assert store.get("kept", "apples") == 1


def test_what_a_crash_left_of_a_dropped_table_is_collected() -> None:
    store = memory_store()
    table = store.create_table("stock", history=True)
    for number in range(1200):
        store.put("stock", number, number)
    store.database.commit(Commit(deletes=[table.key], puts={dropped_key(table.id): b""}))  # and then it died
    assert store.create_table("stock").id != table.id
    store.put("stock", 1, "new")
    assert store.collect() == 2400
    assert store.collect() == 0
    assert dict(store.scan("stock")) == {1: {"value": "new"}}
    for first, last in (cells_range(table.id), table_histories_range(table.id), dropped_range()):
        assert not store.database.scan(first, last, 1).records


def test_a_table_whose_drop_a_failover_undoes_is_not_reported_as_dropped_and_loses_nothing() -> None:
    rows = {row: {"value": row} for row in range(100)}

    def prepare(store: Store) -> None:
        store.create_table("t")
        store.put_many("t", ((row, row) for row in rows))

    def drop(store: Store) -> None:
        assert dict(store.scan("t")) == rows
        store.drop_table("t")
        with store.snapshot() as seen:
            assert not list_tables(seen.reader)

    assert refused_after_failovers(prepare, drop, "drop it again") > 0


def test_a_table_that_others_make_while_one_of_its_name_is_dropped_stays() -> None:
    other = memory_store()
    shaky = Shaky(other.database)
    store = Store(shaky, "memory://", Environment())
    store.create_table("t")
    shaky.calls.clear()

    def make(_number: int, name: str) -> None:
        if name == "commit" and shaky.calls.count(name) == 1:
            other.create_table("t")

    shaky.after = make
    store.drop_table("t")
    other.put("t", "a", 1)


def test_a_missing_table_cannot_be_dropped() -> None:
    store = memory_store()
    store.create_table("stock")
    with pytest.raises(NotFoundError, match="did you mean stock"):
        store.drop_table("stocks")


@pytest.mark.parametrize("backend", FAST)
def test_who_uses_a_table_that_is_dropped_meanwhile_conflicts(backend: str, request: pytest.FixtureRequest) -> None:
    operations = ["get", "put", "add", "delete", "scan", "get_row"]
    with open_stores(backend, request) as (store, other):
        store.create_table("log")
        for case in product(operations, (False, True), (False, True), (False, True)):
            operation, history, recreated, cached = case
            store.create_table("stock", history=history)
            store.put("stock", "apples", 5)
            cells = begin(store.database)
            if cached:  # the definition is not among the reads
                cells = CellTransaction(Transaction(store.database), TableCache(store.database))
            _use(cells, operation)
            cells.put("log", "done", operation)
            cells.end_unit()
            other.drop_table("stock")
            if recreated:
                other.create_table("stock", history=history)
            before = _records(other)
            outcome = store.database.commit(cells.to_commit())
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
    store = memory_store()
    store.create_table("log")
    store.create_table("stock")
    runs = []

    def work(cells: CellTransaction) -> None:
        cells.put("log", "done", 1)
        cells.add("stock", "apples", 1)
        if not runs:
            store.drop_table("stock")
        runs.append(1)

    with pytest.raises(NotFoundError, match="no such table"):
        store.transact(work)
    assert len(runs) == 1, "the second run ends at the missing table"
    assert store.get("log", "done") is None


def test_an_old_entry_in_the_cache_of_tables_is_noticed() -> None:
    store = memory_store()
    cache = TableCache(store.database)
    store.create_table("stock")
    old = cache.get("stock")
    store.drop_table("stock")
    new = store.create_table("stock")
    assert cache.get("stock") == old
    cells = CellTransaction(begin(store.database)._read_set, cache)
    cells.put("stock", "apples", 1)
    cells.end_unit()
    assert isinstance(store.database.commit(cells.to_commit()), Conflict)
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
    store = memory_store()
    store.database.commit(Commit(puts={table_key("stock"): value}))
    for call in (store.tables, lambda: store.get("stock", "a"), lambda: store.drop_table("stock")):
        with pytest.raises(CorruptDataError, match="definition"):
            call()


@pytest.mark.parametrize("table_id", [0, 2**63 - 1])
def test_ids_have_63_bits(table_id: int) -> None:
    store = memory_store()
    table = Table("stock", table_id, 0, 0)
    store.database.commit(Commit(puts={table.key: table.to_bytes()}))
    store.put("stock", "apples", 5)
    assert store.table("stock").id == table_id and store.get("stock", "apples") == 5


def test_a_store_is_opened_by_its_url(tmp_path: Any) -> None:
    url = f"sqlite://{tmp_path}/shop.db"
    with pytest.raises(NotFoundError):
        open_store(url)
    with holdfast.open_store(url, create=True) as store:
        store.create_table("stock")
        assert repr(store) == f"Store({url!r})"
        assert store.full_url == url
        with pytest.raises(InvalidRequestError, match="pass its URL"):
            pickle.dumps(store)
    store.close()
    with open_store(url) as again:
        assert [table.name for table in again.tables()] == ["stock"]
