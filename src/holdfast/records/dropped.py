"""Delete the cells of dropped tables, in small transactions."""

from __future__ import annotations

from holdfast.records.keys import cells_range, dropped_range, dropped_table_of, table_histories_range
from holdfast.records.paging import read_pages, read_records
from holdfast.transactions.base import Commit, Conflict, RangeCount, TransactionStore

__all__ = ["collect_dropped"]


def collect_dropped(store: TransactionStore) -> int:
    """Delete the cells and the history of every dropped table, and then its mark. Return the number of cells.

    Nobody writes to these tables anymore: every transaction validates the definitions of the tables that it uses.

    Crash: the mark stays until everything below it is deleted, also if the database crashes and undoes deletions that
    were not durable; call it again. If it undoes the drop itself, nothing more of the table is deleted: others may use
    it again. Several callers may work side by side.
    """
    return sum(_collect(store, mark, record.version) for mark, record in read_records(store, *dropped_range()))


def _collect(store: TransactionStore, mark: bytes, version: int) -> int:
    """Delete one table, as long as its mark is the one that was read; return the number of cells."""
    deleted = 0
    table_id = dropped_table_of(mark)
    ranges = cells_range(table_id), table_histories_range(table_id)
    for first, last in ranges:
        for page in read_pages(store, first, last):
            keys = [key for key, _record in page]
            if isinstance(store.commit(Commit(reads={mark: version}, deletes=keys)), Conflict):
                return deleted  # another caller has deleted the rest, or a crash has undone the drop
            deleted += len(page)
    empty = [RangeCount(mark, first, last, 0) for first, last in ranges]
    store.commit(Commit(reads={mark: version}, ranges=empty, deletes=[mark]))
    return deleted
