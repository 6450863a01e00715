"""Check snapshots that last, and flushes of what was committed: for backends with `snapshot`.

Whether the bytes are on a disk shows only a crash of the machine. These checks hold a flush to what can be seen: it
ends, fails for nobody, and changes nothing, whatever others do meanwhile.
"""

from __future__ import annotations

from holdfast.conformance import equal, expect
from holdfast.transactions.base import Backend, Commit, Committed, Record, SnapshotReader
from holdfast.transactions.conformance.subject import Subject


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


def check_snapshot_is_fresh(subject: Subject) -> None:
    """Check that a snapshot contains every commit that returned before it began, through any handle."""
    key = subject.key(b"a")
    for number in range(subject.rounds):
        expect(isinstance(subject.other.commit(Commit(puts={key: b"%d" % number})), Committed), "put")
        with subject.backend.snapshot() as reader:
            equal(reader.get_many([key])[key].value, b"%d" % number, "value in the snapshot")


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
def _flush(backend: Backend) -> None:
    backend.make_durable()


def check_make_durable(subject: Subject) -> None:
    """Check that a flush changes no record, with or without commits before it, on any handle, again and again."""
    _flush(subject.backend)
    subject.fill({b"a": b"1", b"b": b"i2"}, {b"b": 5})
    before = subject.records()
    for backend in (subject.backend, subject.other, subject.backend):
        _flush(backend)
        equal(subject.records(), before, "records after a flush")
    version = subject.reads(b"a")
    _flush(subject.backend)
    subject.committed(Commit(reads=version, deletes=[subject.key(b"a")]), "a commit after the flush")
    _flush(subject.other)
    subject.holds({b"b": (b"i2", 5)}, "after the flushes")


def check_make_durable_in_locked_transactions(subject: Subject) -> None:
    """Check that a flush neither commits nor ends the locked transactions that are open."""
    if not hasattr(subject.backend, "locked"):
        return
    key = subject.key(b"a")
    subject.fill({b"a": b"1"})
    with subject.backend.locked() as transaction:
        found = transaction.read([key], exclusive=True)
        _flush(subject.backend)
        equal(transaction.read([key], exclusive=True), found, "record in the transaction after a flush")
        outcome = transaction.apply(Commit(reads={key: found[key].version}, puts={key: b"2"}))
        expect(isinstance(outcome, Committed), "a transaction takes effect after a flush")
    with subject.backend.locked() as transaction:
        transaction.read([key], exclusive=True)
        _flush(subject.backend)
    subject.holds({b"a": b"2"}, "after the transactions")


def check_make_durable_under_load(subject: Subject) -> None:
    """Check that flushes and commits at the same time cost each other nothing."""
    key = subject.key(b"a")

    def run(racer: int, backend: Backend) -> None:
        for _ in range(subject.rounds):
            if racer % 2:
                _flush(backend)
            else:
                expect(isinstance(backend.commit(Commit(adds={key: 1})), Committed), "an add beside flushes")

    subject.race(run, threads=4)
    subject.holds({b"a": (b"", 2 * subject.rounds)}, "after the race")
