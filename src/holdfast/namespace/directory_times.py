"""Write the modification times of directories later, and many at once.

HDFS changes a directory's time with each entry that comes or goes. If that were part of the operation's transaction,
all creations in one directory would write one record, and so wait for each other: 8 to 19 times slower with 64 clients.
So each process notes the times in memory and writes them at most once in a second, as a record beside the inode: with
its first operation after a second, when it is flushed, and when it is closed. A process that dies loses the times that
it has not written yet, and nothing else.

A time is written only while the directory is the one that was noted. Who sets a directory's time, or deletes it, must
not find an older time there later; but a directory that got another name or another mode keeps its time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from holdfast.errors import CorruptDataError, HoldfastError
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import ROOT_ID, id_of, inode_key, place_key, times_key
from holdfast.namespace.other_records import decode_trail
from holdfast.namespace.view import View
from holdfast.runtime import Clock
from holdfast.runtime.process import Fork, watch_forks
from holdfast.transactions.base import ABSENT, Backend, Commit, Conflict, Record

_INTERVAL_S = 1.0
_MOST = 1000
_MOST_COMMITS = 128
_TRIES = 3


class _Note(NamedTuple):
    """A time that is not written yet.

    Attributes:
        key, version, inode: the directory's inode when its entries changed.
    """

    time_ms: int
    key: bytes
    version: int
    inode: Inode

    def follow(self, key: bytes, record: Record | None) -> _Note | None:
        """Return the note for what is at a key now; None if that is not the directory, or its time was set."""
        if record is None:
            return None
        if key == self.key and record.version == self.version:
            return self  # another client has just written another time
        try:
            inode = decode_inode(key, record.value)
        except CorruptDataError:
            return None
        is_moved = key != self.key or inode.id == ROOT_ID  # sweeps write the root anew, as it is
        has_other_attributes = replace(inode, mtime_ms=0) != replace(self.inode, mtime_ms=0)
        is_other = (inode.id, inode.namespace) != (self.inode.id, self.inode.namespace)
        if is_other or inode.mtime_ms != self.inode.mtime_ms or not (is_moved or has_other_attributes):
            return None  # a time that is set to what it was changes nothing but the version
        return _Note(self.time_ms, key, record.version, inode)


class DirectoryTimes:
    """The modification times that this process has not written yet."""

    def __init__(self, store: Backend, clock: Clock, *, interval_s: float = _INTERVAL_S) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._written_at_s = clock.elapsed_s()
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[int, _Note] = {}

    def before_fork(self, fork: Fork) -> bool:
        """Do nothing."""
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Forget the notes in a child: the parent writes its own."""
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
                    self._pending[entry.inode.id] = _Note(now_ms, key, entry.version, entry.inode)
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Write all notes if it is time; raises nothing, as `touch`."""
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
        """Write all notes but those on directories that are gone, whose time was set, or written later.

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
        for _ in range(_TRIES):
            if not pending:
                return
            pending = self._followed(self._write_once(pending))

    def _followed(self, refused: Mapping[int, _Note]) -> dict[int, _Note]:
        """Return notes on directories as they are now: they may have been renamed, or have other attributes."""
        if not refused:
            return {}
        keys = {directory: note.key for directory, note in refused.items()}
        for place, record in self._store.get_many([place_key(directory) for directory in refused]).items():
            with suppress(CorruptDataError):
                trail = decode_trail(place, record.value)
                parent = trail[-2][0] if len(trail) > 1 else ROOT_ID
                keys[id_of(place)] = inode_key(parent, trail[-1][1])
        found = self._store.get_many(list(keys.values()))
        followed = {number: note.follow(keys[number], found.get(keys[number])) for number, note in refused.items()}
        return {number: note for number, note in followed.items() if note is not None}

    def _write_once(self, pending: Mapping[int, _Note]) -> dict[int, _Note]:
        """Write notes; return those that were refused, because others have changed the directory or its time."""
        known = self._store.get_many([times_key(directory) for directory in pending])
        commits = []
        notes = []
        for directory, note in pending.items():
            key = times_key(directory)
            version, number = (known[key].version, known[key].number) if key in known else (ABSENT, 0)
            if number < note.time_ms:
                reads = {key: version, note.key: note.version}
                commits.append(Commit(reads=reads, adds={key: note.time_ms - number}))
                notes.append((directory, note))
        refused = {}
        for start in range(0, len(commits), _MOST_COMMITS):
            outcomes = self._store.commit_group(commits[start : start + _MOST_COMMITS])
            for (directory, note), outcome in zip(notes[start : start + _MOST_COMMITS], outcomes, strict=True):
                if isinstance(outcome, Conflict):
                    refused[directory] = note
        return refused

    def time_of(self, directory: int, written_ms: int) -> int:
        """Return the last known modification of a directory's entries, given the one in the database; 0 if unknown."""
        note = self._pending.get(directory)
        return written_ms if note is None else max(note.time_ms, written_ms)

    def forget(self, directory: int) -> None:
        """Drop the note about a directory: its time was set."""
        self._pending.pop(directory, None)
