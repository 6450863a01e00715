"""Give the shipped code a handle on the simulated database, and a clock: each call is a step of the world.

Two things are left out of histories, because they only make them longer. The definitions of tables are known at the
start, unless a scene drops a table. And the record of a task's progress is stored without its statistics, which no step
of the protocol reads; so states that differ in nothing else are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from holdfast.errors import UnavailableError
from holdfast.transactions.base import Backend, Commit, LockedTransaction, Outcome, Record, ScanPage, SnapshotReader
from holdfast.units.progress import Statistics, TaskProgress, progress_key
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.process import Port
from holdfast_checker.transactions.copies import Copy
from holdfast_checker.transactions.database import DATABASE, Records
from holdfast_checker.transactions.handles import SimulatedDatabase
from holdfast_checker.transactions.locking import SimulatedLocks

_ENDS = (b"\0", b"\xff")
_EVERYTHING = 1_000_000
_PROGRESS = progress_key(0, 0)[:2]


class UnitsHandle(Backend):
    """A process's handle on a `UnitsDatabase`.

    Args:
        known: records that never change.
        watched: a range; a process that has just read it waits until it changes.
    """

    def __init__(self, port: Port, known: Mapping[bytes, Record], watched: tuple[bytes, bytes] = (b"", b"")) -> None:
        self._port = port
        self._database = SimulatedDatabase(port)
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
        return self._database.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self._seen = None
        page = self._database.scan(start, end, limit, guards)
        if (start, end) == self._watched:
            self._seen = tuple((key, record.version) for key, record in page.records)
        return page

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._seen = None
        return self._database.commit_group([_plain(commit) for commit in commits])

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        """Read everything in one step."""
        page = self._database.scan(*_ENDS, _EVERYTHING)
        yield Copy(Records(tuple(key for key, _ in page.records), tuple(record for _, record in page.records)))

    @contextmanager
    def locked(self) -> Iterator[LockedTransaction]:
        locks = SimulatedLocks(self._port)
        try:
            yield _PlainLocks(locks)
        finally:
            locks.release()

    def make_durable(self) -> None:
        self._database.make_durable()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class AheadHandle(UnitsHandle):
    """A handle on a database that reads with a commit: as if at once, with others in between."""

    reads_ahead = True

    def __init__(self, port: Port, known: Mapping[bytes, Record], watched: tuple[bytes, bytes] = (b"", b"")) -> None:
        super().__init__(port, known, watched)
        self.has_read_ahead = False

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        outcome = self.commit(commit)
        try:
            records = self.get_many(keys)
        except UnavailableError:
            return outcome, None
        self.has_read_ahead = True
        return outcome, records


class _PlainLocks:
    """A transaction that locks what it reads."""

    def __init__(self, locks: SimulatedLocks) -> None:
        self._locks = locks

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        return self._locks.read(keys, exclusive=exclusive)

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        return self._locks.scan(start, end, limit)

    def apply(self, commit: Commit) -> Outcome:
        return self._locks.apply(_plain(commit))


def _plain(commit: Commit) -> Commit:
    """Return a commit as a value, which has no order of deletes, and no statistics."""
    puts = dict(commit.puts)
    for key in puts:
        if key.startswith(_PROGRESS):
            puts[key] = _without_statistics(puts[key])
    return replace(commit, puts=puts, deletes=tuple(sorted(commit.deletes)))


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
