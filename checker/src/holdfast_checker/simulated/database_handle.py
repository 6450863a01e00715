"""Give a process its handle on a simulated database: a transaction backend whose calls are steps of the world."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from holdfast.transactions.base import Backend, Commit, LockedTransaction, Outcome, Record, ScanPage, SnapshotReader
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import DATABASE, Copy, Records
from holdfast_checker.simulated.locks import SimulatedLocks

_EVERYTHING = (b"\0", b"\xff", 1_000_000)


class SimulatedDatabase(Backend):
    """A handle on a `Database`, whose commits are single steps."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        found = self._port.call(Call(DATABASE, "get_many", (tuple(sorted(keys)),)))
        return dict(cast("tuple[tuple[bytes, Record], ...]", found))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return cast("ScanPage", self._port.call(Call(DATABASE, "scan", (start, end, limit, tuple(sorted(guards))))))

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        values = tuple(map(self.as_value, commits))
        call = Call(DATABASE, "commit_group", (values, versions(self._port, len(commits))))
        return list(cast("tuple[Outcome, ...]", self._port.call(call)))

    def as_value(self, commit: Commit) -> Commit:
        """Return a commit as a value, which has no order of deletes."""
        return replace(commit, deletes=tuple(sorted(commit.deletes)))

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        """Read everything in one step."""
        page = SimulatedDatabase.scan(self, *_EVERYTHING)
        yield Copy(Records(tuple(key for key, _ in page.records), tuple(record for _, record in page.records)))

    def make_durable(self) -> None:
        self._port.call(Call(DATABASE, "make_durable"))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class LockingDatabase(SimulatedDatabase):
    """A handle on a `LockableDatabase`."""

    @contextmanager
    def locked(self) -> Iterator[LockedTransaction]:
        transaction = SimulatedLocks(self._port, self.as_value)
        try:
            yield transaction
        finally:
            transaction.release()


def versions(port: Port, count: int) -> int:
    """Return the first of several consecutive versions that nobody else has."""
    first, *_others = [int(port.token(), 16) for _ in range(max(count, 1))]
    return first
