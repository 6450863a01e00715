"""Check snapshots that last: for databases with `snapshot`."""

from __future__ import annotations

from typing import cast

from holdfast.conformance import equal, expect
from holdfast.transactions.base import Commit, Committed, Record, SnapshotBackend, SnapshotReader, TransactionBackend
from holdfast.transactions.conformance.subject import Subject


def _keeping(backend: TransactionBackend) -> SnapshotBackend:
    return cast("SnapshotBackend", backend)


def _all(reader: SnapshotReader, subject: Subject) -> dict[bytes, Record]:
    """Read all records of the check, in pages of three."""
    found: dict[bytes, Record] = {}
    start, more = subject.prefix, True
    while more:
        page = reader.scan(start, subject.end, 3)
        found.update(page.records)
        more = page.more
        start = page.records[-1][0] + b"\0" if more else start
    return found


def check_snapshot(subject: Subject) -> None:
    """Check that a snapshot does not change, whatever is committed meanwhile, and that its end loses nothing."""
    names = [b"%d" % number for number in range(8)]
    subject.fill(dict.fromkeys(names, b"is old"))
    before = {subject.key(name): record for name, record in subject.records().items()}
    keys = [*before, subject.key(b"new")]
    with _keeping(subject.backend).snapshot() as reader:
        equal(reader.get_many(keys[:2]), {key: before[key] for key in keys[:2]}, "snapshot before the commits")
        commit = Commit(
            puts={subject.key(b"0"): b"new"},
            deletes=[subject.key(b"1")],
            adds={subject.key(b"2"): 1},
            inserts={subject.key(b"new"): b""},
        )
        for handle in (subject.other, subject.backend):
            expect(isinstance(handle.commit(commit), Committed), "a snapshot does not block commits")
            equal(reader.get_many(keys), before, "snapshot after a commit")
            equal(_all(reader, subject), before, "scan of the snapshot after a commit")
            page = reader.scan(subject.key(b"x"), subject.key(b"y"), 1, keys)
            equal(dict(page.guards), before, "guards in the snapshot after a commit")
            commit = Commit(deletes=keys)
    subject.holds({}, "after the snapshot")


def check_snapshot_is_fresh(subject: Subject) -> None:
    """Check that a snapshot contains every commit that returned before it began, through any handle."""
    key = subject.key(b"a")
    for number in range(subject.rounds):
        expect(isinstance(subject.other.commit(Commit(puts={key: b"%d" % number})), Committed), "put")
        with _keeping(subject.backend).snapshot() as reader:
            equal(reader.get_many([key])[key].value, b"%d" % number, "value in the snapshot")


def check_two_snapshots(subject: Subject) -> None:
    """Check that snapshots of different moments exist side by side."""
    key = subject.key(b"a")
    subject.fill({b"a": b"1"})
    with _keeping(subject.backend).snapshot() as first:
        subject.committed(Commit(puts={key: b"2"}), "put")
        with _keeping(subject.backend).snapshot() as second:
            subject.committed(Commit(puts={key: b"3"}), "put")
            equal(first.get_many([key])[key].value, b"1", "value in the first snapshot")
            equal(second.get_many([key])[key].value, b"2", "value in the second snapshot")
        equal(first.get_many([key])[key].value, b"1", "value in the first snapshot after the end of the second")
    subject.holds({b"a": b"3"}, "after the snapshots")


def check_snapshot_under_load(subject: Subject) -> None:
    """Check that what a snapshot shows in many reads was true at one moment, while amounts are moved."""
    keys = [subject.key(b"%d" % number) for number in range(7)]
    subject.committed(Commit(adds=dict.fromkeys(keys, 100)), "adds")

    def run(racer: int, backend: TransactionBackend) -> None:
        for turn in range(subject.rounds):
            if racer:
                source, target = keys[(turn + racer) % 7], keys[(turn * 3 + racer + 1) % 7]
                if source != target:
                    backend.commit(Commit(adds={source: -racer, target: racer}))
                continue
            with _keeping(backend).snapshot() as reader:
                one_by_one = [reader.get_many([key])[key].number for key in keys]
                equal(sum(one_by_one), 700, "sum of numbers that were read one by one")
                equal([record.number for record in _all(reader, subject).values()], one_by_one, "numbers in a scan")

    subject.race(run, threads=4)
