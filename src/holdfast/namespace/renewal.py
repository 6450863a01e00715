"""Keep the lease of a writer alive."""

from __future__ import annotations

from dataclasses import replace

from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.keys import lease_key
from holdfast.namespace.lease import SOFT_LIMIT_MS, Lease
from holdfast.namespace.view import Entry, Hints
from holdfast.runtime import Clock
from holdfast.transactions.base import Backend, Commit, Committed

_INTERVAL_S = SOFT_LIMIT_MS / 1000 / 2


class LeaseRenewal:
    """Renews one lease when half of the soft limit has passed. The inode is not touched.

    Args:
        holder: the token of the writer.
    """

    def __init__(self, store: Backend, hints: Hints, clock: Clock, file_id: int, holder: str) -> None:
        self._store = store
        self._hints = hints
        self._clock = clock
        self._key = lease_key(file_id)
        self._holder = holder
        self._renewed_s = clock.elapsed_s()

    def renew_if_due(self) -> None:
        """Renew the lease if it is time.

        Raises:
            LeaseLostError: somebody has recovered the lease.
        """
        now_s = self._clock.elapsed_s()
        if now_s - self._renewed_s < _INTERVAL_S:
            return
        record = self._store.get_many([self._key]).get(self._key)
        lease = None if record is None else Lease.decode(self._key, record.value)
        if record is None or lease is None or lease.holder != self._holder:
            raise LeaseLostError("the lease of the file was recovered: write the file again", holder=self._holder)
        value = replace(lease, renewed_ms=max(int(self._clock.now_s() * 1000), 0)).encode()
        outcome = self._store.commit(Commit(reads={self._key: record.version}, puts={self._key: value}))
        if isinstance(outcome, Committed):
            self._hints.put(self._key, Entry(outcome.version, None, value))
            self._renewed_s = now_s
        # A conflict is a rename of the file, or a recovery: the next call tells.
