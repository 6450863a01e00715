"""What tables hold is counted by rows, cells, versions and bytes."""

from __future__ import annotations

from holdfast.records import Store
from holdfast.records.sizes import TableSize, table_size
from tests.unit.records.stores import memory_store


def _size(store: Store, table: str) -> TableSize:
    with store.snapshot() as snapshot:
        return table_size(snapshot.reader, snapshot.table(table))


def test_rows_and_cells_are_counted() -> None:
    store = memory_store()
    store.create_table("t")
    store.create_table("other")
    assert _size(store, "t") == TableSize(0, 0, 0, 0)
    for row in ("a", "a\0", 5, 256, (0, "a"), b"\0"):
        store.put("t", row, b"")
        store.put("t", row, b"12345", column="c")
    found = _size(store, "t")
    assert (found.rows, found.cells, found.versions) == (6, 12, 0)
    more = 1000
    store.put("t", "a", bytes(more), column="d")
    grown = _size(store, "t")
    assert (grown.rows, grown.cells) == (6, 13)
    assert more < grown.size_bytes - found.size_bytes < more + 50
    assert _size(store, "other").rows == 0


def test_of_a_history_present_cells_and_versions_are_counted() -> None:
    store = memory_store()
    store.create_table("t", history=3)
    for value in range(5):
        store.put("t", "a", value)
    store.put("t", "GONE", 1)  # before the other row
    store.delete("t", "GONE")
    found = _size(store, "t")
    assert (found.rows, found.cells, found.versions) == (1, 1, 5)
