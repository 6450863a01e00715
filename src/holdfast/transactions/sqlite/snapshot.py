"""Read one snapshot of an SQLite file, and end it if nobody reads from it for an hour.

While a snapshot is open, the log keeps all that was written since, so one that is forgotten, as by a walk that nobody
reads to its end, would fill the disk.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from holdfast.errors import UnavailableError
from holdfast.runtime import Clock
from holdfast.runtime.process import require_process
from holdfast.transactions.base import Record, ScanPage
from holdfast.transactions.sqlite.queries import get_many, scan

_MOST_IDLE_S = 3600.0
"""As PostgreSQL's and MySQL's snapshots."""


class SqliteSnapshot:
    """Reads one snapshot.

    Args:
        reader: a connection in a transaction, for this object alone until the snapshot is over.
        clock: measures how long nobody has read.
    """

    def __init__(self, reader: sqlite3.Connection, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._pid = os.getpid()
        self._in_use = threading.RLock()  # a collection of garbage may end it anywhere
        self._used_s = clock.elapsed_s()
        self._is_over = False

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        with self._reading():
            return get_many(self._reader, list(keys))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        with self._reading():
            return scan(self._reader, start, end, limit, list(guards))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        require_process(self._pid)
        with self._in_use:
            self._end_if_idle()
            if self._is_over:
                raise UnavailableError(
                    "nobody has read from the snapshot for an hour, so it has ended: begin to read anew",
                    idle_s=_MOST_IDLE_S,
                )
            yield
            self._used_s = self._clock.elapsed_s()

    def end_if_idle(self) -> None:
        """End the snapshot if it is forgotten: called by whoever uses the file next. Waits for nobody."""
        if self._pid == os.getpid() and self._in_use.acquire(blocking=False):
            try:
                self._end_if_idle()
            finally:
                self._in_use.release()

    def close(self) -> None:
        """Never touch the connection again: it goes back to others."""
        if self._pid == os.getpid():  # in a forked child, another thread of the parent may have the lock
            with self._in_use:
                self._is_over = True

    def _end_if_idle(self) -> None:
        if not self._is_over and self._clock.elapsed_s() - self._used_s > _MOST_IDLE_S:
            self._is_over = True
            if self._reader.in_transaction:
                self._reader.execute("ROLLBACK")
