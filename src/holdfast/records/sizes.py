"""Count what tables hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.records.cells import Content, split_head
from holdfast.records.keys import cells_range, table_histories_range
from holdfast.records.rows import read_cells
from holdfast.records.tables import Table
from holdfast.transactions.base import SnapshotReader


@dataclass(frozen=True, slots=True)
class TableSize:
    """What a table holds.

    Attributes:
        versions: earlier and present values in the history; 0 without one.
        size_bytes: of keys and values of all its records, as the database is given them.
    """

    rows: int
    cells: int
    versions: int
    size_bytes: int


def table_size(reader: SnapshotReader, table: Table) -> TableSize:
    """Count what a table holds. It reads the whole table, page by page."""
    rows = cells = size_bytes = 0
    row = b""
    for key, content in read_cells(reader, *cells_range(table.id)):
        size_bytes += len(key) + len(content.encoded)
        if table.history and split_head(content)[1] is None:
            continue  # deleted; its counter is kept
        cells += 1
        found = key[: key.rindex(b"\0")]  # no column has a zero byte
        if found != row:
            rows += 1
            row = found
    versions = 0
    for key, content in _history(reader, table):
        versions += 1
        size_bytes += len(key) + len(content.encoded)
    return TableSize(rows, cells, versions, size_bytes)


def _history(reader: SnapshotReader, table: Table) -> Iterator[tuple[bytes, Content]]:
    return read_cells(reader, *table_histories_range(table.id)) if table.history else iter(())
