"""Read ranges page by page, so that pages of large values fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.transactions.base import Record, ScanPage, SnapshotReader

_FIRST, _LEAST, _MOST = 64, 1, 4096
_GROWTH = 4
_PAGE_BYTES = 4 * 1024 * 1024


class PageSize:
    """How many records the next page of a scan has.

    Attributes:
        records: the number. It grows step by step, and shrinks at once when values are large.
    """

    def __init__(self) -> None:
        self.records = _FIRST

    def adapt(self, page: ScanPage) -> None:
        """Take the sizes of the values on a page into account."""
        if page.records:
            mean = max(sum(len(record.value) for _key, record in page.records) // len(page.records), 1)
            self.records = min(max(_PAGE_BYTES // mean, _LEAST), _GROWTH * self.records, _MOST)


def read_pages(reader: SnapshotReader, start: bytes, end: bytes) -> Iterator[Sequence[tuple[bytes, Record]]]:
    """Yield the pages of a range that have records."""
    size = PageSize()
    more = start < end
    while more:
        page = reader.scan(start, end, size.records)
        size.adapt(page)
        if page.records:
            yield page.records
            start = page.records[-1][0] + b"\0"
        more = page.more


def read_records(reader: SnapshotReader, start: bytes, end: bytes) -> Iterator[tuple[bytes, Record]]:
    """Yield the records of a range in the order of their keys; those of a page come from one snapshot."""
    for page in read_pages(reader, start, end):
        yield from page
