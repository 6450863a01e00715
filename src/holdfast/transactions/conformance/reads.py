"""Check `get_many` and `scan` while nobody writes."""

from __future__ import annotations

from holdfast.conformance import equal, expect
from holdfast.transactions.base import Commit, Record
from holdfast.transactions.conformance.subject import Subject


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


def check_get_many_of_many(subject: Subject) -> None:
    """Check that thousands of keys can be read at once."""
    keys = [subject.key(b"%05d" % number) for number in range(3000)]
    subject.committed(Commit(puts={key: key for key in keys[::2]}), "1,500 puts")
    found = subject.other.get_many(keys)
    equal(sorted(found), keys[::2], "keys of the records")
    expect(all(record.value == key for key, record in found.items()), "each key has its value")


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


def check_scan_of_nothing(subject: Subject) -> None:
    """Check that a range without records is no error, even if its end comes before its start."""
    subject.fill({b"b": b""})
    for start, end in ((b"c", b"z"), (b"b", b"b"), (b"z", b"a"), (b"a", b"a")):
        page = subject.other.scan(subject.key(start), subject.key(end), 10)
        equal((list(page.records), page.more, dict(page.guards)), ([], False, {}), f"scan from {start!r} to {end!r}")
