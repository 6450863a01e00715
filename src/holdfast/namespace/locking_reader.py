"""Lock the records of an operation while they are read: the pessimistic way of paper 004 (2.3, Table 2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from holdfast.namespace.keys import ROOT_KEY
from holdfast.namespace.operation import Mode
from holdfast.namespace.view import Group, Hints, follow
from holdfast.transactions.base import LockedTransaction, Record, ScanPage


class LockingReader:
    """Locks what it reads: everything above the parents shared, all else exclusively.

    Two that have locked the same record shared, and then want to write it, would wait for each other.
    """

    def __init__(self, mode: Mode, hints: Hints, group: Group, transaction: LockedTransaction) -> None:
        self._mode = mode
        self._hints = hints
        self._group = group
        self._transaction = transaction
        self._records: dict[bytes, Record] = {}
        self._held: set[bytes] = set()

    def get_many(self, keys: Collection[bytes]) -> Mapping[bytes, Record]:
        if self._mode == "global" and not self._held:
            self._lock([ROOT_KEY], exclusive=True)
        chains = [follow(path, self._hints.get) for path in self._group.paths]
        ends = {key for chain in chains for key in chain.keys[max(len(chain.path.names) - 1, 0) :]}
        above = {key for chain in chains for key in chain.keys} - ends
        for exclusive in (False, True):
            self._lock([key for key in keys if (key not in above) == exclusive], exclusive=exclusive)
        return self._records

    def _lock(self, keys: Collection[bytes], *, exclusive: bool) -> None:
        new = [key for key in keys if key not in self._held]
        if new:
            self._records.update(self._transaction.read(new, exclusive=exclusive))
            self._held.update(new)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        found = self.get_many(guards)
        page = self._transaction.scan(start, end, limit)
        return ScanPage(page.records, page.more, found)
