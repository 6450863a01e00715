"""Measure the calls of a database, and keep alarms away from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from holdfast.runtime import Alarm, Clock
from holdfast.transactions.base import Backend, Commit, LockedTransaction, Outcome, Record, ScanPage
from holdfast.units.statistics import Statistics


class MeteredBackend(Backend):
    """A database that holds another one, and notes how long its calls take. The alarm breaks off none of them.

    Attributes:
        calls_s: seconds in all calls so far.
    """

    def __init__(self, inner: Backend, clock: Clock, statistics: Statistics, alarm: Alarm) -> None:
        self._inner = inner
        self._alarm = alarm
        self._clock = clock
        self._statistics = statistics
        self.calls_s = 0.0
        self.reads_ahead = inner.reads_ahead

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        with self._reading():
            return self._inner.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        with self._reading():
            return self._inner.scan(start, end, limit, guards)

    def commit(self, commit: Commit) -> Outcome:
        with self._committing():
            return self._inner.commit(commit)

    def commit_and_read(self, commit: Commit, keys: Collection[bytes]) -> tuple[Outcome, dict[bytes, Record] | None]:
        with self._committing():
            return self._inner.commit_and_read(commit, keys)

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        with self._committing():
            return self._inner.commit_group(commits)

    @contextmanager
    def locked(self) -> Iterator[LockedTransaction]:
        with self._inner.locked() as transaction:
            yield _MeteredLocked(self, transaction)

    def make_durable(self) -> None:
        self._inner.make_durable()

    def close(self) -> None:
        self._inner.close()

    def _reading(self) -> AbstractContextManager[None]:
        return self._measured(self._note_read)

    def _committing(self) -> AbstractContextManager[None]:
        return self._measured(self._note_commit)

    @contextmanager
    def _measured(self, note: Callable[[float], None]) -> Iterator[None]:
        """Measure a call of the database, which no alarm breaks off."""
        before_s = self._clock.elapsed_s()
        try:
            with self._alarm.shielded():
                yield
        finally:
            took_s = self._clock.elapsed_s() - before_s
            self.calls_s += took_s
            self._statistics.calls += 1
            note(took_s)

    def _note_read(self, took_s: float) -> None:
        self._statistics.read_s += took_s

    def _note_commit(self, took_s: float) -> None:
        self._statistics.commit_s += took_s
        self._statistics.commits.note(took_s)


class _MeteredLocked:
    """A transaction with locks whose calls are measured."""

    def __init__(self, meter: MeteredBackend, inner: LockedTransaction) -> None:
        self._meter = meter
        self._inner = inner

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        with self._meter._reading():
            return self._inner.read(keys, exclusive=exclusive)

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        with self._meter._reading():
            return self._inner.scan(start, end, limit)

    def apply(self, commit: Commit) -> Outcome:
        with self._meter._committing():
            return self._inner.apply(commit)
