"""Delete the cells of dropped tables, in small transactions."""

from __future__ import annotations

from holdfast.records.keys import cells_range, dropped_range, dropped_table_of, table_histories_range
from holdfast.records.paging import PageSize
from holdfast.transactions.base import Commit, TransactionStore

__all__ = ["collect_dropped"]

_PAGE = 500


def collect_dropped(store: TransactionStore) -> int:
    """Delete the cells and the history of every dropped table, and then its mark. Return the number of cells.

    Nobody writes to these tables anymore: every transaction validates the definitions of the tables that it uses.

    Crash: the mark stays until everything below it is deleted; call it again. Several callers may work side by side.
    """
    deleted = 0
    start, end = dropped_range()
    more = True
    while more:
        marks = store.scan(start, end, _PAGE)
        for mark, _record in marks.records:
            table_id = dropped_table_of(mark)
            for first, last in (cells_range(table_id), table_histories_range(table_id)):
                deleted += _delete_range(store, first, last)
            store.commit(Commit(deletes=[mark]))
            start = mark + b"\0"
        more = marks.more
    return deleted


def _delete_range(store: TransactionStore, first: bytes, last: bytes) -> int:
    deleted = 0
    more = True
    size = PageSize()
    while more:
        page = store.scan(first, last, size.records)
        size.adapt(page)
        if page.records:
            store.commit(Commit(deletes=[key for key, _record in page.records]))
            deleted += len(page.records)
            first = page.records[-1][0] + b"\0"
        more = page.more
    return deleted
