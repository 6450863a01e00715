"""Check the flush of what was committed: for databases with `make_durable`.

Whether the bytes are on a disk shows only a crash of the machine. These checks hold the call to what can be seen: it
ends, fails for nobody, and changes nothing, whatever others do meanwhile.
"""

from __future__ import annotations

from typing import cast

from holdfast.conformance import equal, expect
from holdfast.transactions.base import (
    Commit,
    Committed,
    DurableBackend,
    LockingBackend,
    SnapshotBackend,
    TransactionBackend,
)
from holdfast.transactions.conformance.subject import Subject


def _flush(backend: TransactionBackend) -> None:
    cast("DurableBackend", backend).make_durable()


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
    with cast("LockingBackend", subject.backend).locked() as transaction:
        found = transaction.read([key], exclusive=True)
        _flush(subject.backend)
        equal(transaction.read([key], exclusive=True), found, "record in the transaction after a flush")
        outcome = transaction.apply(Commit(reads={key: found[key].version}, puts={key: b"2"}))
        expect(isinstance(outcome, Committed), "a transaction takes effect after a flush")
    with cast("LockingBackend", subject.backend).locked() as transaction:
        transaction.read([key], exclusive=True)
        _flush(subject.backend)
    subject.holds({b"a": b"2"}, "after the transactions")


def check_make_durable_in_snapshots(subject: Subject) -> None:
    """Check that a flush does not end the snapshots that are open, nor move them."""
    if not hasattr(subject.backend, "snapshot"):
        return
    key = subject.key(b"a")
    subject.fill({b"a": b"1"})
    with cast("SnapshotBackend", subject.backend).snapshot() as reader:
        found = reader.get_many([key])
        subject.committed(Commit(puts={key: b"2"}), "put")
        _flush(subject.backend)
        equal(reader.get_many([key]), found, "record in the snapshot after a flush")
    subject.holds({b"a": b"2"}, "after the snapshot")


def check_make_durable_under_load(subject: Subject) -> None:
    """Check that flushes and commits at the same time cost each other nothing."""
    key = subject.key(b"a")

    def run(racer: int, backend: TransactionBackend) -> None:
        for _ in range(subject.rounds):
            if racer % 2:
                _flush(backend)
            else:
                expect(isinstance(backend.commit(Commit(adds={key: 1})), Committed), "an add beside flushes")

    subject.race(run, threads=4)
    subject.holds({b"a": (b"", 2 * subject.rounds)}, "after the race")
