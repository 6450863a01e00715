"""Group what is to be written, so that no transaction is large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_BATCH_BYTES = 2 * 1024 * 1024


def batches(items: Iterable[T], most: int, size_bytes: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in lists of at most so many, and about 2 MiB.

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
