"""Write the modification times of directories later, and many at once.

HDFS changes a directory's time with each entry that comes or goes. If that were part of the operation's transaction,
all creations in one directory would write one record, and so wait for each other: 8 to 19 times slower with 64 clients.
So each process notes the times in memory and writes them at most once in a second, as a record beside the inode. A
process that dies loses the times of its last second, and nothing else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection

from holdfast.namespace.keys import times_key
from holdfast.runtime import Clock
from holdfast.transactions.base import ABSENT, Commit, TransactionStore

__all__ = ["DirectoryTimes"]

_INTERVAL_S = 1.0
_MOST = 1000


class DirectoryTimes:
    """The modification times that this process has not written yet."""

    def __init__(self, store: TransactionStore, clock: Clock, *, interval_s: float = _INTERVAL_S) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._pending: dict[int, int] = {}
        self._written_at_s = clock.elapsed_s()
        self._pid = os.getpid()

    def touch(self, directories: Collection[int], now_ms: int) -> None:
        """Note that the entries of directories have changed, and write all notes if it is time."""
        if not directories:
            return
        if self._pid != os.getpid():  # after a fork: the parent writes its own notes
            self._lock, self._pending, self._pid = threading.Lock(), {}, os.getpid()
        with self._lock:
            for directory in directories:
                self._pending[directory] = max(now_ms, self._pending.get(directory, 0))
            elapsed_s = self._clock.elapsed_s()
            is_due = elapsed_s - self._written_at_s >= self._interval_s or len(self._pending) >= _MOST
            if is_due:
                self._written_at_s = elapsed_s
        if is_due:
            self.flush()

    def flush(self) -> None:
        """Write all notes. Does nothing for a directory that somebody else touched at the same moment or later."""
        with self._lock:
            pending, self._pending = self._pending, {}
        if not pending:
            return
        known = self._store.get_many([times_key(directory) for directory in pending])
        commits = []
        for directory, time_ms in pending.items():
            key = times_key(directory)
            version, number = (known[key].version, known[key].number) if key in known else (ABSENT, 0)
            if number < time_ms:
                commits.append(Commit(reads={key: version}, adds={key: time_ms - number}))
        if commits:
            # A conflict means that another process has just written a time that is as good.
            self._store.commit_group(commits)

    def time_of(self, directory: int, written_ms: int) -> int:
        """Return the last known modification of a directory's entries, given the one in the database; 0 if unknown."""
        return max(self._pending.get(directory, 0), written_ms)

    def forget(self, directory: int) -> None:
        """Drop the note about a directory: somebody has set its time."""
        self._pending.pop(directory, None)
