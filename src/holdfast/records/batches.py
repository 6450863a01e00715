"""Read ranges of records page by page, write them batch by batch, and collect what dropped tables leave."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TypeVar

from holdfast.errors import ConflictError, HoldfastError
from holdfast.records.keys import (
    BEAT,
    CELL,
    HISTORY,
    WORK,
    commit_count_key,
    dropped_marks_range,
    id_bytes,
    old_commit_counts_range,
    parse_dropped_mark_key,
)
from holdfast.records.row_keys import end_of_prefix
from holdfast.runtime import Environment
from holdfast.transactions.base import (
    Backend,
    Commit,
    Committed,
    Conflict,
    RangeCount,
    Record,
    ScanPage,
    SnapshotReader,
)

_FIRST, _LEAST, _MOST = 64, 1, 4096
_GROWTH = 4
_PAGE_BYTES = 4 * 1024 * 1024


class AdaptivePageSize:
    """Adapts the number of records per page of a scan to the size of the values, so that pages fit into memory.

    Attributes:
        records: the number for the next page. It grows step by step, and shrinks at once when values are large.
    """

    def __init__(self) -> None:
        self.records = _FIRST

    def adapt_to_page(self, page: ScanPage) -> None:
        """Set the number for the next page by the sizes of the values on a page."""
        if page.records:
            mean = max(sum(len(record.value) for _key, record in page.records) // len(page.records), 1)
            self.records = min(max(_PAGE_BYTES // mean, _LEAST), _GROWTH * self.records, _MOST)


def iter_pages(reader: SnapshotReader, start: bytes, end: bytes) -> Iterator[Sequence[tuple[bytes, Record]]]:
    """Yield the records of a range page by page, as lists of keys and records; empty pages are left out."""
    size = AdaptivePageSize()
    more = start < end
    while more:
        page = reader.scan(start, end, size.records)
        size.adapt_to_page(page)
        if page.records:
            yield page.records
            start = page.records[-1][0] + b"\0"
        more = page.more


def iter_records(reader: SnapshotReader, start: bytes, end: bytes) -> Iterator[tuple[bytes, Record]]:
    """Yield the keys and records of a range in the order of the keys; those of a page come from one snapshot."""
    for page in iter_pages(reader, start, end):
        yield from page


_BATCH_BYTES = 2 * 1024 * 1024


def split_into_batches(items: Iterable[T], most: int, size_bytes: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in lists of at most `most` items, and about 2 MiB.

    Args:
        size_bytes: returns about how many bytes an item has.
    """
    batch: list[T] = []
    total_bytes = 0
    for item in items:
        batch.append(item)
        total_bytes += size_bytes(item)
        if len(batch) == most or total_bytes >= _BATCH_BYTES:
            yield batch
            batch, total_bytes = [], 0
    if batch:
        yield batch


_log = logging.getLogger(__name__)

T = TypeVar("T")


def iter_commit_checked_batches(
    batches: Iterable[T], backend: Backend, environment: Environment
) -> Iterator[tuple[T, Mapping[bytes, int]]]:
    """Yield batches for the caller to commit one by one, and check at the end that the database has lost none of them.

    With each batch come numbers to add to records (as `Commit.adds`) in the batch's transaction, which count the
    commits.

    Guarantee: when the iterator ends, all of these transactions have taken effect, durably. A single batch is not
    counted, and is only as durable as any other commit.

    Raises:
        ConflictError: the database has lost some of them.
        UnavailableError, UnsupportedError: see `make_durable`; the transactions may have taken effect.

    Crash: the record with the count remains, for `delete_old_commit_counts`.
    """
    found = iter(batches)
    first = list(islice(found, 2))
    if len(first) < 2:
        yield from ((batch, {}) for batch in first)
        return
    key = commit_count_key(environment.clock.now_s(), environment.ids.token())
    count = 0
    for batch in chain(first, found):
        yield batch, {key: 1}
        count += 1
    backend.make_durable()
    record = backend.get_many([key]).get(key)
    if record is None or record.number < count or not delete_record_if_unchanged(backend, key, record.version):
        raise ConflictError(
            "the database has lost some of what this call had written, perhaps in a failover: call it again with the "
            "same values; but look first if one that is written twice counts twice, as in a sum or in a history: the "
            "others are there"
        )


def delete_record_if_unchanged(backend: Backend, key: bytes, version: int) -> bool:
    """Delete a record if it still has a version; return False if it has changed.

    If the database fails, the record stays for a later collection, and the result is True.
    """
    try:
        return isinstance(backend.commit(Commit(reads={key: version}, deletes=[key])), Committed)
    except HoldfastError as error:
        _log.info("a record that is not needed anymore will be deleted by a collection: %s", error)
        return True


def delete_old_commit_counts(backend: Backend, environment: Environment, older_than_s: float) -> int:
    """Delete the counts of `iter_commit_checked_batches` that are older than a time, and return how many there were.

    The calls that made them have probably died. One that goes on nevertheless raises a `ConflictError` at its end.
    """
    deleted = 0
    for page in iter_pages(backend, *old_commit_counts_range(environment.clock.now_s() - older_than_s)):
        backend.commit(Commit(deletes=[key for key, _record in page]))
        deleted += len(page)
    return deleted


def delete_dropped_tables(database: Backend) -> int:
    """Delete all records of dropped tables and work lists, and then the records that mark them as dropped; return the
    number.

    No transaction adds to a dropped table or list: each validates the definitions of those that it uses.

    Crash: the mark stays until all records are deleted, also if the database crashes and undoes deletions that were
    not durable; call it again. If the crash undoes the drop itself, nothing more is deleted: the table or list may be
    used again. Several callers may work side by side.
    """
    return sum(
        _delete_dropped_table(database, mark, record.version)
        for mark, record in iter_records(database, *dropped_marks_range())
    )


def _delete_dropped_table(database: Backend, mark: bytes, version: int) -> int:
    """Delete one table or list, as long as its mark is the one that was read; return the number of records."""
    deleted = 0
    prefixes = [kind + id_bytes(parse_dropped_mark_key(mark)) for kind in (CELL, HISTORY, WORK, BEAT)]
    ranges = [(prefix, end_of_prefix(prefix)) for prefix in prefixes]
    for first, last in ranges:
        for page in iter_pages(database, first, last):
            keys = [key for key, _record in page]
            if isinstance(database.commit(Commit(reads={mark: version}, deletes=keys)), Conflict):
                return deleted  # another caller has deleted the rest, or a crash has undone the drop
            deleted += len(page)
    empty = [RangeCount(mark, first, last, 0) for first, last in ranges]
    database.commit(Commit(reads={mark: version}, ranges=empty, deletes=[mark]))
    return deleted
