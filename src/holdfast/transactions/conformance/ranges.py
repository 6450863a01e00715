"""Check conditions on ranges, which protect what was scanned against phantoms."""

from __future__ import annotations

from holdfast.conformance import equal
from holdfast.transactions.base import Commit, RangeCount, TransactionBackend
from holdfast.transactions.conformance.subject import Subject, is_conflict


def _range(subject: Subject, count: int, guard: bytes = b"guard") -> RangeCount:
    return RangeCount(subject.key(guard), subject.key(b"in/"), subject.key(b"in0"), count)


def check_counts(subject: Subject) -> None:
    """Check that only the exact number of records holds; a range includes its start and excludes its end."""
    subject.fill(dict.fromkeys((b"in", b"in/", b"in/1", b"in/2/3", b"in0", b"in/\xff\xff"), b""))
    for guard in (b"guard", b"in", b"in/1"):  # absent; beside the range; inside of it
        subject.committed(Commit(ranges=[_range(subject, 4, guard)]), f"count of 4, guarded by {guard!r}")
        for count in (0, 3, 5, 1000):
            commit = Commit(ranges=[_range(subject, count, guard)], inserts={subject.key(b"new"): b""})
            subject.conflicts(commit, f"count of {count} where there are 4", guard)
    ends = {(b"a", b"b"): 0, (b"in/1", b"in/2"): 1, (b"in/1", b"in/1\0"): 1, (b"in/1", b"in/1"): 0, (b"z", b"a"): 0}
    for (start, end), count in ends.items():
        one = RangeCount(subject.key(b"guard"), subject.key(start), subject.key(end), count)
        subject.committed(Commit(ranges=[one]), f"count from {start!r} to {end!r}")
    subject.committed(Commit(ranges=[_range(subject, 4), _range(subject, 4, b"in")]), "two ranges")
    subject.conflicts(Commit(ranges=[_range(subject, 4), _range(subject, 3, b"in")]), "two ranges, one wrong", b"in")
    same_guard = RangeCount(subject.key(b"guard"), subject.key(b"a"), subject.key(b"b"), 1)
    subject.conflicts(Commit(ranges=[_range(subject, 4), same_guard]), "two ranges of one guard", b"guard")
    equal(len(subject.records()), 6, "number of records")


def check_count_before_own_writes(subject: Subject) -> None:
    """Check that a count does not include what the commit itself inserts and deletes."""
    subject.fill({b"in/1": b"", b"in/2": b""})
    key = subject.key
    commit = Commit(ranges=[_range(subject, 2)], inserts={key(b"in/3"): b"", key(b"in/4"): b""}, deletes=[key(b"in/1")])
    subject.committed(commit, "count of 2 before 2 inserts and 1 delete")
    subject.committed(Commit(ranges=[_range(subject, 3)], puts={key(b"in/5"): b"", key(b"in/2"): b""}), "count of 3")
    subject.committed(Commit(ranges=[_range(subject, 4)], adds={key(b"in/6"): 1, key(b"in/5"): 1}), "count of 4")
    commit = Commit(ranges=[_range(subject, 6)], inserts={key(b"in/7"): b""})
    subject.conflicts(commit, "count that includes an insert", b"guard")
    subject.committed(Commit(ranges=[_range(subject, 5)], deletes=list(map(key, (b"in/2", b"guard")))), "count of 5")


def check_phantom(subject: Subject) -> None:
    """Check that a commit conflicts if a record has come into its range, or has left it."""
    subject.fill({b"in/1": b"", b"guard": b""})
    reads, key = subject.reads(b"in/1"), subject.key
    commit = Commit(reads=reads, ranges=[_range(subject, 1)], puts={key(b"result"): b"1"})
    insert = Commit(reads=subject.reads(b"guard"), inserts={key(b"in/2"): b""})
    subject.committed(insert, "insert into the range, with a read of the guard")
    subject.conflicts(commit, "commit with a phantom", b"guard")
    subject.committed(Commit(deletes=[key(b"in/2")]), "delete")
    subject.committed(commit, "commit without a phantom")
    subject.committed(Commit(deletes=[key(b"in/1")], inserts={key(b"in/3"): b""}), "delete and insert")
    subject.conflicts(commit, "commit whose record was replaced by another", b"in/1")
    subject.committed(insert, "insert: nothing has changed the guard")


def check_guard_is_read_too(subject: Subject) -> None:
    """Check that a guard that was read is validated, and one that was not read may have changed."""
    for start in ({}, {b"guard": b"1"}):
        subject.fill(start)
        reads = subject.reads(b"guard")
        subject.committed(Commit(ranges=[_range(subject, 0)], reads=reads), "guard as it was read")
        subject.committed(Commit(puts={subject.key(b"guard"): b"2"}), "put of the guard")
        subject.conflicts(Commit(ranges=[_range(subject, 0)], reads=reads), "guard that has changed", b"guard")
        subject.committed(Commit(ranges=[_range(subject, 0)]), "guard that was not read")
        commit = Commit(ranges=[_range(subject, 0)], reads=subject.reads(b"guard"), puts={subject.key(b"guard"): b""})
        subject.committed(commit, "guard that is written as well")
        commit = Commit(ranges=[_range(subject, 0)], adds={subject.key(b"guard"): 1})
        subject.committed(commit, "guard that is a counter as well")
        subject.committed(Commit(ranges=[_range(subject, 0)], deletes=[subject.key(b"guard")]), "deleted guard")
        subject.holds({}, "after the guard was deleted")


def check_large_counts(subject: Subject) -> None:
    """Check ranges of thousands of records, and bounds that are longer than a key may be."""
    subject.committed(Commit(inserts={subject.key(b"in/%05d" % number): b"" for number in range(3000)}), "inserts")

    def commit(backend: TransactionBackend, count: int) -> None:
        is_conflict(
            backend.commit(Commit(ranges=[_range(subject, count)])), {subject.key(b"guard")}, f"count of {count}"
        )

    for count in (0, 2999, 3001, 10**9):
        commit(subject.backend, count)
    subject.committed(Commit(ranges=[_range(subject, 3000)]), "count of 3,000")
    longest = subject.key(b"in/").ljust(1024, b"\xff")
    subject.committed(Commit(inserts={longest: b""}), "insert of the longest key")
    for end in (longest + b"\0", longest * 2):
        one = RangeCount(subject.key(b"guard"), subject.key(b"in/"), end, 3001)
        subject.committed(Commit(ranges=[one]), f"range whose end has {len(end)} bytes")
    one = RangeCount(subject.key(b"guard"), longest + b"\0", subject.end, 0)
    subject.committed(Commit(ranges=[one]), "range whose start has 1,025 bytes")
    page = subject.other.scan(longest, longest + b"\0", 5)
    equal([key for key, _record in page.records], [longest], "scan of the longest key")
