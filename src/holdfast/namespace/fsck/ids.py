"""Keep millions of inode ids in 8 bytes each.

Ids are spread over 256 sorted arrays by their lowest bits, so that sorting needs little memory besides the arrays.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Iterator

__all__ = ["IdMap", "IdSet"]

_BUCKETS = 256


class IdSet:
    """A collection of ids, which may contain an id twice. Add all ids, then `sort`, then ask."""

    def __init__(self) -> None:
        self._buckets = [array("Q") for _ in range(_BUCKETS)]

    def add(self, number: int) -> None:
        """Add an id."""
        self._buckets[number % _BUCKETS].append(number)

    def sort(self) -> None:
        """Prepare for questions."""
        self._buckets = [array("Q", sorted(bucket)) for bucket in self._buckets]

    def __contains__(self, number: int) -> bool:
        bucket = self._buckets[number % _BUCKETS]
        at = bisect_left(bucket, number)
        return at < len(bucket) and bucket[at] == number

    def __iter__(self) -> Iterator[int]:
        for bucket in self._buckets:
            yield from bucket

    def duplicates(self) -> Iterator[int]:
        """Yield each id that was added more than once."""
        for bucket in self._buckets:
            last = 0
            for before, number in itertools.pairwise(bucket):
                if number == before != last:
                    last = number
                    yield number

    @property
    def largest(self) -> int:
        """The largest id; 0 if there is none."""
        return max((bucket[-1] for bucket in self._buckets if bucket), default=0)


class IdMap:
    """Maps ids to numbers, in 16 bytes each. Add all ids, then `sort`, then ask."""

    def __init__(self) -> None:
        self._ids = [array("Q") for _ in range(_BUCKETS)]
        self._values = [array("Q") for _ in range(_BUCKETS)]

    def add(self, number: int, value: int) -> None:
        """Add an id with its number."""
        self._ids[number % _BUCKETS].append(number)
        self._values[number % _BUCKETS].append(value)

    def sort(self) -> None:
        """Prepare for questions."""
        for bucket, (ids, values) in enumerate(zip(self._ids, self._values, strict=True)):
            order = sorted(range(len(ids)), key=ids.__getitem__)
            self._ids[bucket] = array("Q", (ids[at] for at in order))
            self._values[bucket] = array("Q", (values[at] for at in order))

    def get(self, number: int) -> int | None:
        """Return the number of an id, or of one of its occurrences; None if it was not added."""
        ids = self._ids[number % _BUCKETS]
        at = bisect_left(ids, number)
        return self._values[number % _BUCKETS][at] if at < len(ids) and ids[at] == number else None
