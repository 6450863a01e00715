"""Check reads while others commit: each call sees one state, and never an old one."""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.conformance import ConformanceError, equal, expect
from holdfast.transactions.base import Commit, Committed, Record, TransactionBackend
from holdfast.transactions.conformance.subject import Subject

_READERS = 3
_COMMITS_IN_ROUND = 5


def _while_writing(
    subject: Subject, write: Callable[[int, TransactionBackend], object], read: Callable[[TransactionBackend], object]
) -> None:
    """Run one writer and several readers: the readers read until the writer has ended, and once more."""
    is_over = threading.Event()

    def run(number: int, backend: TransactionBackend) -> None:
        if number == 0:
            try:
                for turn in range(subject.rounds * _COMMITS_IN_ROUND):
                    write(turn, backend)
            finally:
                is_over.set()
            return
        goes_on = True
        while goes_on:
            goes_on = not is_over.is_set()
            read(backend)

    subject.race(run, threads=1 + _READERS)


def _move(keys: list[bytes]) -> Callable[[int, TransactionBackend], None]:
    """Return a function that moves 1 from one number to another."""

    def write(turn: int, backend: TransactionBackend) -> None:
        source, target = keys[turn % len(keys)], keys[(turn * 7 + 1) % len(keys)]
        if source != target:
            outcome = backend.commit(Commit(adds={source: -1, target: 1}))
            expect(isinstance(outcome, Committed), f"adds take effect: {outcome}")

    return write


def _sum(records: dict[bytes, Record]) -> int:
    return sum(record.number for record in records.values())


def check_get_many_is_a_snapshot(subject: Subject) -> None:
    """Check that x + y never changes for readers while a writer moves amounts between x and y."""
    keys = [subject.key(b"x"), subject.key(b"y")]
    subject.fill({}, {b"x": 100, b"y": 100})
    _while_writing(subject, _move(keys), lambda backend: equal(_sum(backend.get_many(keys)), 200, "x + y"))


def check_wide_get_many_is_a_snapshot(subject: Subject) -> None:
    """Check that a read of thousands of records is one snapshot, too."""
    keys = [subject.key(b"%04d" % number) for number in range(1500)]
    subject.committed(Commit(adds=dict.fromkeys(keys, 1)), "adds")
    few = [keys[0], keys[700], keys[-1], keys[499], keys[500]]
    _while_writing(
        subject, _move(few), lambda backend: equal(_sum(backend.get_many(keys)), 1500, "sum of 1,500 numbers")
    )


def check_scan_is_a_snapshot(subject: Subject) -> None:
    """Check that a page, with its guards, shows the records of one instant, while others insert and delete."""
    guard, last = subject.key(b"guard"), subject.key(b"zz")
    subject.fill({b"guard": b"0", b"zz": b"0", b"in/0": b"0"})

    def write(turn: int, backend: TransactionBackend) -> None:
        """Replace the record in the range, and stamp all others with its name."""
        stamp = b"%d" % (turn + 1)
        outcome = backend.commit(
            Commit(
                puts={guard: stamp, last: stamp},
                deletes=[subject.key(b"in/%d" % turn)],
                inserts={subject.key(b"in/" + stamp): stamp},
            )
        )
        expect(isinstance(outcome, Committed), f"the writer's commit takes effect: {outcome}")

    def read(backend: TransactionBackend) -> None:
        page = backend.scan(subject.key(b"in/"), subject.end, 10, [guard, subject.key(b"absent")])
        values = [record.value for _key, record in page.records]
        versions = {record.version for _key, record in page.records} | {one.version for one in page.guards.values()}
        if len(values) != 2 or (len(versions) != 1 and values[0] != b"0"):
            raise ConformanceError(f"a page shows one record and the two stamps of its commit: {page}")
        equal(set(values), {page.guards[guard].value}, "stamps on a page and of its guard")

    _while_writing(subject, write, read)


def check_fresh_reads(subject: Subject) -> None:
    """Check that a read contains every commit that had returned before it began, through any handle."""
    key = subject.key(b"a")
    subject.fill({}, {b"a": 1})
    returned = [1]

    def write(turn: int, backend: TransactionBackend) -> None:
        backend.commit(Commit(adds={key: 1}))
        returned[0] = turn + 2

    def read(backend: TransactionBackend) -> None:
        least = returned[0]
        expect(backend.get_many([key])[key].number >= least, "get_many shows the last commit that had returned")
        least = returned[0]
        page = backend.scan(key, subject.end, 1, [key])
        expect(page.records[0][1].number >= least, "a scan shows the last commit that had returned")
        expect(page.guards[key].number >= least, "a guard shows the last commit that had returned")

    _while_writing(subject, write, read)


def check_reads_that_conflict_are_stale(subject: Subject) -> None:
    """Check that a commit that only reads never confirms what was not true at one instant."""
    keys = [subject.key(b"x"), subject.key(b"y")]
    subject.fill({}, {b"x": 100, b"y": 100})

    def read(backend: TransactionBackend) -> None:
        """Read one record after the other."""
        seen = {key: backend.get_many([key])[key] for key in keys}
        outcome = backend.commit(Commit(reads={key: record.version for key, record in seen.items()}))
        if isinstance(outcome, Committed):
            equal(_sum(seen), 200, "x + y, confirmed by a commit")

    _while_writing(subject, _move(keys), read)
