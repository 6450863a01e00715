"""Check what one caller sees: reads and versions, keys and values of every kind and length, and what is refused.

What commits do to records, `model` checks.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from itertools import combinations

from holdfast.conformance import equal, expect, refused
from holdfast.errors import InvalidRequestError
from holdfast.transactions.base import (
    ABSENT,
    MAX_KEY_BYTES,
    MAX_NUMBER,
    MAX_VALUE_BYTES,
    Bound,
    Commit,
    Committed,
    Conflict,
    RangeCount,
    Record,
)
from tests.conformance.backends.subject import Subject, is_conflict, version_of_committed


# --- reads ------------------------------------------------------------------------------------------------------------
def check_get_many(subject: Subject) -> None:
    """Check that existing records are returned by key, absent ones left out, and that a key may be asked for twice."""
    keys = [subject.key(each) for each in (b"a", b"b", b"c")]
    version = subject.committed(Commit(puts={keys[0]: b"1", keys[2]: b""}), "puts")
    expected = {keys[0]: Record(version, b"1"), keys[2]: Record(version, b"")}
    for given in (keys, set(keys), (keys[2], keys[0], keys[2])):
        equal(subject.other.get_many(given), expected, f"get_many of {given}")
    equal(subject.other.get_many(dict.fromkeys(keys[:1])), {keys[0]: expected[keys[0]]}, "get_many of one key")
    equal(subject.other.get_many([keys[1]]), {}, "get_many of an absent record")
    equal(subject.other.get_many([]), {}, "get_many of nothing")


def check_read_after_commit(subject: Subject) -> None:
    """Check that a read through any handle contains every commit that returned before."""
    key = subject.key(b"a")
    handles = [subject.backend, subject.other]
    for number in range(subject.rounds):
        value = b"%d" % number
        handles[number % len(handles)].commit(Commit(puts={key: value}))
        for handle in handles:
            equal(handle.get_many([key])[key].value, value, "value after the commit")
            [(_key, record)] = handle.scan(subject.prefix, subject.end, 2).records
            equal(record.value, value, "scanned value after the commit")


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
    expected = subject.backend.get_many(guards)
    for start, names in ((b"a", [b"a", b"b"]), (b"x", [])):
        page = subject.other.scan(subject.key(start), subject.key(start + b"z" if not names else b"d"), 2, guards)
        equal([key for key, _record in page.records], [subject.key(name) for name in names], "records")
        equal(page.more, bool(names), "more")
        equal(dict(page.guards), expected, "guards")


def check_absent_reads_leave_nothing(subject: Subject) -> None:
    """Check that what a database keeps in order to lock absent records is invisible."""
    absent = [subject.key(b"%02d" % number) for number in range(0, 40, 2)]
    there = {b"07": b"1", b"20": b"2", b"33": b"3"}
    subject.fill(there)
    reads = {key: ABSENT for key in absent if key != subject.key(b"20")}
    for one in (reads, dict(list(reads.items())[:3])):
        for guard in (subject.key(b"a guard"), absent[0]):
            counted = [RangeCount(guard, subject.prefix, subject.end, 3)]
            subject.committed(Commit(reads=one, ranges=counted), "absent reads")
        failing = Commit(reads={**one, subject.key(b"07"): ABSENT}, inserts={subject.key(b"new"): b""})
        subject.conflicts(failing, "absent reads, one of an existing record", b"07")
    subject.committed(Commit(deletes=[subject.key(b"08"), subject.key(b"99")]), "deletes of absent records")
    equal(list(subject.other.get_many(absent)), [subject.key(b"20")], "existing ones of the records that were read")
    subject.holds(there, "after reads of absent records")
    for size in (1, 2, 3, 4):
        page = subject.other.scan(subject.prefix, subject.end, size, absent)
        expected = [subject.key(each) for each in there][:size]
        equal([key for key, _record in page.records], expected, f"page of {size}")
        equal((page.more, list(page.guards)), (size < 3, [subject.key(b"20")]), f"more, and guards of a page of {size}")


def check_versions(subject: Subject) -> None:
    """Check that records have the version of the commit that wrote them, and that no two commits have the same."""
    handles = [subject.backend, subject.other]
    names = (b"0", b"1", b"2", b"3")
    versions = []
    for number in range(60):
        key = subject.key(names[number % 3])
        handle = handles[number % len(handles)]
        versions.append(version_of_committed(handle.commit(Commit(puts={key: b""})), "put"))
        equal(subject.other.get_many([key])[key].version, versions[-1], "version of the record")
        if number % 7 == 0:
            subject.committed(Commit(deletes=[key]), "delete")
    versions.append(subject.committed(Commit(puts={subject.key(name): b"" for name in names}), "commit of several"))
    equal(set(subject.reads(*names).values()), {versions[-1]}, "versions of one commit")
    before = subject.reads(*names, b"absent")
    versions.append(subject.committed(Commit(reads=before, puts={subject.key(b"0"): b"2"}), "commit that reads"))
    after = {**before, subject.key(b"0"): versions[-1]}
    equal(subject.reads(*names, b"absent"), after, "versions after a commit that reads")
    versions.append(subject.committed(Commit(reads=after), "commit that only reads"))
    equal(subject.reads(*names, b"absent"), after, "versions after a commit that only reads")
    equal(len(set(versions)), len(versions), "number of versions")


# --- keys, values and numbers -----------------------------------------------------------------------------------------
def check_binary_keys(subject: Subject) -> None:
    """Check that keys are bytes, compared as unsigned bytes, and that a shorter key comes before its continuations."""
    names = [bytes([byte]) for byte in range(256)]
    names += [bytes([one, other]) for one in (0, 1, 9, 10, 32, 127, 128, 254, 255) for other in (0, 32, 127, 128, 255)]
    names += [b"\0\0", b"\0\0\0", b"\xff\xff\xff", b"\xc3\xa9", b"e\xcc\x81", b"\xed\xa0\x80", b"%_'\"\\;--", b"1.0"]
    subject.committed(Commit(inserts={subject.key(name): name for name in reversed(names)}), "inserts of binary keys")
    ordered = sorted(set(names))
    records = subject.records()
    equal(list(records), ordered, "order of the keys")
    expect(all(record.value == name for name, record in records.items()), "each key has its own value")
    found = subject.other.get_many([subject.key(name) for name in names])
    equal(len(found), len(ordered), "number of records that get_many finds")
    ends = {b"\0": b"\0\0", b"\x7f": b"\x80\x80", b"\xfe": b"\xff\xff", b"\xff": b"\xff\xff\xff\xff", b"b": b"a"}
    for start, end in ends.items():
        expected = [subject.key(name) for name in ordered if start <= name < end]
        page = subject.backend.scan(subject.key(start), subject.key(end), 1000)
        equal([key for key, _record in page.records], expected, f"scan from {start!r} to {end!r}")
        one = RangeCount(subject.key(b"guard"), subject.key(start), subject.key(end), len(expected))
        subject.committed(Commit(ranges=[one]), f"count from {start!r} to {end!r}")
    for name in (b"a", b"A", b"a\0", b"e"):
        subject.committed(Commit(deletes=[subject.key(name)]), f"delete of {name!r}")
    equal(list(subject.records()), [name for name in ordered if name not in (b"a", b"A", b"a\0", b"e")], "the others")
    reads = {subject.key(name): record.version for name, record in subject.records().items()}
    subject.committed(Commit(reads=reads, deletes=list(reads)), "deletes of binary keys")
    subject.holds({}, "after the deletes")


def check_values(subject: Subject) -> None:
    """Check that values are bytes of any kind, up to 8 MiB."""
    values = [b"", b"\0", b"\0\0\0", b"'", b"\\x41", b"\\", b"\xff\xfe", bytes(range(256)) * 1000, "é😀".encode()]
    subject.fill({b"%d" % number: value for number, value in enumerate(values)})
    subject.holds({b"%d" % number: value for number, value in enumerate(values)}, "after the puts")
    key, largest = subject.key(b"large"), (b"i" + bytes(range(255))) * (MAX_VALUE_BYTES // 256)
    subject.committed(Commit(inserts={key: largest}), "insert of the largest value")
    other = b"i" + largest[:0:-1]
    subject.committed(Commit(puts={key: other}, reads=subject.reads(b"large")), "put of the largest value")
    subject.committed(Commit(adds={key: 1}), "add to the record with the largest value")
    record = subject.record(b"large")
    expect(record is not None and record.value == other, "the value is the same, byte for byte")


def check_key_limits(subject: Subject) -> None:
    """Check that keys of 1 to 1,024 bytes can be used everywhere, and that the bounds of a range may be longer."""
    longest = [subject.key(b"").ljust(MAX_KEY_BYTES - 1, b"k") + bytes([byte]) for byte in (0, 107, 255)]
    inserts = dict.fromkeys(longest, b"")
    ranges = [RangeCount(longest[0], longest[1], longest[2], 0)]
    subject.committed(Commit(reads=dict.fromkeys(longest, ABSENT), inserts=inserts, ranges=ranges), "longest keys")
    subject.committed(Commit(deletes=longest[:1], adds={longest[1]: 1}, bounds=[Bound(longest[1], 1)]), "longest keys")
    subject.committed(Commit(puts={longest[0]: b""}), "a put of a longest key")
    equal(sorted(subject.other.get_many(longest)), longest, "longest keys")
    for start, end, count in ((b"", longest[2] + b"\0", 3), (b"", longest[2] * 2, 3), (longest[2] + b"\0", b"", 0)):
        one = RangeCount(subject.key(b"guard"), start or subject.prefix, end or subject.end, count)
        subject.committed(Commit(ranges=[one]), f"range from {len(start)} to {len(end)} bytes")
    equal([key for key, _ in subject.other.scan(longest[2], longest[2] + b"\0", 5).records], longest[2:], "scan of one")
    equal(list(subject.records()), [key[len(subject.prefix) :] for key in longest], "scan of the longest keys")


def check_number_limits(subject: Subject) -> None:
    """Check that numbers stay within 62 bits, and that a group does not suffer from a member that would leave them."""
    up, down = subject.key(b"up"), subject.key(b"down")
    subject.committed(Commit(adds={up: MAX_NUMBER - 1, down: 1 - MAX_NUMBER}), "large adds")
    subject.committed(Commit(adds={up: 1, down: -1}, bounds=[Bound(up, MAX_NUMBER)]), "adds up to the limits")
    for key, delta in {up: 1, down: -1}.items():
        subject.conflicts(Commit(adds={key: delta}), "an add beyond the limit", key[len(subject.prefix) :])
        subject.conflicts(Commit(adds={key: delta * MAX_NUMBER}), "a large one", key[len(subject.prefix) :])
        other = Commit(adds={subject.key(b"n"): 1})
        outcomes = subject.backend.commit_group([other, Commit(adds={key: delta}), other])
        equal([type(one) for one in outcomes], [Committed, Conflict, Committed], "one such add in a group")
    subject.holds({b"up": (b"", MAX_NUMBER), b"down": (b"", -MAX_NUMBER), b"n": (b"", 4)}, "at the limits")
    subject.committed(Commit(adds={up: -MAX_NUMBER, down: MAX_NUMBER}), "the way back")


# --- large and impossible commits -------------------------------------------------------------------------------------
_HUGE = 10_000


def check_huge_commits(subject: Subject) -> None:
    """Check commits of 10,000 inserts, reads, puts, adds and deletes, and that one conflict undoes all of one."""
    keys = [subject.key(b"%05d" % number) for number in range(_HUGE)]
    version = subject.committed(Commit(inserts=dict.fromkeys(keys, b"i1")), "10,000 inserts")
    found = subject.other.get_many(keys)
    equal({record.version for record in found.values()}, {version}, "versions")
    equal(len(found), _HUGE, "number of records")
    reads = dict.fromkeys(keys, version)
    subject.committed(Commit(reads=reads, puts=dict.fromkeys(keys[::2], b"2")), "10,000 reads, 5,000 puts")
    subject.committed(Commit(adds=dict.fromkeys(keys[1::2], 3)), "5,000 adds")
    records = subject.records()
    equal({(one.value, one.number) for one in records.values()}, {(b"2", 0), (b"i1", 3)}, "kinds of records")
    for count in (0, _HUGE - 1, _HUGE + 1, 10**9):
        one = RangeCount(subject.key(b"guard"), subject.prefix, subject.end, count)
        subject.conflicts(Commit(ranges=[one], deletes=keys), f"a count of {count}", b"guard")
    one = RangeCount(subject.key(b"guard"), subject.prefix, subject.end, _HUGE)
    subject.committed(Commit(ranges=[one], deletes=keys), "10,000 deletes")
    subject.committed(Commit(reads=dict.fromkeys(keys, ABSENT), inserts={keys[-1]: b"there"}), "10,000 absent records")
    subject.conflicts(Commit(inserts=dict.fromkeys(keys, b"")), "10,000 inserts, one of what is there", b"09999")
    subject.conflicts(Commit(reads=dict.fromkeys(keys, ABSENT), puts={keys[0]: b""}), "10,000 reads", b"09999")
    subject.holds({b"09999": b"there"}, "after the conflicts")


def check_group_of_many(subject: Subject) -> None:
    """Check a group of a thousand commits, of which one fails."""
    subject.fill({b"there": b"1"})
    failing = Commit(inserts={subject.key(b"new"): b"", subject.key(b"there"): b""})
    group = [Commit(inserts={subject.key(b"%03d" % each): b""}, adds={subject.key(b"n"): 1}) for each in range(999)]
    outcomes = subject.backend.commit_group([*group[:500], failing, *group[500:]])
    is_conflict(outcomes.pop(500), {subject.key(b"there")}, "the commit that fails")
    equal(sum(isinstance(one, Committed) for one in outcomes), 999, "number of commits that took effect")
    found = subject.record(b"n")
    equal(found is not None and found.number, 999, "number after 999 adds in one group")
    equal(len(subject.records()), 1001, "number of records")


def check_mistakes_change_nothing(subject: Subject) -> None:
    """Check that a commit that cannot be right is refused, alone and in a group, and changes nothing."""
    subject.fill({b"a": b"1"})
    a, b, new = (subject.key(each) for each in (b"a", b"b", b"new"))
    twice = [Commit(puts={b: b""}), Commit(inserts={b: b""}), Commit(deletes=[b]), Commit(adds={b: 2})]
    mistakes = [
        replace(one, **{part.name: value for part in fields(Commit) if (value := getattr(other, part.name))})
        for one, other in combinations(twice, 2)
    ]
    mistakes += [
        Commit(reads=subject.reads(b"a"), inserts={a: b"2"}),
        Commit(bounds=[Bound(a, 7)]),
        Commit(puts={b: bytes(MAX_VALUE_BYTES + 1)}),
        Commit(inserts={b: bytes(MAX_VALUE_BYTES + 1)}),
        Commit(ranges=[RangeCount(b, subject.prefix, subject.end, -1)]),
        Commit(reads={a: -1}),
        Commit(reads={a: 2**63}),
    ]
    for key in (b"", b"k" * (MAX_KEY_BYTES + 1)):
        mistakes += [Commit(reads={key: ABSENT}), Commit(puts={key: b""}), Commit(inserts={key: b""})]
        mistakes += [Commit(deletes=[key]), Commit(adds={key: 1}), Commit(ranges=[RangeCount(key, b"a", b"b", 0)])]
    for number in (MAX_NUMBER + 1, -MAX_NUMBER - 1, 2**63, 2**64):
        mistakes += [Commit(adds={b: number}), Commit(adds={b: 1}, bounds=[Bound(b, number)])]
        mistakes.append(Commit(ranges=[RangeCount(b, b"a", b"b", number)]))
    for one in mistakes:
        commit = replace(one, puts={new: b"2", **one.puts})
        what = f"a commit with {[part.name for part in fields(Commit) if getattr(one, part.name)]}"
        refused(InvalidRequestError, partial(subject.backend.commit, commit), what)
        refused(InvalidRequestError, partial(subject.backend.commit_group, [Commit(), commit]), what)
    subject.holds({b"a": b"1"}, "after the mistakes")
    subject.committed(Commit(puts={new: b"2"}), "a commit after the mistakes")
