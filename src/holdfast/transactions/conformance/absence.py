"""Check reads of absent records, and records that are deleted and created again."""

from __future__ import annotations

from holdfast.conformance import equal, expect
from holdfast.transactions.base import ABSENT, Bound, Commit, Progress, RangeCount
from holdfast.transactions.conformance.subject import Subject


def check_absent_reads(subject: Subject) -> None:
    """Check that a record that was absent must still be absent, however it was created."""
    key = subject.key(b"a")
    creations = (Commit(puts={key: b""}), Commit(inserts={key: b""}), Commit(adds={key: 0}))
    for creation in (*creations, Commit(progress=Progress(key, 1))):
        reads = subject.reads(b"a")
        equal(reads, {key: ABSENT}, "version of an absent record")
        subject.committed(Commit(reads=reads), "read of an absent record")
        subject.committed(creation, "creation")
        subject.conflicts(Commit(reads=reads, puts={subject.key(b"b"): b""}), "read of a created record", b"a")
        subject.conflicts(Commit(reads=reads, inserts={key: b""}), "insert after such a read", b"a")
        subject.conflicts(Commit(reads=reads, adds={key: 1}), "add after such a read", b"a")
        subject.conflicts(Commit(reads=reads, deletes=[key]), "delete after such a read", b"a")
        subject.committed(Commit(deletes=[key]), "delete")
        subject.committed(Commit(reads=reads), "read of a record that is absent again")
    subject.holds({}, "in the end")


def check_absent_reads_leave_nothing(subject: Subject) -> None:
    """Check that nobody sees whatever a database keeps in order to lock absent records."""
    absent = [subject.key(b"%02d" % number) for number in range(0, 40, 2)]
    there = {b"07": b"1", b"20": b"2", b"33": b"3"}
    subject.fill(there)
    reads = {key: ABSENT for key in absent if key != subject.key(b"20")}
    for one in (reads, dict(list(reads.items())[:3])):
        subject.committed(Commit(reads=one, ranges=[_range(subject, 3, subject.key(b"a guard"))]), "absent reads")
        failing = Commit(reads={**one, subject.key(b"07"): ABSENT}, inserts={subject.key(b"new"): b""})
        subject.conflicts(failing, "absent reads, one of an existing record", b"07")
    subject.committed(Commit(deletes=[subject.key(b"08"), subject.key(b"99")]), "deletes of absent records")
    equal(list(subject.other.get_many(absent)), [subject.key(b"20")], "existing ones of the records that were read")
    subject.holds(there, "after reads of absent records")
    for size in (1, 2, 3, 4):
        page = subject.other.scan(subject.prefix, subject.end, size, absent)
        expected = [subject.key(each) for each in there][:size]
        equal([key for key, _record in page.records], expected, f"page of {size}")
        equal(page.more, size < 3, f"more after a page of {size}")
        equal(list(page.guards), [subject.key(b"20")], "guards")
    subject.committed(Commit(ranges=[_range(subject, 3, absent[0])]), "count of 3, guarded by an absent record")


def _range(subject: Subject, count: int, guard: bytes) -> RangeCount:
    return RangeCount(guard, subject.prefix, subject.end, count)


def check_writes_after_absent_reads(subject: Subject) -> None:
    """Check that a record whose absence was read can be written like any other."""
    key = subject.key(b"a")
    reads = {key: ABSENT}
    writes = {
        "put": Commit(puts={key: b"1"}),
        "insert": Commit(inserts={key: b"1"}),
        "add": Commit(adds={key: 1}),
        "bounded add": Commit(adds={key: 1}, bounds=[Bound(key, 1)]),
        "progress": Commit(progress=Progress(key, 1)),
    }
    for name, write in writes.items():
        subject.committed(Commit(reads=reads), f"absent read before the {name}")
        version = subject.committed(write, name)
        record = subject.record(b"a")
        expect(record is not None and record.version == version, f"the record exists after the {name}")
        number = 0 if name in ("put", "insert") else 1
        subject.holds({b"a": (b"" if number else b"1", number)}, f"after the {name}")
        subject.committed(Commit(deletes=[key]), "delete")
        subject.committed(Commit(reads=reads), f"absent read after the {name} and a delete")
    subject.committed(Commit(reads=reads, inserts={key: b"2"}), "insert of a record that was read as absent")
    subject.holds({b"a": b"2"}, "in the end")


def check_aba(subject: Subject) -> None:
    """Check that a record that was deleted and created again is another one, even if its content is the same."""
    key, numbered = subject.key(b"a"), subject.key(b"n")
    subject.fill({b"a": b"1"}, {b"n": 1})
    seen = subject.reads(b"a", b"n")
    for _ in range(subject.rounds):
        subject.committed(Commit(deletes=[key, numbered]), "delete")
        subject.committed(Commit(inserts={key: b"1"}, adds={numbered: 1}), "insert")
        subject.conflicts(Commit(reads=seen, puts={subject.key(b"b"): b""}), "read before the delete", b"a", b"n")
        subject.conflicts(Commit(reads={key: seen[key]}, puts={key: b""}), "put after such a read", b"a")
        subject.conflicts(Commit(reads={numbered: seen[numbered]}, adds={numbered: 1}), "add after such a read", b"n")
        now = subject.reads(b"a", b"n")
        expect(not set(now.values()) & set(seen.values()), "records that were created again have other versions")
        seen = now
    subject.committed(Commit(puts={key: b"2"}), "put")
    subject.committed(Commit(puts={key: b"1"}), "put of the old value")
    subject.conflicts(Commit(reads={key: seen[key]}), "read before the two puts", b"a")


def check_skew_through_absence(subject: Subject) -> None:
    """Check that of two commits that each create what the other one read as absent, only one takes effect."""
    a, b = subject.key(b"a"), subject.key(b"b")
    first = Commit(reads={b: ABSENT}, inserts={a: b""})
    second = Commit(reads={a: ABSENT}, inserts={b: b""})
    subject.committed(first, "the first")
    subject.conflicts(second, "the second", b"a")
    subject.holds({b"a": b""}, "in the end")
