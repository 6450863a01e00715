"""Check keys and values of every kind and length, and large commits."""

from __future__ import annotations

from holdfast.conformance import equal, expect
from holdfast.transactions.base import (
    ABSENT,
    MAX_KEY_BYTES,
    MAX_NUMBER,
    MAX_VALUE_BYTES,
    Bound,
    Commit,
    Committed,
    Conflict,
    Progress,
    RangeCount,
)
from holdfast.transactions.conformance.subject import Subject

_HUGE = 10_000


def check_binary_keys(subject: Subject) -> None:
    """Check that keys are bytes, compared as unsigned bytes, and that a shorter key comes before its continuations."""
    names = [bytes([byte]) for byte in range(256)]
    names += [bytes([one, other]) for one in (0, 1, 9, 10, 32, 127, 128, 254, 255) for other in (0, 32, 127, 128, 255)]
    names += [b"\0\0", b"\0\0\0", b"\xff\xff\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"%_'\"\\;--"]
    subject.committed(Commit(inserts={subject.key(name): name for name in reversed(names)}), "inserts of binary keys")
    ordered = sorted(set(names))
    records = subject.records()
    equal(list(records), ordered, "order of the keys")
    expect(all(record.value == name for name, record in records.items()), "each key has its own value")
    found = subject.other.get_many([subject.key(name) for name in names])
    equal(len(found), len(ordered), "number of records that get_many finds")
    ends = {b"\0": b"\0\0", b"\x7f": b"\x80\x80", b"\xfe": b"\xff\xff", b"\xff": b"\xff\xff\xff\xff"}
    for start, end in ends.items():
        expected = [subject.key(name) for name in ordered if start <= name < end]
        page = subject.backend.scan(subject.key(start), subject.key(end), 1000)
        equal([key for key, _record in page.records], expected, f"scan from {start!r} to {end!r}")
        one = RangeCount(subject.key(b"guard"), subject.key(start), subject.key(end), len(expected))
        subject.committed(Commit(ranges=[one]), f"count from {start!r} to {end!r}")
    reads = {subject.key(name): record.version for name, record in records.items()}
    subject.committed(Commit(reads=reads, deletes=list(reads)), "deletes of binary keys")
    subject.holds({}, "after the deletes")


def check_similar_keys(subject: Subject) -> None:
    """Check that keys are different if one of their bytes is: no case, no padding, no normal forms."""
    names = [b"a", b"A", b"a ", b" a", b"a\0", b"a\0\0", b"\xc3\xa9", b"e\xcc\x81", b"e", b"\xe9", b"1", b"01", b"1.0"]
    for number, name in enumerate(names):
        subject.committed(Commit(inserts={subject.key(name): b"%d" % number}), f"insert of {name!r}")
    subject.holds({name: b"%d" % number for number, name in enumerate(names)}, "after the inserts")
    for name in names:
        subject.committed(Commit(deletes=[subject.key(name)]), f"delete of {name!r}")
        equal(name in subject.records(), False, f"existence of {name!r} after its delete")


def check_values(subject: Subject) -> None:
    """Check that values are bytes of any kind and length."""
    values = [b"", b"\0", b"\0\0\0", b"'", b"\\x41", b"\\", b"\xff\xfe", bytes(range(256)) * 1000, "é😀".encode()]
    subject.fill({b"%d" % number: value for number, value in enumerate(values)})
    subject.holds({b"%d" % number: value for number, value in enumerate(values)}, "after the puts")


def check_key_limits(subject: Subject) -> None:
    """Check that keys of 1 to 1,024 bytes can be used everywhere."""
    longest = [subject.key(b"").ljust(MAX_KEY_BYTES - 1, b"k") + bytes([byte]) for byte in (0, 107, 255)]
    inserts = dict.fromkeys(longest, b"")
    ranges = [RangeCount(longest[0], longest[1], longest[2], 0)]
    subject.committed(Commit(reads=dict.fromkeys(longest, ABSENT), inserts=inserts, ranges=ranges), "longest keys")
    subject.committed(Commit(deletes=longest[:1], adds={longest[1]: 1}, bounds=[Bound(longest[1], 1)]), "longest keys")
    subject.committed(Commit(progress=Progress(longest[0], 1)), "longest owner")
    equal(sorted(subject.other.get_many(longest)), longest, "longest keys")
    equal(list(subject.records()), [key[len(subject.prefix) :] for key in longest], "scan of the longest keys")


def check_value_limits(subject: Subject) -> None:
    """Check that a value of 8 MiB is kept."""
    largest = (b"i" + bytes(range(255))) * (MAX_VALUE_BYTES // 256)
    key = subject.key(b"large")
    subject.committed(Commit(inserts={key: largest}), "insert of the largest value")
    other = b"i" + largest[:0:-1]
    subject.committed(Commit(puts={key: other}, reads=subject.reads(b"large")), "put of the largest value")
    subject.committed(Commit(adds={key: 1}), "add to the record with the largest value")
    record = subject.record(b"large")
    expect(record is not None and record.value == other, "the value is the same, byte for byte")


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
    subject.committed(Commit(progress=Progress(subject.key(b"owner"), MAX_NUMBER)), "the last step of a series")


def check_huge_commits(subject: Subject) -> None:
    """Check commits of 10,000 inserts, reads, puts, adds and deletes."""
    keys = [subject.key(b"%05d" % number) for number in range(_HUGE)]
    version = subject.committed(Commit(inserts=dict.fromkeys(keys, b"i1")), "10,000 inserts")
    found = subject.other.get_many(keys)
    equal({record.version for record in found.values()}, {version}, "versions")
    equal(len(found), _HUGE, "number of records")
    reads = dict.fromkeys(keys, version)
    version = subject.committed(Commit(reads=reads, puts=dict.fromkeys(keys[::2], b"2")), "10,000 reads, 5,000 puts")
    subject.committed(Commit(adds=dict.fromkeys(keys[1::2], 3)), "5,000 adds")
    records = subject.records()
    equal({(one.value, one.number) for one in records.values()}, {(b"2", 0), (b"i1", 3)}, "kinds of records")
    one = RangeCount(subject.key(b"guard"), subject.prefix, subject.end, _HUGE)
    subject.committed(Commit(ranges=[one], deletes=keys), "10,000 deletes")
    absent = dict.fromkeys(keys, ABSENT)
    subject.committed(Commit(reads=absent, inserts=dict.fromkeys(keys[:10], b"3")), "10,000 reads of absent records")
    equal(len(subject.records()), 10, "number of records in the end")


def check_conflict_in_huge_commit(subject: Subject) -> None:
    """Check that one conflict undoes 10,000 inserts."""
    subject.fill({b"09999": b"there", b"05000": b"there"})
    keys = [subject.key(b"%05d" % number) for number in range(_HUGE)]
    subject.conflicts(Commit(inserts=dict.fromkeys(keys, b"")), "10,000 inserts", b"05000", b"09999")
    subject.holds({b"09999": b"there", b"05000": b"there"}, "after the conflict")
    stale = {**dict.fromkeys(keys, ABSENT), **subject.reads(b"05000")}
    subject.conflicts(Commit(reads=stale, puts={subject.key(b"new"): b""}), "10,000 reads", b"09999")
    subject.holds({b"09999": b"there", b"05000": b"there"}, "after the second conflict")
