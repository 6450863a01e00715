"""Histories: update counters that never go back, as many values as the table keeps, and writers that do not overlap."""

from __future__ import annotations

import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.records import CellTransaction, Database
from holdfast.records.keys import cell_key, history_key, table_histories_range
from holdfast.transactions.base import Commit, Committed, Conflict
from tests.unit.records.databases import FAST, SERVERS, begin, memory_db, open_dbs


@pytest.mark.parametrize("backend", [*FAST, *SERVERS])
def test_counters_go_on_after_a_deletion(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as (db, other):
        db.create_table("prices", history=True)
        db.put("prices", "apples", 3)
        other.delete("prices", "apples")
        db.delete("prices", "apples")  # it is gone: no update
        db.add("prices", "apples", 7)
        other.put("prices", "apples", "text")
        assert db.history("prices", "apples") == [(1, 3), (2, None), (3, 7), (4, "text")]
        assert db.get("prices", "apples") == "text"
        db.delete("prices", "apples")
        assert other.get("prices", "apples", default=0) == 0
        assert other.get_row("prices", "apples") == {}
        assert list(other.scan("prices")) == []
        assert db.history("prices", "apples")[-1] == (5, None)
        assert db.history("prices", "pears") == []


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("at_once", [1, 3, 12])
def test_as_many_values_are_kept_as_the_table_says(length: int, at_once: int) -> None:
    db = memory_db()
    db.create_table("prices", history=length)

    def write(cells: CellTransaction, first: int) -> None:
        for number in range(first, first + at_once):
            cells.put("prices", "apples", number)

    for first in range(1, 13, at_once):
        db.transact(lambda cells, first=first: write(cells, first))
    assert db.history("prices", "apples") == [(number, number) for number in range(13 - length, 13)]
    first, last = table_histories_range(db.table("prices").id)
    assert len(db.backend.scan(first, last, 100).records) == length


def test_columns_and_similar_rows_have_histories_of_their_own() -> None:
    db = memory_db()
    db.create_table("prices", history=True)
    cells = [("a", "c"), ("a", "cc"), ("a", "value"), ("aa", "c"), (("a", "c"), "c"), (("a", 1), "c"), (0, "c")]
    for number, (row, column) in enumerate(cells):
        for value in (number, -number):
            db.put("prices", row, value, column=column)  # type: ignore[arg-type] # mypy joins the rows to objects
    for number, (row, column) in enumerate(cells):
        found = db.history("prices", row, column=column)  # type: ignore[arg-type] # the same
        assert found == [(1, number), (2, -number)]


def test_two_writers_of_one_cell_conflict() -> None:
    """Blind additions too: both need the next counter."""
    db = memory_db()
    db.create_table("prices", history=True)
    one, two = begin(db.backend), begin(db.backend)
    for cells in (one, two):
        cells.add("prices", "apples", 1)
        cells.end_unit()
    assert isinstance(db.backend.commit(one.to_commit()), Committed)
    assert isinstance(db.backend.commit(two.to_commit()), Conflict)
    assert db.history("prices", "apples") == [(1, 1)]


def test_a_table_without_history_says_so() -> None:
    db = memory_db()
    db.create_table("prices")
    with pytest.raises(InvalidRequestError, match="keeps no history"):
        db.history("prices", "apples")


def test_the_longest_value_has_room_for_its_counter() -> None:
    db = _with_value(b"\xff" * (8 * 1024 * 1024 - 65))
    assert len(db.history("prices", "apples")) == 1


def _with_value(value: bytes) -> Database:
    db = memory_db()
    db.create_table("prices", history=True)
    db.put("prices", "apples", value)
    return db


def test_an_earlier_value_that_is_damaged_is_named() -> None:
    db = _with_value(b"a")
    key = cell_key(db.table("prices").id, "apples", b"value")
    db.backend.commit(Commit(puts={history_key(key, 1): b"?"}))
    with pytest.raises(CorruptDataError, match="row='apples' column='value'"):
        db.history("prices", "apples")


def test_a_cell_without_its_counter_is_damaged() -> None:
    db = _with_value(b"a")
    key = cell_key(db.table("prices").id, "apples", b"value")
    db.backend.commit(Commit(puts={key: b"short"}))
    for read in (
        lambda: db.get("prices", "apples"),
        lambda: list(db.scan("prices")),
        lambda: db.put("prices", "apples", 1),
    ):
        with pytest.raises(CorruptDataError, match="no update counter"):
            read()
