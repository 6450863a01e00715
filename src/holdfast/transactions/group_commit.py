"""Let the concurrent callers of one process share round trips and flushes to disk."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

from holdfast.transactions.base import (
    Commit,
    Database,
    LockedTransaction,
    Outcome,
    Record,
    ScanPage,
    SnapshotReader,
    check_commit,
    independent,
)
from holdfast.transactions.combining import Combiner

__all__ = ["GroupCommit"]

_MOST_COMMITS = 128
"""Size of a group. Larger groups gain little (facts: 64 inserts in one transaction cost what 20 cost one by one)."""

_MOST_READS = 64


class GroupCommit:
    """A store that holds another one, and commits and reads concurrent requests together.

    Guarantee: the same as that of the inner store, for each caller. A conflict costs only the caller that has it.

    Args:
        committers: how many groups are on their way to the database at the same time. Two keep it busy while the next
            group is made.
        readers: the same for groups of reads.
    """

    def __init__(self, inner: Database, *, committers: int = 1, readers: int = 2) -> None:
        self._inner = inner
        self._commits: Combiner[Commit, Outcome] = Combiner(
            inner.commit_group, limit=_MOST_COMMITS, take=independent, leaders=committers
        )
        self._reads: Combiner[Collection[bytes], dict[bytes, Record]] = Combiner(
            self._read, limit=_MOST_READS, leaders=readers, repeats=True
        )

    def _read(self, requests: list[Collection[bytes]]) -> Sequence[dict[bytes, Record]]:
        if len(requests) == 1:
            return [self._inner.get_many(requests[0])]
        found = self._inner.get_many({key for keys in requests for key in keys})
        return [{key: found[key] for key in keys if key in found} for keys in requests]

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._reads.submit(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._inner.scan(start, end, limit, guards)

    def commit(self, commit: Commit) -> Outcome:
        check_commit(commit)  # a mistake of one caller must not reach the others
        return self._commits.submit(commit)

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._inner.commit_group(commits)

    def snapshot(self) -> AbstractContextManager[SnapshotReader]:
        return self._inner.snapshot()

    def locked(self) -> AbstractContextManager[LockedTransaction]:
        return self._inner.locked()

    def close(self) -> None:
        self._inner.close()
