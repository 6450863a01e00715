"""What tables hold is counted by rows, cells, versions and bytes."""

from __future__ import annotations

from holdfast.records import Database
from holdfast.records.cells import TableSize, measure_table_size
from tests.unit.records.databases import memory_db


def _size(db: Database, table: str) -> TableSize:
    with db.snapshot() as snapshot:
        return measure_table_size(snapshot.reader, snapshot.table(table))


def test_rows_and_cells_are_counted() -> None:
    db = memory_db()
    db.create_table("t")
    db.create_table("other")
    assert _size(db, "t") == TableSize(0, 0, 0, 0)
    for row in ("a", "a\0", 5, 256, (0, "a"), b"\0"):
        db.put("t", row, b"")
        db.put("t", row, b"12345", column="c")
    found = _size(db, "t")
    assert (found.rows, found.cells, found.versions) == (6, 12, 0)
    more = 1000
    db.put("t", "a", bytes(more), column="d")
    grown = _size(db, "t")
    assert (grown.rows, grown.cells) == (6, 13)
    assert more < grown.size_bytes - found.size_bytes < more + 50
    assert _size(db, "other").rows == 0


def test_of_a_history_present_cells_and_versions_are_counted() -> None:
    db = memory_db()
    db.create_table("t", history=3)
    for value in range(5):
        db.put("t", "a", value)
    db.put("t", "b", 1)
    db.put("t", "GONE", 1)  # before the other rows
    db.delete("t", "GONE")
    found = _size(db, "t")
    assert (found.rows, found.cells, found.versions) == (2, 2, 6)
