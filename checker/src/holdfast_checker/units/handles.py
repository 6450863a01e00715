"""Give the shipped code a handle on the simulated database, and a clock: each call is a step of the world.

Two things are left out of histories, because they only make them longer. The definitions of tables are known at the
start, unless a scene drops a table. And the record of a task's progress is stored without its statistics, which no step
of the protocol reads; so states that differ in nothing else are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.errors import UnavailableError
from holdfast.transactions.base import Commit, Outcome, Record, ScanPage
from holdfast.units.progress import Statistics, TaskProgress, progress_key
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import DATABASE
from holdfast_checker.simulated.database_handle import LockingDatabase

_PROGRESS = progress_key(0, 0)[:2]


class UnitsHandle(LockingDatabase):
    """A process's handle on a `UnitsDatabase`.

    Args:
        known: records that never change.
        watched: a range; a process that has just read it waits until it changes.
    """

    def __init__(self, port: Port, known: Mapping[bytes, Record], watched: tuple[bytes, bytes] = (b"", b"")) -> None:
        super().__init__(port)
        self._known = known
        self._watched = watched
        self._seen: tuple[tuple[bytes, int], ...] | None = None

    def wait(self) -> bool:
        """Wait until the range that was just read has changed; return whether the time of a lease has passed."""
        if self._seen is None:
            return False
        return bool(self._port.call(Call(DATABASE, "idle", (*self._watched, self._seen))))

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        if keys and self._known.keys() >= set(keys):
            return {key: self._known[key] for key in keys}
        self._seen = None
        return super().get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self._seen = None
        page = super().scan(start, end, limit, guards)
        if (start, end) == self._watched:
            self._seen = tuple((key, record.version) for key, record in page.records)
        return page

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._seen = None
        return super().commit_group(commits)

    def as_value(self, commit: Commit) -> Commit:
        puts = {
            key: _without_statistics(value) if key.startswith(_PROGRESS) else value
            for key, value in commit.puts.items()
        }
        return super().as_value(replace(commit, puts=puts))


class AheadHandle(UnitsHandle):
    """A handle on a database that reads with a commit: as if at once, with others in between."""

    reads_ahead = True
    has_read_ahead = False

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        outcome = self.commit(commit)
        try:
            records = self.get_many(keys)
        except UnavailableError:
            return outcome, None
        self.has_read_ahead = True
        return outcome, records


def _without_statistics(value: bytes) -> bytes:
    return replace(TaskProgress.of(value), statistics=Statistics()).to_bytes()


class WorkerClock:
    """The clock of one process. It waits for the others, not for the time; and when it has waited for them for long
    enough, the time of a lease has passed.

    Args:
        lease_s: the time of a lease.
    """

    def __init__(self, database: UnitsHandle, lease_s: float) -> None:
        self._database = database
        self._lease_s = lease_s
        self._at_s = 0.0

    def now_s(self) -> float:
        return self._at_s

    def elapsed_s(self) -> float:
        return self._at_s

    def sleep(self, duration_s: float) -> None:
        if self._database.wait():
            self._at_s += self._lease_s
