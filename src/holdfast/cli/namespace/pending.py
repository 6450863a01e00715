"""Count what waits for the garbage collection of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from holdfast.errors import CorruptDataError
from holdfast.namespace import Namespace
from holdfast.namespace.keys import garbage_key, kind_range
from holdfast.namespace.other_records import DeletedTree
from holdfast.runtime import Clock
from holdfast.transactions.base import Backend, Record

_PAGE = 1000
_MOST = 100_000
"""How many records of a kind are counted: a status must not take minutes."""


class Count(NamedTuple):
    """A number of records; at least so many, if there are too many to count."""

    number: int
    is_least: bool

    def __str__(self) -> str:
        return f"{'more than ' if self.is_least else ''}{self.number:,}"


class Pending(NamedTuple):
    """What waits.

    Attributes:
        leases: files that are being written.
        trees: deleted trees.
        garbage: blobs that no file refers to.
        due: those among them that are old enough to be deleted.
    """

    leases: Count
    trees: Count
    garbage: Count
    due: Count


def count_pending(namespace: Namespace, clock: Clock) -> Pending:
    """Count leases, deleted trees and garbage, page by page."""
    store = namespace.database
    start, _ = kind_range(b"g")
    end = garbage_key(max(int((clock.now_s() - namespace.configuration.safety_age_s) * 1000), 0), "")
    return Pending(
        leases=_count(store, *kind_range(b"l")),
        trees=_count(store, *kind_range(b"r"), counts=_waits),
        garbage=count_garbage(namespace),
        due=_count(store, start, end),
    )


def count_garbage(namespace: Namespace) -> Count:
    """Count the blobs that no file refers to, and that are not deleted yet."""
    return _count(namespace.database, *kind_range(b"g"))


def _waits(key: bytes, record: Record) -> bool:
    """Check whether a deleted tree is still to be collected; one that cannot be read is, by a repair."""
    with suppress(CorruptDataError):
        return not DeletedTree.decode(key, record.value).is_collected
    return True


def _count(
    store: Backend, start: bytes, end: bytes, counts: Callable[[bytes, Record], bool] = lambda key, record: True
) -> Count:
    number = 0
    while True:
        page = store.scan(start, end, _PAGE)
        number += sum(counts(key, record) for key, record in page.records)
        if not page.more or number >= _MOST:
            return Count(number, page.more)
        start = page.records[-1][0] + b"\0"
