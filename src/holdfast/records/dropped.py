"""Delete the cells of dropped tables, in small transactions."""

from __future__ import annotations

from holdfast.records.keys import cells_range, dropped_range, dropped_table_of, table_histories_range
from holdfast.records.paging import read_pages, read_records
from holdfast.transactions.base import Commit, RangeCount, TransactionStore

__all__ = ["collect_dropped"]


def collect_dropped(store: TransactionStore) -> int:
    """Delete the cells and the history of every dropped table, and then its mark. Return the number of cells.

    Nobody writes to these tables anymore: every transaction validates the definitions of the tables that it uses.

    Crash: the mark stays until everything below it is deleted, also if the database crashes and undoes deletions that
    were not durable; call it again. Several callers may work side by side.
    """
    deleted = 0
    for mark, _record in read_records(store, *dropped_range()):
        table_id = dropped_table_of(mark)
        ranges = cells_range(table_id), table_histories_range(table_id)
        for first, last in ranges:
            for page in read_pages(store, first, last):
                store.commit(Commit(deletes=[key for key, _record in page]))
                deleted += len(page)
        store.commit(Commit(ranges=[RangeCount(mark, first, last, 0) for first, last in ranges], deletes=[mark]))
    return deleted
