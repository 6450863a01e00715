"""Connect the shipped namespace to a simulated database and clock, where each call is a step of the world.

One thing is left out of histories, because it only makes them longer: what a process knows at its start was read from
the state at the start, without steps (`SimulatedHandle.begin`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from holdfast.transactions.base import Commit, Outcome, Record, ScanPage, SnapshotReader
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import DATABASE, DatabaseCopy, RecordMap, SimulatedDatabase
from holdfast_checker.simulated.locks import LockingDatabase
from holdfast_checker.simulated.server import CLOCK


class NamespaceHandle(SimulatedDatabase):
    """The database of one process of a namespace world: each call is a step on the simulated database.

    Before `begin`, reads return the records at the start, and are no steps.

    Args:
        start: the records at the start of every history (execution).
    """

    def __init__(self, port: Port, start: RecordMap) -> None:
        super().__init__(port)
        self._start: DatabaseCopy | None = DatabaseCopy(start)
        self._polled: tuple[tuple[bytes, int], ...] = ()

    def switch_to_simulated_database(self) -> None:
        """Start the history: from now on, each call of this handle is a step of the world."""
        self._start = None

    def wait(self) -> None:
        """Block until the records of the last read have changed; return at once if the last call was a commit."""
        if self._polled:
            self._port.call(Call(DATABASE, "wait", (self._polled,)))

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        if self._start is not None:
            return self._start.get_many(keys)
        found = super().get_many(keys)
        self._remember_polled_versions(keys, found)
        return found

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        if self._start is not None:
            return self._start.scan(start, end, limit, guards)
        page = super().scan(start, end, limit, guards)
        self._remember_polled_versions(guards, dict(page.guards))
        return page

    def _remember_polled_versions(self, keys: Collection[bytes], found: dict[bytes, Record]) -> None:
        self._polled = tuple((key, found[key].version if key in found else 0) for key in sorted(keys))

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._polled = ()
        return super().commit_group(commits)

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        if self._start is not None:
            yield self._start
            return
        with super().snapshot() as found:
            yield found


class LockingNamespaceHandle(NamespaceHandle, LockingDatabase):
    """A `NamespaceHandle` on a database with locks, for operations that lock what they read."""


class ChangeAwaitingClock:
    """The clock of one simulated process, whose sleep waits for other actors' steps instead of time.

    Args:
        ticks: whether the time can change: then each look at the wall clock is a step.
    """

    def __init__(self, port: Port, database: NamespaceHandle, start_s: float, *, ticks: bool) -> None:
        self._port = port
        self._database = database
        self._seen_s = start_s
        self._ticks = ticks

    def now_s(self) -> float:
        if self._ticks:
            self._seen_s = cast("float", self._port.call(Call(CLOCK, "now")))
        return self._seen_s

    def elapsed_s(self) -> float:
        """Return the time at the last look at the wall clock."""
        return self._seen_s

    def sleep(self, duration_s: float) -> None:
        self._database.wait()
