"""Read the names of the rows of a table page by page, without a snapshot that lasts while somebody reads the output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from holdfast.cli.database.arguments import Bounds
from holdfast.records import Database, Row

_FIRST, _MOST = 100, 2000


def iter_pages(database: Database, table: str, bounds: Bounds, limit: int | None) -> Iterator[list[Row]]:
    """Yield the names of the rows in order, each page from a snapshot of its own.

    Args:
        limit: the most rows; None for all.
    """
    left, size = limit, _FIRST
    last: Row | None = None
    while left is None or left > 0:
        size = min(2 * size, _MOST)
        wanted = size if left is None else min(size, left)
        with database.snapshot() as snapshot:
            page = list(islice(snapshot.names(table, **bounds, after=last), wanted))
        yield page
        if len(page) < wanted:
            return
        last = page[-1]
        left = None if left is None else left - len(page)
