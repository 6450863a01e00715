"""Write the modification times of directories' entries with a delay, many in one commit.

HDFS changes a directory's time with each entry that comes or goes. If that were part of the operation's transaction,
all creations in one directory would write one record, and so wait for each other: 8 to 19 times slower with 64 clients.
So each process notes the times in memory and writes them at most once in a second, as a record beside the inode: with
its first operation after a second, when it is flushed, and when it is closed. A process that dies loses the times that
it has not written yet, and nothing else.

A time is written only while the directory is as this process knows it: who sets a directory's time, or deletes it, must
not find an older time there later. So a time is also lost if another process renames the directory, or changes its
attributes, in that second.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from holdfast.errors import HoldfastError
from holdfast.namespace.keys import times_key
from holdfast.namespace.operation import Changes
from holdfast.namespace.view import SeenRecord
from holdfast.runtime import Clock
from holdfast.runtime.process import ForkInProgress, register_fork_listener
from holdfast.transactions.base import ABSENT, Backend, Commit, Conflict, Outcome

_INTERVAL_S = 1.0
_MOST = 1000
_MOST_COMMITS = 128
_TRIES = 3


class _PendingTime(NamedTuple):
    """A time that is not written yet.

    Attributes:
        key, version: of the directory's inode.
    """

    time_ms: int
    key: bytes
    version: int


class DirectoryTimes:
    """Keeps the modification times of directories in memory, and writes them to the database at most once a second."""

    def __init__(self, store: Backend, clock: Clock, *, interval_s: float = _INTERVAL_S) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._written_at_s = clock.elapsed_s()
        self._reset()
        register_fork_listener(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[int, _PendingTime] = {}

    def before_fork(self, fork: ForkInProgress) -> bool:
        """Do nothing before a fork; return True, since a fork is always possible."""
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Discard the unwritten times in the child of a fork: the parent writes them."""
        self._reset()

    def touch(self, touched: Mapping[bytes, SeenRecord], now_ms: int, changes: Changes[Any], version: int) -> None:
        """Remember that a committed operation changed the entries of directories at `now_ms`; write all unwritten times
        if that is due.

        Guarantee: raises nothing if the times cannot be written, because the operation has taken effect already. They
        are kept, and written later.

        Args:
            touched: the inodes of the directories by key, as the operation saw them.
            changes: of the operation: a moved directory keeps its unwritten time; deleting the record of its
                time drops it.
            version: of the written records.
        """
        with self._lock:
            for key, entry in touched.items():
                assert entry.inode is not None, "directories have inodes"
                known = self._pending.get(entry.inode.id)
                if known is None or known.time_ms <= now_ms:
                    self._pending[entry.inode.id] = _PendingTime(now_ms, key, entry.version)
            for key, inode in (*changes.inserts.items(), *changes.puts.items()):
                note = self._pending.pop(inode.id, None)
                if note is not None and times_key(inode.id) not in changes.deletes:
                    self._pending[inode.id] = _PendingTime(note.time_ms, key, version)
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Write the unwritten times if a second has passed since the last write, or there are a thousand; errors are
        suppressed.
        """
        if not self._pending:
            return
        with self._lock:
            elapsed_s = self._clock.elapsed_s()
            is_due = elapsed_s - self._written_at_s >= self._interval_s or len(self._pending) >= _MOST
            if is_due:
                self._written_at_s = elapsed_s
        if is_due:
            with suppress(HoldfastError):
                self.flush()

    def flush(self) -> None:
        """Write all unwritten times now. Those of directories that were deleted, moved or got another time are
        discarded.

        Raises:
            UnavailableError, OutcomeUnknownError: the times are kept, and may be written again.
        """
        with self._lock:
            pending, self._pending = self._pending, {}
        try:
            self._write_times(pending)
        except BaseException:
            with self._lock:
                self._pending = {**pending, **self._pending}
            raise

    def _write_times(self, pending: Mapping[int, _PendingTime]) -> None:
        """Write notes; again, if other clients have written a time at the same moment."""
        for _ in range(_TRIES):
            if not pending:
                return
            known = self._store.get_many([times_key(directory) for directory in pending])
            late: dict[int, _PendingTime] = {}
            commits = []
            for directory, note in pending.items():
                key = times_key(directory)
                version, number = (known[key].version, known[key].number) if key in known else (ABSENT, 0)
                if number < note.time_ms:
                    late[directory] = note
                    reads = {key: version, note.key: note.version}
                    commits.append(Commit(reads=reads, adds={key: note.time_ms - number}))
            outcomes: list[Outcome] = []
            for start in range(0, len(commits), _MOST_COMMITS):
                outcomes += self._store.commit_group(commits[start : start + _MOST_COMMITS])
            refused = zip(late.items(), outcomes, strict=True)
            pending = {
                directory: note
                for (directory, note), outcome in refused
                if isinstance(outcome, Conflict) and note.key not in outcome.keys
            }

    def time_of(self, directory: int, written_ms: int) -> int:
        """Return when the entries of a directory last changed: the later of the time in memory and
        `written_ms`, the time in the database; 0 if unknown.
        """
        note = self._pending.get(directory)
        return written_ms if note is None else max(note.time_ms, written_ms)
