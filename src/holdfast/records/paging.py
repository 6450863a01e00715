"""Choose how many records to read at a time, so that pages of large values fit into memory."""

from __future__ import annotations

from holdfast.transactions.base import ScanPage

__all__ = ["PageSize"]

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
