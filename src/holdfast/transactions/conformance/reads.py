"""Check what is read, and that a commit validates it: records, their absence, ranges."""

from __future__ import annotations

from holdfast.conformance import equal, expect
from holdfast.transactions.base import ABSENT, Backend, Commit, Progress, RangeCount, Record
from holdfast.transactions.conformance.subject import Subject, is_conflict


def check_get_many(subject: Subject) -> None:
    """Check that existing records are returned by key, absent ones left out, and that a key may be asked for twice."""
    keys = [subject.key(each) for each in (b"a", b"b", b"c")]
    version = subject.committed(Commit(puts={keys[0]: b"1", keys[2]: b""}), "puts")
    expected = {keys[0]: Record(version, b"1"), keys[2]: Record(version, b"")}
    equal(subject.other.get_many(keys), expected, "get_many of a list")
    equal(subject.other.get_many(set(keys)), expected, "get_many of a set")
    equal(subject.other.get_many((keys[2], keys[0], keys[2])), expected, "get_many with a key twice")
    equal(subject.other.get_many(dict.fromkeys(keys[:1])), {keys[0]: expected[keys[0]]}, "get_many of one key")
    equal(subject.other.get_many([keys[1]]), {}, "get_many of an absent record")
    equal(subject.other.get_many([]), {}, "get_many of nothing")


def check_read_after_commit(subject: Subject) -> None:
    """Check that a read through any handle contains every commit that returned before."""
    key = subject.key(b"a")
    handles = [subject.backend, subject.other, *subject.racers]
    for number in range(max(subject.rounds, len(handles))):
        value = b"%d" % number
        handles[number % len(handles)].commit(Commit(puts={key: value}))
        for handle in handles:
            equal(handle.get_many([key])[key].value, value, "value after the commit")
            [(_key, record)] = handle.scan(subject.prefix, subject.end, 2).records
            equal(record.value, value, "scanned value after the commit")


def check_reads_write_nothing(subject: Subject) -> None:
    """Check that a commit changes the versions of the records that it writes, and of no others."""
    subject.fill({b"read": b"1", b"written": b"1", b"guard": b"1"})
    before = subject.reads(b"read", b"written", b"guard", b"absent")
    version = subject.committed(Commit(reads=before, puts={subject.key(b"written"): b"2"}), "commit that reads")
    after = subject.reads(b"read", b"written", b"guard", b"absent")
    equal(after, {**before, subject.key(b"written"): version}, "versions after a commit that reads")
    equal(subject.committed(Commit(reads=after), "commit that only reads") != version, True, "another version")
    equal(subject.reads(b"read", b"written", b"guard", b"absent"), after, "versions after a commit that only reads")


def check_scan(subject: Subject) -> None:
    """Check that a scan includes its start, excludes its end, and returns records in order, as `get_many` does."""
    names = [b"a", b"b", b"ba", b"c", b"d"]
    subject.fill({name: b"i value of " + name for name in reversed(names)}, {b"ba": 7})
    for start in (b"", b"a", b"a0", b"b", b"d", b"e"):
        for end in (b"", b"b", b"ba", b"c0", b"d", b"zz"):
            page = subject.other.scan(subject.key(start), subject.key(end), 100)
            found = [key[len(subject.prefix) :] for key, _record in page.records]
            equal(found, [name for name in names if start <= name < end], f"scan from {start!r} to {end!r}")
            equal(page.more, False, f"more after the scan from {start!r} to {end!r}")
            equal(dict(page.records), subject.backend.get_many([key for key, _ in page.records]), "scan and get_many")


def check_scan_pages(subject: Subject) -> None:
    """Check that pages of any size return each record once, and say whether there is more."""
    names = [b"%03d" % number for number in range(25)]
    subject.fill(dict.fromkeys(names, b""))
    for size in (1, 2, 3, 24, 25, 26, 1000):
        found: list[bytes] = []
        start, more = subject.prefix, True
        while more:
            page = subject.other.scan(start, subject.end, size)
            found += [key for key, _record in page.records]
            expect(0 < len(page.records) <= size, f"a page of {size} has 1 to {size} records")
            more = page.more
            start = page.records[-1][0] + b"\0"
            equal(more, len(found) < len(names), f"more after {len(found)} records in pages of {size}")
        equal(found, [subject.key(name) for name in names], f"records in pages of {size}")


def check_scan_guards(subject: Subject) -> None:
    """Check that a scan returns the guards that exist, in the range or not, beyond the limit or not."""
    subject.fill({b"a": b"1", b"b": b"2", b"c": b"3", b"guard": b"4"})
    guards = [subject.key(each) for each in (b"c", b"guard", b"absent", b"a")]
    page = subject.other.scan(subject.key(b"a"), subject.key(b"d"), 2, guards)
    equal([key for key, _record in page.records], [subject.key(b"a"), subject.key(b"b")], "records")
    equal(page.more, True, "more")
    equal(dict(page.guards), subject.backend.get_many(guards), "guards")
    empty = subject.other.scan(subject.key(b"x"), subject.key(b"y"), 2, guards[1:3])
    equal((list(empty.records), empty.more), ([], False), "an empty range with guards")
    equal({key: record.value for key, record in empty.guards.items()}, {guards[1]: b"4"}, "guards of an empty range")


# --- absent records --------------------------------------------------------------------------------------------------
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
    """Check that what a database keeps in order to lock absent records is invisible."""
    absent = [subject.key(b"%02d" % number) for number in range(0, 40, 2)]
    there = {b"07": b"1", b"20": b"2", b"33": b"3"}
    subject.fill(there)
    reads = {key: ABSENT for key in absent if key != subject.key(b"20")}
    for one in (reads, dict(list(reads.items())[:3])):
        subject.committed(
            Commit(reads=one, ranges=[RangeCount(subject.key(b"a guard"), subject.prefix, subject.end, 3)]),
            "absent reads",
        )
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
    subject.committed(
        Commit(ranges=[RangeCount(absent[0], subject.prefix, subject.end, 3)]),
        "count of 3, guarded by an absent record",
    )


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


# --- ranges ----------------------------------------------------------------------------------------------------------
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

    def commit(backend: Backend, count: int) -> None:
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
