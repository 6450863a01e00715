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
from contextlib import suppress

from holdfast.errors import HoldfastError
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
        self._written_at_s = clock.elapsed_s()
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[int, int] = {}
        self._pid = os.getpid()

    def touch(self, directories: Collection[int], now_ms: int) -> None:
        """Note that the entries of directories have changed, and write all notes if it is time.

        Guarantee: raises nothing if the notes cannot be written, because the operation that calls this has taken effect
        already. They are kept for the next time.
        """
        if not directories:
            return
        if self._pid != os.getpid():
            self._reset()  # after a fork: the parent writes its own notes
        with self._lock:
            self._note(dict.fromkeys(directories, now_ms))
            elapsed_s = self._clock.elapsed_s()
            is_due = elapsed_s - self._written_at_s >= self._interval_s or len(self._pending) >= _MOST
            if is_due:
                self._written_at_s = elapsed_s
        if is_due:
            with suppress(HoldfastError):
                self.flush()

    def _note(self, times: dict[int, int]) -> None:
        for directory, time_ms in times.items():
            self._pending[directory] = max(time_ms, self._pending.get(directory, 0))

    def flush(self) -> None:
        """Write all notes. Does nothing for a directory that somebody else touched at the same moment or later.

        Raises:
            UnavailableError, OutcomeUnknownError: the notes are kept, and may be written again.
        """
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            pending, self._pending = self._pending, {}
        try:
            self._write(pending)
        except HoldfastError:
            with self._lock:
                self._note(pending)
            raise

    def _write(self, pending: dict[int, int]) -> None:
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
