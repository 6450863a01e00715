"""Check transactions that lock what they read, snapshots that last, and flushes of what was committed.

For backends with `locked` and `snapshot`. Whether the bytes are on a disk shows only a crash of the machine. The checks
hold a flush to what can be seen: it ends, never fails, and changes nothing, whatever others do meanwhile.
"""

from __future__ import annotations

from holdfast.conformance import equal, expect
from holdfast.transactions.base import (
    Backend,
    Commit,
    Committed,
    RangeCount,
    Record,
    SnapshotReader,
)
from tests.conformance.backends.subject import Subject, is_conflict, version_of_committed


class _Given(Exception):  # raised by a check, and no error
    """Raised inside of a locked transaction."""


def check_locked_commit(subject: Subject) -> None:
    """Check that a locked transaction reads the present records, and applies a commit with its version."""
    subject.fill({b"a": b"1", b"in/1": b"", b"in/2": b"", b"in/3": b""}, {b"n": 3})
    a, n, new = (subject.key(each) for each in (b"a", b"n", b"new"))
    with subject.backend.begin_locking_transaction() as transaction:
        found = transaction.read([a, n, new], exclusive=True)
        equal(found, subject.other.get_many([a, n, new]), "records that were locked")
        shared = transaction.read([subject.key(b"in/1")], exclusive=False)
        equal([record.value for record in shared.values()], [b""], "record with a shared lock")
        page = transaction.scan(subject.key(b"in/"), subject.key(b"in0"), 2)
        equal([key for key, _record in page.records], [subject.key(b"in/1"), subject.key(b"in/2")], "page")
        equal(page.more, True, "more")
        version = version_of_committed(
            transaction.apply(Commit(puts={a: b"2"}, adds={n: 1}, inserts={new: b""}, deletes=[subject.key(b"in/3")])),
            "locked commit",
        )
    equal(subject.record(b"a"), Record(version, b"2"), "record after the commit")
    equal(subject.record(b"n"), Record(version, b"", 4), "counter after the commit")
    equal(subject.record(b"in/3"), None, "deleted record")
    with subject.backend.begin_locking_transaction() as transaction:
        equal(transaction.read([a], exclusive=False)[a].version, version, "version in the next transaction")


def check_locked_rollback(subject: Subject) -> None:
    """Check that a locked transaction without `apply` changes nothing, and gives its locks back, even if it fails."""
    subject.fill({b"a": b"1"})
    key = subject.key(b"a")
    for fails in (False, True):
        try:
            with subject.backend.begin_locking_transaction() as transaction:
                transaction.read([key, subject.key(b"absent")], exclusive=True)
                if fails:
                    raise _Given
        except _Given:
            expect(fails, "an error leaves the block")
        version_of_committed(subject.other.commit(Commit(puts={key: b"2"})), "put after the rollback")
        version_of_committed(subject.other.commit(Commit(puts={key: b"1"})), "put after the rollback")
    subject.holds({b"a": b"1"}, "in the end")


def check_locked_conflict(subject: Subject) -> None:
    """Check that `apply` validates like `commit`, and that a conflict ends the transaction without effect."""
    subject.fill({b"a": b"1"})
    key, new = subject.key(b"a"), subject.key(b"new")
    stale = subject.reads(b"a")
    subject.committed(Commit(puts={key: b"2"}), "put")
    for commit, named in (
        (Commit(reads=stale, puts={new: b""}), key),
        (Commit(inserts={key: b"", new: b""}), key),
        (Commit(ranges=[RangeCount(new, subject.prefix, subject.end, 5)], puts={new: b""}), new),
    ):
        with subject.backend.begin_locking_transaction() as transaction:
            transaction.read([key], exclusive=True)
            is_conflict(transaction.apply(commit), {named}, "locked commit with a conflict")
        subject.holds({b"a": b"2"}, "after the conflict")


def check_locked_mixed_race(subject: Subject) -> None:
    """Check that locked and optimistic increments of two records, read in one order, lose nothing."""
    keys = [subject.key(b"x"), subject.key(b"y")]
    subject.fill({b"x": b"0", b"y": b"0"})

    def run(racer: int, backend: Backend) -> None:
        def build() -> Commit:
            return _incremented(backend.get_many(keys))

        for _ in range(subject.rounds):
            if racer % 2:
                subject.repeat(backend, build)
                continue
            with backend.begin_locking_transaction() as transaction:
                commit = _incremented(transaction.read(keys[::-1], exclusive=True))
                version_of_committed(transaction.apply(commit), "increments under exclusive locks")

    threads = 6
    subject.race(run, threads)
    total = b"%d" % (threads * subject.rounds)
    subject.holds({b"x": total, b"y": total}, "after all increments")


def _incremented(found: dict[bytes, Record]) -> Commit:
    return Commit(
        reads={key: record.version for key, record in found.items()},
        puts={key: b"%d" % (int(record.value) + 1) for key, record in found.items()},
    )


def check_locked_range_race(subject: Subject) -> None:
    """Check that a range is protected by a lock on its guard, against inserts that read the guard."""
    guard = subject.key(b"guard")
    subject.fill({b"guard": b""})
    reads = subject.reads(b"guard")

    def run(racer: int, backend: Backend) -> None:
        for turn in range(subject.rounds):
            new = subject.key(b"in/%d/%d" % (racer, turn))
            if racer % 2:
                version_of_committed(backend.commit(Commit(reads=reads, inserts={new: b""})), "insert")
                continue
            with backend.begin_locking_transaction() as transaction:
                transaction.read([guard], exclusive=True)
                before = transaction.scan(subject.key(b"in/"), subject.key(b"in0"), 10_000).records
                after = transaction.scan(subject.key(b"in/"), subject.key(b"in0"), 10_000).records
                equal([key for key, _ in after], [key for key, _ in before], "a range under the lock of its guard")
                version_of_committed(transaction.apply(Commit(inserts={new: b""})), "insert under the lock")

    threads = 4
    subject.race(run, threads)
    equal(len(subject.records()), 1 + threads * subject.rounds, "number of records")


# --- lasting snapshots -----------------------------------------------------------------------------------------------
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
    with subject.backend.snapshot() as reader:
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


def check_snapshot_under_load(subject: Subject) -> None:
    """Check that what a snapshot shows in many reads was true at one moment, while amounts are moved."""
    keys = [subject.key(b"%d" % number) for number in range(7)]
    subject.committed(Commit(adds=dict.fromkeys(keys, 100)), "adds")

    def run(racer: int, backend: Backend) -> None:
        for turn in range(subject.rounds):
            if racer:
                source, target = keys[(turn + racer) % 7], keys[(turn * 3 + racer + 1) % 7]
                if source != target:
                    backend.commit(Commit(adds={source: -racer, target: racer}))
                continue
            with backend.snapshot() as reader:
                one_by_one = [reader.get_many([key])[key].number for key in keys]
                equal(sum(one_by_one), 700, "sum of numbers that were read one by one")
                equal([record.number for record in _all(reader, subject).values()], one_by_one, "numbers in a scan")

    subject.race(run, threads=4)


# --- flushes ---------------------------------------------------------------------------------------------------------
def check_make_durable(subject: Subject) -> None:
    """Check that a flush changes no record, with or without commits before it, on any handle, again and again."""
    subject.backend.make_durable()
    subject.fill({b"a": b"1", b"b": b"i2"}, {b"b": 5})
    before = subject.records()
    for backend in (subject.backend, subject.other, subject.backend):
        backend.make_durable()
        equal(subject.records(), before, "records after a flush")
    version = subject.reads(b"a")
    subject.backend.make_durable()
    subject.committed(Commit(reads=version, deletes=[subject.key(b"a")]), "a commit after the flush")
    subject.other.make_durable()
    subject.holds({b"b": (b"i2", 5)}, "after the flushes")


def check_make_durable_in_locked_transactions(subject: Subject) -> None:
    """Check that a flush neither commits nor ends the locked transactions that are open."""
    key = subject.key(b"a")
    subject.fill({b"a": b"1"})
    with subject.backend.begin_locking_transaction() as transaction:
        found = transaction.read([key], exclusive=True)
        subject.backend.make_durable()
        equal(transaction.read([key], exclusive=True), found, "record in the transaction after a flush")
        outcome = transaction.apply(Commit(reads={key: found[key].version}, puts={key: b"2"}))
        expect(isinstance(outcome, Committed), "a transaction takes effect after a flush")
    with subject.backend.begin_locking_transaction() as transaction:
        transaction.read([key], exclusive=True)
        subject.backend.make_durable()
    subject.holds({b"a": b"2"}, "after the transactions")


def check_make_durable_under_load(subject: Subject) -> None:
    """Check that flushes and commits at the same time cost each other nothing."""
    key = subject.key(b"a")

    def run(racer: int, backend: Backend) -> None:
        for _ in range(subject.rounds):
            if racer % 2:
                backend.make_durable()
            else:
                expect(isinstance(backend.commit(Commit(adds={key: 1})), Committed), "an add beside flushes")

    subject.race(run, threads=4)
    subject.holds({b"a": (b"", 2 * subject.rounds)}, "after the race")
