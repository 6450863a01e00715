"""Pages hold about as many bytes as fit into memory, whatever the sizes of the values."""

from __future__ import annotations

from holdfast.records.batches import AdaptivePageSize
from holdfast.transactions.base import Record, ScanPage
from tests.unit.records.databases import memory_db


def _page(count: int, size_bytes: int) -> ScanPage:
    return ScanPage([(b"k", Record(1, bytes(size_bytes)))] * count, True, {})


def test_pages_grow_while_values_are_small_and_shrink_at_once() -> None:
    size = AdaptivePageSize()
    sizes = [size.records]
    for value_bytes in (0, 10, 10, 10, 1_000_000, 8_000_000, 10, 10):
        size.adapt_to_page(_page(size.records, value_bytes))
        sizes.append(size.records)
    assert sizes == [64, 256, 1024, 4096, 4096, 4, 1, 4, 16]
    size.adapt_to_page(_page(0, 0))
    assert size.records == 16


def test_large_cells_are_read_and_collected_in_small_pages() -> None:
    db = memory_db()
    db.create_table("t", history=1)
    for number in range(100):
        db.put("t", number, bytes(300_000))
    pages = []
    read = db.backend.scan

    def scan(*arguments: object) -> ScanPage:
        page = read(*arguments)  # type: ignore[arg-type] # passed on
        pages.append(sum(len(record.value) for _key, record in page.records))
        return page

    db.backend.scan = scan  # type: ignore[method-assign, assignment] # watch the pages
    db.drop_table("t")
    assert sorted(pages)[-3] <= 4 * 1024 * 1024 + 200, "only the first page of a range may be larger"
