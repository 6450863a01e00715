"""Delete the cells of dropped tables, and the items of dropped work lists, in small transactions."""

from __future__ import annotations

from holdfast.records.keys import dropped_id_of, dropped_range, id_bytes
from holdfast.records.kinds import BEAT, CELL, HISTORY, WORK
from holdfast.records.paging import read_pages, read_records
from holdfast.records.row_keys import after_prefix
from holdfast.transactions.base import Backend, Commit, Conflict, RangeCount


def collect_dropped(database: Backend) -> int:
    """Delete all records of every dropped table or work list, and then its mark. Return the number of records.

    Nobody adds to them anymore: every transaction validates the definitions of the tables and lists that it uses.

    Crash: the mark stays until everything below it is deleted, also if the database crashes and undoes deletions that
    were not durable; call it again. If it undoes the drop itself, nothing more is deleted: others may use the table
    or list again. Several callers may work side by side.
    """
    return sum(_collect(database, mark, record.version) for mark, record in read_records(database, *dropped_range()))


def _collect(database: Backend, mark: bytes, version: int) -> int:
    """Delete one table or list, as long as its mark is the one that was read; return the number of records."""
    deleted = 0
    prefixes = [kind + id_bytes(dropped_id_of(mark)) for kind in (CELL, HISTORY, WORK, BEAT)]
    ranges = [(prefix, after_prefix(prefix)) for prefix in prefixes]
    for first, last in ranges:
        for page in read_pages(database, first, last):
            keys = [key for key, _record in page]
            if isinstance(database.commit(Commit(reads={mark: version}, deletes=keys)), Conflict):
                return deleted  # another caller has deleted the rest, or a crash has undone the drop
            deleted += len(page)
    empty = [RangeCount(mark, first, last, 0) for first, last in ranges]
    database.commit(Commit(reads={mark: version}, ranges=empty, deletes=[mark]))
    return deleted
