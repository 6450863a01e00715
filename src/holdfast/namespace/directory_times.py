"""Write the modification times of directories later, and many at once.

HDFS changes a directory's time with each entry that comes or goes. If that were part of the operation's transaction,
all creations in one directory would write one record, and so wait for each other: 8 to 19 times slower with 64 clients.
So each process notes the times in memory and writes them at most once in a second, as a record beside the inode. A
process that dies loses the times of its last second, and nothing else. So does a process that writes a time after the
directory itself was changed: who sets a directory's time, or deletes it, must not find an older time there later.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast.errors import HoldfastError
from holdfast.namespace.keys import times_key
from holdfast.namespace.view import View
from holdfast.runtime import Clock
from holdfast.runtime.forks import watch_forks
from holdfast.transactions.base import ABSENT, Commit, TransactionStore

__all__ = ["DirectoryTimes"]

_INTERVAL_S = 1.0
_MOST = 1000
_MOST_COMMITS = 128


class _Note(NamedTuple):
    """A time that is not written yet.

    Attributes:
        key, version: of the directory's inode: the time counts only while the inode is the same.
    """

    time_ms: int
    key: bytes
    version: int


class DirectoryTimes:
    """The modification times that this process has not written yet."""

    def __init__(self, store: TransactionStore, clock: Clock, *, interval_s: float = _INTERVAL_S) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._written_at_s = clock.elapsed_s()
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[int, _Note] = {}

    def before_fork(self) -> None:
        """Do nothing."""

    def after_fork(self, *, is_child: bool) -> None:
        """Forget the notes in a child: the parent writes its own."""
        if is_child:
            self._reset()

    def touch(self, view: View, touched: Collection[bytes], now_ms: int) -> None:
        """Note that the entries of directories have changed, and write all notes if it is time.

        Guarantee: raises nothing if the notes cannot be written, because the operation that calls this has taken effect
        already. They are kept for the next time.

        Args:
            view: what the operation saw.
            touched: the keys of the directories' inodes. Those that are not in the view are new, and have the time.
        """
        if not touched:
            return
        with self._lock:
            for key in touched:
                entry = view.entries.get(key)
                if entry is None:
                    continue
                assert entry.inode is not None, "directories have inodes"
                known = self._pending.get(entry.inode.id)
                if known is None or known.time_ms <= now_ms:
                    self._pending[entry.inode.id] = _Note(now_ms, key, entry.version)
            elapsed_s = self._clock.elapsed_s()
            is_due = elapsed_s - self._written_at_s >= self._interval_s or len(self._pending) >= _MOST
            if is_due:
                self._written_at_s = elapsed_s
        if is_due:
            with suppress(HoldfastError):
                self.flush()

    def flush(self) -> None:
        """Write all notes but those on directories that somebody else touched at the same moment or later.

        Raises:
            UnavailableError, OutcomeUnknownError: the notes are kept, and may be written again.
        """
        with self._lock:
            pending, self._pending = self._pending, {}
        try:
            self._write(pending)
        except BaseException:
            with self._lock:
                self._pending = {**pending, **self._pending}
            raise

    def _write(self, pending: Mapping[int, _Note]) -> None:
        if not pending:
            return
        known = self._store.get_many([times_key(directory) for directory in pending])
        commits = []
        for directory, note in pending.items():
            key = times_key(directory)
            version, number = (known[key].version, known[key].number) if key in known else (ABSENT, 0)
            if number < note.time_ms:
                reads = {key: version, note.key: note.version}
                commits.append(Commit(reads=reads, adds={key: note.time_ms - number}))
        for start in range(0, len(commits), _MOST_COMMITS):
            # A conflict means that another process has just written a time that is as good, or changed the directory.
            self._store.commit_group(commits[start : start + _MOST_COMMITS])

    def time_of(self, directory: int, written_ms: int) -> int:
        """Return the last known modification of a directory's entries, given the one in the database; 0 if unknown."""
        note = self._pending.get(directory)
        return written_ms if note is None else max(note.time_ms, written_ms)

    def forget(self, directory: int) -> None:
        """Drop the note about a directory: somebody has set its time."""
        self._pending.pop(directory, None)
