"""Keep millions of inode ids in 16 bytes each.

Ids are spread over 256 sorted arrays by their lowest bits, so that sorting needs little memory besides the arrays.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

_BUCKETS = 256
_HALF = 2**64


class IdArray:
    """A list of ids."""

    def __init__(self, ids: Iterable[int] = ()) -> None:
        self._high = array("Q")
        self._low = array("Q")
        for number in ids:
            self.append(number)

    def append(self, number: int) -> None:
        """Add an id at the end."""
        high, low = divmod(number, _HALF)
        self._high.append(high)
        self._low.append(low)

    def __len__(self) -> int:
        return len(self._high)

    def __getitem__(self, at: int) -> int:
        return self._high[at] * _HALF + self._low[at]

    def __iter__(self) -> Iterator[int]:
        return (high * _HALF + low for high, low in zip(self._high, self._low, strict=True))

    def span(self, number: int) -> tuple[int, int]:
        """Return where an id is in a sorted list: from the first position, up to and without the second."""
        high, low = divmod(number, _HALF)
        first, end = bisect_left(self._high, high), bisect_right(self._high, high)
        return bisect_left(self._low, low, first, end), bisect_right(self._low, low, first, end)


class IdSet:
    """A collection of ids, which may contain an id twice. Add all ids, then `sort`, then ask."""

    def __init__(self) -> None:
        self._buckets = [IdArray() for _ in range(_BUCKETS)]

    def add(self, number: int) -> None:
        """Add an id."""
        self._buckets[number % _BUCKETS].append(number)

    def sort(self) -> None:
        """Prepare for questions."""
        self._buckets = [IdArray(sorted(bucket)) for bucket in self._buckets]

    def __contains__(self, number: int) -> bool:
        first, end = self._buckets[number % _BUCKETS].span(number)
        return first < end

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


class IdMap:
    """Maps ids to numbers, in 24 bytes each. Add all ids, then `sort`, then ask."""

    def __init__(self) -> None:
        self._ids = [IdArray() for _ in range(_BUCKETS)]
        self._values = [array("Q") for _ in range(_BUCKETS)]

    def add(self, number: int, value: int) -> None:
        """Add an id with its number."""
        self._ids[number % _BUCKETS].append(number)
        self._values[number % _BUCKETS].append(value)

    def sort(self) -> None:
        """Prepare for questions."""
        for bucket, (ids, values) in enumerate(zip(self._ids, self._values, strict=True)):
            order = sorted(range(len(ids)), key=ids.__getitem__)
            self._ids[bucket] = IdArray(ids[at] for at in order)
            self._values[bucket] = array("Q", (values[at] for at in order))

    def get(self, number: int) -> int | None:
        """Return the number of an id, or of one of its occurrences; None if it was not added."""
        first, end = self._ids[number % _BUCKETS].span(number)
        return self._values[number % _BUCKETS][first] if first < end else None
