"""Copy the records of a simulated database, to work on them without steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from holdfast.transactions.base import Backend, Commit, Outcome, Record, ScanPage, SnapshotReader
from holdfast_checker.transactions.database import Records, commit_group, scan_of


class Copy(Backend):
    """A database that nobody else uses, with given records: the start of a world, a snapshot, or its end."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._version = 1 << 60

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        records = self.records.as_dict()
        return {key: records[key] for key in sorted(keys) if key in records}

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return scan_of(self.records, start, end, limit, tuple(sorted(guards)))

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._version += len(commits)
        self.records, outcomes = commit_group(self.records, commits, self._version)
        return list(outcomes)

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        yield Copy(self.records)

    def make_durable(self) -> None:
        """Do nothing: a simulated database loses nothing."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
