"""Keep records in the memory of this process: the reference for the other backends, for tests and for the checker."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from holdfast.runtime import Environment, Ids, SystemIds
from holdfast.transactions.base import Backend, Commit, Outcome, Record, ScanPage
from holdfast.transactions.validation import VersionSource, apply_steps, steps_of_group, validate_group


class MemoryBackend(Backend):
    """A transaction database in the memory of this process; each call runs under one lock."""

    def __init__(self, ids: Ids | None = None) -> None:
        self._lock = threading.RLock()
        self._versions = VersionSource(ids or SystemIds())
        self._records: dict[bytes, Record] = {}
        self._keys: list[bytes] = []

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        with self._lock:
            return {key: self._records[key] for key in keys if key in self._records}

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        with self._lock:
            first, last = bisect.bisect_left(self._keys, start), bisect.bisect_left(self._keys, end)
            keys = self._keys[first : min(last, first + limit)]
            found = [(key, self._records[key]) for key in keys]
            return ScanPage(found, last - first > limit, self.get_many(guards))

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        steps = steps_of_group(commits)
        with self._lock:
            base = self._versions.take(len(commits))
            seen = self.get_many({step.key for step in steps})
            counts = {
                (call, index): len(self.scan(one.start, one.end, one.count + 1).records)
                for call, commit in enumerate(commits)
                for index, one in enumerate(commit.ranges)
            }
            result = validate_group(commits, steps, seen, counts, base)
            for key, record in apply_steps(seen, result.valid, base).items():
                self._set(key, record)
            return list(result.outcomes)

    def _set(self, key: bytes, record: Record | None) -> None:
        if record is not None:
            if key not in self._records:
                bisect.insort(self._keys, key)
            self._records[key] = record
        elif self._records.pop(key, None) is not None:
            del self._keys[bisect.bisect_left(self._keys, key)]

    @contextmanager
    def snapshot(self) -> Iterator[MemoryBackend]:
        """Yield a copy of the database, which later commits do not change."""
        copy = MemoryBackend()
        with self._lock:
            copy._records, copy._keys = dict(self._records), list(self._keys)
        yield copy

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[_LockedMemory]:
        """Begin a transaction that holds the lock of the whole database until it ends."""
        with self._lock:
            yield _LockedMemory(self)

    def make_durable(self) -> None:
        """Do nothing: the records last as long as the process."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class _LockedMemory:
    """A pessimistic transaction: no other thread reads or writes."""

    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        return self._backend.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        return self._backend.scan(start, end, limit)

    def apply(self, commit: Commit) -> Outcome:
        return self._backend.commit(commit)


_OPEN: dict[str, MemoryBackend] = {}


def open_backend(url: str, environment: Environment, *, create: bool) -> MemoryBackend:
    """Return the database of a ``memory://name`` URL, the same one for each call in this process with this name."""
    return _OPEN.setdefault(urlsplit(url).netloc, MemoryBackend(environment.ids))
