"""Keep the read list of a unit as locks in the database: server-side buffering (paper 003, 4.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.errors import InvalidRequestError
from holdfast.transactions.base import ABSENT, Commit, LockedTransaction, Record, ScanPage

_PAGE = 1000


class LockedReads:
    """Reads that hold locks until the unit's commit.

    Guarantee: nobody changes a record that was read. An absent record is not locked: that it is still absent is
    validated by the commit, like the guards of ranges. Of what was read, this process keeps only the keys of absent
    records.

    Args:
        exclusive: whether others may not even read what was read. Units that write what they read would otherwise wait
            for each other.
    """

    def __init__(self, locked: LockedTransaction, *, exclusive: bool) -> None:
        self._locked = locked
        self._exclusive = exclusive
        self._absent: set[bytes] = set()

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Record]:
        """Lock and read records."""
        if not keys:
            return {}
        found = self._locked.read(keys, exclusive=self._exclusive)
        self._absent.update(key for key in keys if key not in found)
        return found

    def scan(self, start: bytes, end: bytes, limit: int | None, *, guard: bytes) -> list[tuple[bytes, Record]]:
        """Lock the guard, so that nobody inserts into the range, then the records of the range."""
        if guard not in self._locked.read([guard], exclusive=True):
            raise InvalidRequestError("the table was dropped: create it")
        found: list[tuple[bytes, Record]] = []
        more = True
        while more and start < end and (limit is None or len(found) < limit):
            page = self._locked.scan(start, end, _PAGE if limit is None else min(_PAGE, limit - len(found)))
            keys = [key for key, _record in page.records]
            # Between the scan and the lock, others may have changed or deleted a record, but none has appeared.
            now = self._locked.read(keys, exclusive=self._exclusive) if keys else {}
            found += [(key, now[key]) for key in keys if key in now]
            more = page.more
            start = keys[-1] + b"\0" if keys else end
        return found

    def to_validation(self) -> Commit:
        """Return what the locks do not guarantee."""
        return Commit(reads=dict.fromkeys(self._absent, ABSENT))


class UnlockedReads:
    """Reads on the connection of a transaction with locks that lock nothing: for the definitions of tables.

    The commit validates these. Another connection would do as well, but perhaps there is none.
    """

    def __init__(self, locked: LockedTransaction) -> None:
        self._locked = locked

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Read records, each as it is now."""
        return dict(record for key in keys for record in self.scan(key, key + b"\0", 1).records)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """Read a range as it is now; guards are not read."""
        return self._locked.scan(start, end, limit)
