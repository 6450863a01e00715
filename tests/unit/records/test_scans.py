"""Scans: ranges and limits with own writes on top, page by page, and no phantoms at the commit."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.records import CellTransaction, Database, Row
from holdfast.records.keys import cell_key
from holdfast.records.tables import read_table
from holdfast.transactions.base import Commit, Committed, Conflict, ScanPage
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.transaction import Transaction
from tests.unit.records.databases import FAST, SERVERS, begin, memory_db, open_dbs


def _filled(count: int, history: bool | int = False) -> Database:
    db = memory_db()
    db.create_table("t", history=history)
    db.transact(lambda cells: [cells.put("t", number, number) for number in range(count)])
    return db


def _rows(found: list[tuple[Row, Any]]) -> list[Row]:
    return [row for row, _columns in found]


def test_ranges_begin_with_the_start_and_end_before_the_end() -> None:
    db = memory_db()
    db.create_table("t")
    rows: list[Row] = [b"a", b"\xff", "", "a", ("a", 1), ("a", 2), ("a", "b", 3), "a\0", "ab", "b", -5, 0, 5, (5, "x")]
    for row in reversed(rows):
        db.put("t", row, repr(row))
    ordered = [row for row, _columns in db.scan("t")]
    assert ordered == [b"a", b"\xff", "", "a", ("a", "b", 3), ("a", 1), ("a", 2), "a\0", "ab", "b", -5, 0, 5, (5, "x")]
    cases: list[tuple[dict[str, Any], list[Row]]] = [
        ({"prefix": "a"}, ["a", ("a", "b", 3), ("a", 1), ("a", 2), "a\0", "ab"]),
        ({"prefix": ("a",)}, ["a", ("a", "b", 3), ("a", 1), ("a", 2)]),
        ({"prefix": ("a", 1)}, [("a", 1)]),
        ({"prefix": ()}, ordered),
        ({"prefix": ""}, ordered[2:10]),
        ({"prefix": b""}, [b"a", b"\xff"]),
        ({"prefix": b"\xff"}, [b"\xff"]),
        ({"prefix": 5}, [5, (5, "x")]),
        ({"start": "ab"}, ["ab", "b", -5, 0, 5, (5, "x")]),
        ({"end": "a"}, [b"a", b"\xff", ""]),
        ({"start": ("a", 1), "end": "a\0"}, [("a", 1), ("a", 2)]),
        ({"start": "b", "end": "a"}, []),
        ({"start": "a", "end": "a"}, []),
    ]
    for bounds, expected in cases:
        assert [row for row, _columns in db.scan("t", **bounds)] == expected, bounds
        assert _rows(db.transact(lambda cells, bounds=bounds: cells.scan("t", **bounds))) == expected, bounds
        with db.snapshot() as snapshot:
            for number, row in enumerate(expected, start=1):
                rest = [one for one, _columns in snapshot.scan("t", after=row, **bounds)]
                assert rest == expected[number:], (bounds, row)
        for limit in range(1, 15):
            found = db.transact(lambda cells, bounds=bounds, limit=limit: cells.scan("t", limit=limit, **bounds))
            assert _rows(found) == expected[:limit], (bounds, limit)


def test_wrong_ranges_are_refused() -> None:
    db = _filled(1)
    with pytest.raises(InvalidRequestError, match="leave one of them out"):
        list(db.scan("t", prefix="a", end="b"))
    for limit in (0, -1):
        with pytest.raises(InvalidRequestError, match="a number of rows, from 1"):
            db.transact(lambda cells, limit=limit: cells.scan("t", limit=limit))
        with pytest.raises(InvalidRequestError, match="a number of rows, from 1"):
            next(db.scan("t", limit=limit))
    for odd in (2.5, "3", math.inf, 2**63):
        with pytest.raises(InvalidRequestError, match="is a number of rows"):
            db.transact(lambda cells, limit=odd: cells.scan("t", limit=limit))
        with pytest.raises(InvalidRequestError, match="is a number of rows"):
            next(db.scan("t", limit=odd))  # type: ignore[arg-type] # what is refused


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("kind", [np.int8, np.int64])
def test_a_limit_may_be_an_integer_of_numpy(backend: str, kind: type[np.integer[Any]], request: Any) -> None:
    with open_dbs(backend, request) as (db, _other):
        db.create_table("t")
        db.transact(lambda cells: [cells.put("t", number, number) for number in range(300)])
        for limit in (5, 100, 127):  # with the largest number of a type, one more leaves its range
            found = db.transact(lambda cells, limit=limit: cells.scan("t", limit=kind(limit)))
            assert _rows(found) == list(range(limit))
            assert _rows(list(db.scan("t", limit=kind(limit)))) == list(range(limit))  # type: ignore[arg-type] # it is one


def test_a_scan_of_the_db_has_the_same_limit() -> None:
    db = _filled(9)
    for limit in (1, 8, 9, 10, None):
        assert list(db.scan("t", limit=limit)) == list(db.scan("t"))[:limit]
    assert list(db.scan("t", limit=sys.maxsize)) == list(db.scan("t"))


@pytest.mark.parametrize("backend", [*FAST, *SERVERS])
def test_own_writes_are_on_top(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as (db, _other):
        db.create_table("t")
        db.transact(lambda cells: [cells.put("t", number, number) for number in (1, 3, 5, 7)])
        cells = begin(db.backend)
        cells.put("t", 2, "new")
        cells.delete("t", 3)
        cells.end_unit()
        cells.add("t", 5, 10)
        cells.put("t", 5, "column", column="a")
        cells.add("t", 9, 1)
        expected = [
            (1, {"value": 1}),
            (2, {"value": "new"}),
            (5, {"a": "column", "value": 15}),
            (7, {"value": 7}),
            (9, {"value": 1}),
        ]
        for limit in (None, 1, 2, 3, 4, 5, 6):
            assert cells.scan("t", limit=limit) == expected[:limit]
        cells.drop_unit()
        assert cells.scan("t") == [(1, {"value": 1}), (2, {"value": "new"}), (5, {"value": 5}), (7, {"value": 7})]
        assert isinstance(db.backend.commit(cells.to_commit()), Committed)
        assert [row for row, _columns in db.scan("t")] == [1, 2, 5, 7]


def test_a_limit_finds_rows_behind_many_deleted_ones() -> None:
    """Deleted cells of a table with history keep a record: more pages are read until there are enough rows."""
    db = _filled(200, history=1)
    db.transact(lambda cells: [cells.delete("t", number) for number in range(150)])
    assert _rows(db.transact(lambda cells: cells.scan("t", limit=2))) == [150, 151]
    assert len(list(db.scan("t"))) == 50


def test_wide_rows_are_whole() -> None:
    db = memory_db()
    db.create_table("t")
    db.transact(
        lambda cells: [cells.put("t", row, column, column=f"c{column:03}") for row in "ab" for column in range(300)]
    )
    for limit in (1, 2, 3):
        found = db.transact(lambda cells, limit=limit: cells.scan("t", limit=limit))
        assert [(row, len(columns)) for row, columns in found] == [("a", 300), ("b", 300)][:limit]


def _scan(cells: CellTransaction) -> None:
    cells.scan("t", start=10, end=20)


def _scan_some(cells: CellTransaction) -> None:
    assert _rows(cells.scan("t", start=10, limit=2)) == [10, 12]


def _get_row(cells: CellTransaction) -> None:
    cells.get_row("t", 12)


_PHANTOMS: list[tuple[Callable[[CellTransaction], None], Callable[[CellTransaction], None], bool]] = [
    (_scan, lambda cells: cells.put("t", 11, 0), True),
    (_scan, lambda cells: cells.add("t", 11, 0), True),
    (_scan, lambda cells: cells.put("t", 12, 0, column="a"), True),
    (_scan, lambda cells: cells.put("t", 12, 0), True),
    (_scan, lambda cells: cells.delete("t", 12), True),
    (_scan, lambda cells: cells.delete("t", 13), False),
    (_scan, lambda cells: cells.put("t", 9, 0), False),
    (_scan, lambda cells: cells.put("t", 20, 0), False),
    (_scan, lambda cells: cells.put("t", ("12", 1), 0), False),
    (_scan, lambda cells: cells.put("other", 11, 0), False),
    (_scan_some, lambda cells: cells.put("t", 11, 0), True),
    (_scan_some, lambda cells: cells.put("t", 15, 0), False),
    (_get_row, lambda cells: cells.put("t", 12, 0, column="zz"), True),
    (_get_row, lambda cells: cells.put("t", 11, 0), False),
]


@pytest.mark.parametrize("backend", [*FAST, *SERVERS])
def test_phantoms_conflict_and_others_do_not(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as (db, other):
        db.create_table("other")
        for number, (read, change, conflicts) in enumerate(_PHANTOMS):
            db.create_table("t")
            db.transact(lambda cells: [cells.put("t", number, number) for number in range(0, 40, 2)])
            cells = begin(db.backend)
            read(cells)
            cells.put("other", f"result {number}", 1)
            cells.end_unit()
            other.transact(change)
            outcome = db.backend.commit(cells.to_commit())
            assert isinstance(outcome, Conflict if conflicts else Committed), number
            assert db.get("other", f"result {number}") == (None if conflicts else 1), number
            db.drop_table("t")


def test_a_scan_of_the_db_is_one_snapshot_of_many_pages() -> None:
    db = _filled(4500)
    rows = db.scan("t")
    assert next(rows) == (0, {"value": 0})
    db.transact(lambda cells: [cells.put("t", number, "late") for number in range(4000, 5000)])
    assert list(rows) == [(number, {"value": number}) for number in range(1, 4500)]


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda cells: cells.get("t", "a"), id="get"),
        pytest.param(lambda cells: cells.get_many("t", ["a", "b"]), id="get many"),
        pytest.param(lambda cells: cells.get_row("t", "a"), id="get row"),
        pytest.param(lambda cells: cells.scan("t"), id="scan"),
        pytest.param(lambda cells: cells.scan("t", limit=1), id="scan with a limit"),
    ],
)
def test_a_text_that_was_read_cannot_be_added_to(read: Callable[[CellTransaction], object]) -> None:
    """Nor could it if it was not read: then its commit is refused."""
    db = memory_db()
    db.create_table("t")
    db.put("t", "a", "text")
    cells = begin(db.backend)
    read(cells)
    with pytest.raises(InvalidRequestError, match="only an integer can be added to"):
        cells.add("t", "a")


def test_a_damaged_cell_is_named() -> None:
    db = _filled(3)
    db.backend.commit(Commit(puts={begin(db.backend).cell_key("t", 1): b"f too long"}))
    for read in (
        lambda: db.get("t", 1),
        lambda: db.get_many("t", [0, 1]),
        lambda: list(db.scan("t")),
        lambda: db.transact(lambda cells: cells.scan("t")),
    ):
        with pytest.raises(CorruptDataError, match=r"cannot be read.*row=1 column='value'"):
            read()
    with db.snapshot() as snapshot, pytest.raises(CorruptDataError, match="row=1"):
        snapshot.get("t", 1)
    db.put("t", 1, 8)
    assert db.get("t", 1) == 8


def test_a_limit_of_reads_counts_each_cell_once() -> None:
    db = _filled(20)
    cells = begin(db.backend)
    limited = CellTransaction(cells._read_set, cells._tables, most_reads=10)
    assert len(limited.get_many("t", range(10))) == 10
    with pytest.raises(InvalidRequestError, match="reads more cells"):
        limited.get("t", 10)
    limited.drop_unit()
    with pytest.raises(InvalidRequestError, match="reads more cells"):
        limited.get_many("t", range(11))
    limited.drop_unit()
    assert len(limited.scan("t", limit=5)) == 5


def test_a_limit_of_reads_is_that_of_one_unit() -> None:
    db = _filled(9)
    transaction = Transaction(db.backend)
    cells = CellTransaction(transaction, partial(read_table, reader=transaction, database=db.backend), 3)
    for end in (cells.end_unit, cells.drop_unit, cells.end_unit):
        assert len(cells.scan("t", start=2, end=5)) == 3
        with pytest.raises(InvalidRequestError, match="reads more cells than it may"):
            cells.get("t", 5)
        end()
    assert len(cells.get_many("t", [6, 7, 8])) == 3
    assert cells.reads == 12


def test_little_more_is_read_than_a_unit_may_read(monkeypatch: pytest.MonkeyPatch) -> None:
    db = _filled(20)
    cells = begin(db.backend)
    limited = CellTransaction(cells._read_set, cells._tables, most_reads=4)
    asked: list[int] = []
    scan = MemoryBackend.scan

    def count(self: MemoryBackend, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        asked.append(limit)
        return scan(self, start, end, limit, guards)

    monkeypatch.setattr(MemoryBackend, "scan", count)
    with pytest.raises(InvalidRequestError, match="reads more cells"):
        limited.scan("t")
    assert asked == [5]


def test_a_limit_of_reads_counts_each_cell_once_over_many_pages() -> None:
    db = memory_db()
    db.create_table("t", history=1)
    for row in range(30):
        db.put("t", row, row)
    for row in range(29):
        db.delete("t", row)
    cells = begin(db.backend)
    limited = CellTransaction(cells._read_set, cells._tables, most_reads=30)
    assert limited.scan("t", limit=1) == [(29, {"value": 29})]
    assert limited.reads == 30


def test_records_of_others_are_left_alone() -> None:
    db = _filled(2)
    db.backend.commit(Commit(puts={b"R": b"", b"T": b"", b"Sb": b"", b"Sc": b"", b"Scc": b""}))
    db.drop_table("t")
    assert [key for key, _record in db.backend.scan(b"", b"\xff", 9).records] == [b"R", b"Sb", b"Sc", b"Scc", b"T"]


@pytest.mark.parametrize("backend", ["sqlite", *SERVERS])
def test_reads_wait_for_no_writer(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as (db, other):
        table = db.create_table("t")
        db.put("t", "a", 1)
        with other.backend.begin_locking_transaction() as writer:
            writer.read([table.key, cell_key(table.id, "a", b"value")], exclusive=True)
            assert db.get("t", "a") == 1
            assert db.get_many("t", ["a", "b"]) == {"a": 1}
            assert db.get_row("t", "a") == {"value": 1}
            assert list(db.scan("t")) == [("a", {"value": 1})]
            with pytest.raises(InvalidRequestError, match="did you mean t"):
                db.get("tt", "a")
