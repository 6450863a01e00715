"""Let people fill and look at work lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.records.opening import require_open_store
from holdfast.records.paging import read_records
from holdfast.records.row_keys import Row
from holdfast.records.store import Store
from holdfast.records.values import Value
from holdfast.transactions.base import Commit, Conflict, SnapshotReader
from holdfast.units.claims import decode_claim
from holdfast.units.work_list import WorkList, create_work_list, drop_work_list, find_work_list

__all__ = ["NewItem", "OpenWorkList", "count_items", "open_work_list"]

NewItem: TypeAlias = "tuple[Row, Value | None] | tuple[Row, Value | None, int]"
"""A key, its value, and perhaps its priority."""

_BATCH = 500


class OpenWorkList:
    """A work list of an open store: keys with values and priorities, which workers take and units add to.

    Attributes:
        name: of the list.
    """

    def __init__(self, store: Store, work: WorkList) -> None:
        self.name = work.name
        self._store = store
        self._work = work

    def add(self, key: Row, value: Value | None = None, *, priority: int = 0) -> None:
        """Add a key. One that waits already with this priority gets the new value, and runs once.

        Add keys before the work begins: workers that have found the list at its end do not begin again.

        Args:
            priority: keys with smaller numbers are taken first.

        Raises:
            NotFoundError: the list was dropped.
        """
        self.add_many([(key, value, priority)])

    def add_many(self, items: Iterable[NewItem]) -> int:
        """Add many keys, some hundreds in each transaction; return how many were given.

        Raises:
            InvalidRequestError: an item is not valid.
            NotFoundError: the list was dropped.

        Crash: some are there; add all of them again.
        """
        count = 0
        batch: dict[bytes, bytes] = {}
        for item in items:
            _require_item(item)
            record, encoded = self._work.new_item(*item) if len(item) == 3 else self._work.new_item(*item, 0)
            batch[record] = encoded
            count += 1
            if len(batch) >= _BATCH:
                self._put(batch)
                batch = {}
        if batch:
            self._put(batch)
        return count

    def _put(self, batch: dict[bytes, bytes]) -> None:
        commit = Commit(reads={self._work.definition_key: self._work.version}, puts=batch)
        if isinstance(self._store.database.commit(commit), Conflict):
            raise NotFoundError("the work list was dropped: create it", list=self.name)

    def counts(self) -> tuple[int, int]:
        """Return how many keys wait, and how many workers have taken, at one moment."""
        with self._store.database.snapshot() as reader:
            return count_items(reader, self._work)

    def drop(self) -> None:
        """Drop the list with everything that waits."""
        drop_work_list(self._store.database, self.name, self._store.environment)

    def __repr__(self) -> str:
        return f"OpenWorkList({self.name!r})"


def _require_item(item: object) -> None:
    """Check that something is an item: a text of two letters, which Python would take apart, is none.

    Raises:
        InvalidRequestError: it is not.
    """
    if not isinstance(item, tuple) or len(item) not in (2, 3):
        raise InvalidRequestError(
            "an item is a pair (key, value), or (key, value, priority): make tuples", type=type(item).__name__
        )


def count_items(reader: SnapshotReader, work: WorkList) -> tuple[int, int]:
    """Return how many keys of a list wait, and how many workers have taken."""
    waiting = claimed = 0
    for key, record in read_records(reader, *work.range):
        if work.item_of(key, record) is not None:
            waiting += 1
        else:
            claimed += len(decode_claim(key, record).items)
    return waiting, claimed


def open_work_list(store: Store, name: str, *, create: bool = False) -> OpenWorkList:
    """Open a work list of a store.

    Args:
        create: whether to create it if it does not exist.

    Raises:
        InvalidRequestError: `store` is not an open store, or the name is not valid.
        NotFoundError: it does not exist.
    """
    require_open_store(store)
    if create:
        return OpenWorkList(store, create_work_list(store.database, name, store.environment, exist_ok=True))
    return OpenWorkList(store, find_work_list(store.database, name))
