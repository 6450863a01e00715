"""Provide checks with the transaction database under test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from holdfast.conformance import ConformanceError, equal, expect
from holdfast.runtime import ThreadRunner
from holdfast.transactions.base import ABSENT, Backend, Commit, Committed, Conflict, Outcome, Record

T = TypeVar("T")
RACERS = 8
_TOGETHER_S = 60.0  # for all threads to arrive
_TRIES = 10_000
_PAGE = 1000


class Meeting:
    """A point at which several threads wait for each other, again and again. If one fails, none waits any longer."""

    def __init__(self, threads: int) -> None:
        self._barrier = threading.Barrier(threads)

    def meet(self) -> None:
        """Wait until all threads have come here."""
        self._barrier.wait(_TOGETHER_S)

    @contextmanager
    def member(self) -> Iterator[None]:
        """Release the others if the block fails."""
        try:
            yield
        except BaseException:
            self._barrier.abort()
            raise


@dataclass(frozen=True, slots=True)
class Subject:
    """A transaction database under test.

    Attributes:
        backend: the handle that a check uses.
        other: another handle on the same data, as another process would have; may be the same object.
        prefix: of this check's keys; ends in a slash. No record has such a key at first.
        rounds: how often each race is repeated: a database that lets two of several writers win does so only sometimes.
    """

    backend: Backend
    other: Backend
    prefix: bytes
    rounds: int = 20

    # --- keys and records ---------------------------------------------------------------------------------------------
    def key(self, relative: bytes) -> bytes:
        """Return a key of this check."""
        return self.prefix + relative

    @property
    def end(self) -> bytes:
        """Return the end of the range of this check's keys."""
        return self.prefix[:-1] + bytes([self.prefix[-1] + 1])

    def fill(self, values: Mapping[bytes, bytes], numbers: Mapping[bytes, int] | None = None) -> None:
        """Write records, then add to their numbers; keys are relative."""
        self.committed(Commit(puts={self.key(key): value for key, value in values.items()}), "puts")
        if numbers:
            self.committed(Commit(adds={self.key(key): number for key, number in numbers.items()}), "adds")

    def reads(self, *relative: bytes) -> dict[bytes, int]:
        """Return the versions of records as they are now, as `Commit.reads` has them."""
        keys = [self.key(each) for each in relative]
        found = self.backend.get_many(keys)
        return {key: found[key].version if key in found else ABSENT for key in keys}

    def record(self, relative: bytes) -> Record | None:
        """Read one record through the other handle."""
        return self.other.get_many([self.key(relative)]).get(self.key(relative))

    def records(self) -> dict[bytes, Record]:
        """Return all records of this check by relative key, read through the other handle."""
        found: dict[bytes, Record] = {}
        start, more = self.prefix, True
        while more:
            page = self.other.scan(start, self.end, _PAGE)
            found.update((key[len(self.prefix) :], record) for key, record in page.records)
            more = page.more
            if more:
                start = page.records[-1][0] + b"\0"
        return found

    def holds(self, expected: Mapping[bytes, bytes | tuple[bytes, int]], what: str) -> None:
        """Check that exactly these records exist, each with a value, or a value and a number.

        Args:
            what: says in errors when the records are checked, such as "after the conflict".
        """
        found = {key: (record.value, record.number) for key, record in self.records().items()}
        wanted = {key: (one, 0) if isinstance(one, bytes) else one for key, one in expected.items()}
        equal(found, wanted, f"records {what}")

    # --- commits ------------------------------------------------------------------------------------------------------
    def committed(self, commit: Commit, what: str) -> int:
        """Commit, check that it takes effect, and return its version."""
        return version_of_committed(self.backend.commit(commit), what)

    def conflicts(self, commit: Commit, what: str, *relative: bytes) -> None:
        """Commit, and check that it conflicts and names some of these keys."""
        is_conflict(self.backend.commit(commit), {self.key(each) for each in relative}, what)

    def repeat(self, backend: Backend, build: Callable[[], Commit]) -> int:
        """Build a commit and try it, until it does not conflict; return the number of conflicts."""
        for conflicts in range(_TRIES):
            if not isinstance(backend.commit(build()), Conflict):
                return conflicts
        raise ConformanceError(f"a transaction makes progress: {_TRIES} attempts in a row conflicted")

    # --- races --------------------------------------------------------------------------------------------------------
    def race(self, run: Callable[[int, Backend], T], threads: int = RACERS) -> list[T]:
        """Run a function in several threads at the same time, each with its number and a handle; return the results."""
        handles = (self.backend, self.other)
        start = Meeting(threads)

        def racer(number: int) -> T:
            start.meet()
            return run(number, handles[number % len(handles)])

        return list(ThreadRunner(threads).map(racer, range(threads)))

    def at_once(self, commits: Sequence[Commit]) -> list[Outcome]:
        """Commit in several threads at the same time; return the outcomes."""
        return self.race(lambda number, backend: backend.commit(commits[number]), len(commits))

    def took_effect(self, commits: Sequence[Commit]) -> list[bool]:
        """Commit in several threads at the same time; return which of the commits took effect."""
        return [isinstance(outcome, Committed) for outcome in self.at_once(commits)]


def version_of_committed(outcome: Outcome, what: str) -> int:
    """Return the version of a commit that took effect."""
    if not isinstance(outcome, Committed):
        raise ConformanceError(f"{what}: expected a commit that takes effect, found {outcome}")
    expect(outcome.version != ABSENT, f"{what}: the version of a commit is not that of absent records")
    return outcome.version


def is_conflict(outcome: Outcome, keys: set[bytes], what: str) -> None:
    """Check that a commit conflicted, and that it names some of these keys, in order."""
    if not isinstance(outcome, Conflict):
        raise ConformanceError(f"{what}: expected a conflict, found {outcome}")
    expect(bool(outcome.keys), f"{what}: the conflict names a key")
    equal(list(outcome.keys), sorted(set(outcome.keys)), f"{what}: the order of the keys")
    expect(set(outcome.keys) <= keys, f"{what}: the conflict names only keys that are not as expected: {outcome.keys}")
