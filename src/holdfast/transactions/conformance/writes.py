"""Check what commits do: each kind of write, versions, conflicts, mistakes of the caller, series, groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from itertools import combinations

from holdfast.conformance import equal, refused
from holdfast.errors import InvalidRequestError
from holdfast.transactions.base import (
    ABSENT,
    MAX_KEY_BYTES,
    MAX_NUMBER,
    MAX_VALUE_BYTES,
    AlreadyDone,
    Bound,
    Commit,
    Committed,
    Conflict,
    Progress,
    RangeCount,
    Record,
)
from holdfast.transactions.conformance.subject import Subject, is_conflict, version_of_committed
from holdfast.transactions.steps import independent


def check_puts(subject: Subject) -> None:
    """Check that a put writes a record, whether it exists or not, and sets its number to 0."""
    key = subject.key(b"a")
    for value in (b"integer, long", b"i2", b"", b"i" + bytes(range(256)) * 40):
        version = subject.committed(Commit(puts={key: value}), "put")
        equal(subject.record(b"a"), Record(version, value), "record after a put")
        subject.committed(Commit(adds={key: 5}), "add")
    stale = {key: version}
    subject.conflicts(Commit(reads=stale, puts={key: b"late"}), "put of a record that has changed", b"a")
    subject.committed(Commit(reads=subject.reads(b"a"), puts={key: b"read"}), "put of a record as it was read")
    subject.holds({b"a": b"read"}, "after the puts")


def check_inserts(subject: Subject) -> None:
    """Check that an insert creates a record, and conflicts if there is one, even if all else is as expected."""
    key, other = subject.key(b"a"), subject.key(b"b")
    version = subject.committed(Commit(inserts={key: b"1"}), "insert")
    equal(subject.record(b"a"), Record(version, b"1"), "record after an insert")
    subject.conflicts(Commit(inserts={key: b"1"}), "insert of the same record", b"a")
    subject.conflicts(Commit(inserts={other: b"1", key: b""}), "inserts, one of an existing record", b"a")
    subject.holds({b"a": b"1"}, "after the conflicts")
    subject.committed(Commit(deletes=[key]), "delete")
    subject.committed(Commit(inserts={key: b"2", other: b"2"}), "insert after a delete")
    subject.holds({b"a": b"2", b"b": b"2"}, "after the inserts")


def check_deletes(subject: Subject) -> None:
    """Check that a delete removes a record, and ignores an absent one unless it was read as existing."""
    subject.fill({b"a": b"1", b"ab": b"2", b"b": b"3"})
    seen = subject.reads(b"a")
    subject.committed(Commit(deletes=[subject.key(b"a"), subject.key(b"absent")]), "delete")
    subject.holds({b"ab": b"2", b"b": b"3"}, "after the delete")
    subject.committed(Commit(deletes=(subject.key(b"a"),)), "delete of an absent record")
    subject.conflicts(Commit(reads=seen, deletes={subject.key(b"a")}), "delete of a record that is gone", b"a")
    subject.committed(Commit(reads=subject.reads(b"b", b"c"), deletes=[subject.key(b"b"), subject.key(b"c")]), "both")
    subject.holds({b"ab": b"2"}, "after the deletes")


def check_adds(subject: Subject) -> None:
    """Check that adds change the number and keep the value, that a missing counter starts at 0."""
    key = subject.key(b"a")
    subject.committed(Commit(adds={key: 5}), "add to a missing counter")
    version = subject.committed(Commit(adds={key: -7}), "negative add")
    equal(subject.record(b"a"), Record(version, b"", -2), "record that only adds have written")
    subject.committed(Commit(puts={key: b"i value"}), "put")
    version = subject.committed(Commit(adds={key: 3}), "add to a record with a value")
    equal(subject.record(b"a"), Record(version, b"i value", 3), "record after the add")
    version = subject.committed(Commit(adds={key: 0}), "add of 0")
    equal(subject.record(b"a"), Record(version, b"i value", 3), "record after the add of 0")
    for delta in (2**62 - 1, 4 - 2**62):
        subject.committed(Commit(puts={key: b""}), "put")
        subject.committed(Commit(adds={key: delta}), "large add")
        subject.holds({b"a": (b"", delta)}, "after a large add")
    seen = subject.reads(b"a")
    subject.committed(Commit(adds={key: 1}), "add that reads nothing")
    subject.conflicts(Commit(reads=seen, adds={key: 1}), "add to a record that was read and has changed", b"a")
    subject.committed(Commit(reads=subject.reads(b"a"), adds={key: 1}), "add to a record as it was read")
    subject.holds({b"a": (b"", 6 - 2**62)}, "after the adds")


def check_adds_to_values(subject: Subject) -> None:
    """Check that nothing is added to a record that holds a value other than an integer, whoever was first."""
    others = [b"t", b"text", b"I", b"j[1]", b"\0", b"\xff", b"1", b" i"]
    subject.fill({b"%d" % number: value for number, value in enumerate(others)} | {b"i": b"i", b"empty": b""})
    for number, value in enumerate(others):
        name = b"%d" % number
        key, n = subject.key(name), subject.key(b"n")
        subject.conflicts(Commit(adds={key: 1}), f"an add to {value!r}", name)
        subject.conflicts(Commit(reads=subject.reads(name), adds={key: -1, n: 1}), f"an add to {value!r}, read", name)
        group = [Commit(adds={n: 1}), Commit(adds={key: 1}), Commit(adds={key: -1}), Commit(adds={n: 1})]
        outcomes = subject.backend.commit_group(group)
        equal([type(one) for one in outcomes], [Committed, Conflict, Conflict, Committed], "such adds in a group")
        version = subject.committed(Commit(adds={key: 0}), f"an add of 0 to {value!r}")
        equal(subject.record(name), Record(version, value), "record after the add of 0")
    adds = {subject.key(name): 2 for name in (b"i", b"empty", b"new")}
    subject.committed(Commit(adds=adds), "adds to integers and to counters")
    subject.committed(Commit(puts={subject.key(b"new"): b"text"}), "a put over a counter")
    subject.conflicts(Commit(adds=adds), "an add to it", b"new")
    kept = {b"%d" % number: value for number, value in enumerate(others)}
    numbers = {b"i": (b"i", 2), b"empty": (b"", 2), b"n": (b"", 2 * len(others))}
    subject.holds({**kept, **numbers, b"new": b"text"}, "after the adds")


def check_bounds(subject: Subject) -> None:
    """Check that a bound compares the number after the commit's add, and that its conflict names the counter."""
    key = subject.key(b"n")
    for number in range(3):
        subject.committed(Commit(adds={key: 1}, bounds=[Bound(key, 3)]), f"add to {number} with bound 3")
    subject.conflicts(Commit(adds={key: 1}, bounds=[Bound(key, 3)]), "add to 3 with bound 3", b"n")
    subject.committed(Commit(adds={key: 0}, bounds=[Bound(key, 3)]), "add of 0 with bound 3")
    subject.conflicts(Commit(adds={key: -1}, bounds=[Bound(key, 1)]), "add that leads to 2, with bound 1", b"n")
    subject.committed(Commit(adds={key: -3}, bounds=[Bound(key, 0)]), "add that leads to 0")
    absent = subject.key(b"absent")
    subject.conflicts(Commit(adds={absent: 2}, bounds=[Bound(absent, 1)]), "add to a missing counter", b"absent")
    subject.committed(Commit(adds={absent: 2}, bounds=[Bound(absent, 2), Bound(absent, 5)]), "two bounds")
    subject.holds({b"n": (b"", 0), b"absent": (b"", 2)}, "after the adds")


def check_versions(subject: Subject) -> None:
    """Check that records have the version of their commit, and that no two commits have the same."""
    handles = [subject.backend, subject.other, *subject.racers]
    versions = []
    for number in range(60):
        key = subject.key(b"%d" % (number % 3))
        versions.append(version_of_committed(handles[number % len(handles)].commit(Commit(puts={key: b""})), "put"))
        equal(subject.other.get_many([key])[key].version, versions[-1], "version of the record")
    equal(len(set(versions)), len(versions), "number of versions")
    keys = {subject.key(each) for each in (b"0", b"1", b"2", b"3")}
    version = subject.committed(Commit(puts=dict.fromkeys(keys, b"")), "commit of several records")
    equal({one.version for one in subject.other.get_many(keys).values()}, {version}, "versions of one commit")


def check_all_at_once(subject: Subject) -> None:
    """Check that one commit may have every part."""
    subject.fill({b"put": b"1", b"deleted": b"1", b"read": b"1", b"range/1": b"", b"range/2": b""}, {b"added": 1})
    key = subject.key
    version = subject.committed(
        Commit(
            reads=subject.reads(b"read", b"put", b"absent", b"deleted", b"added", b"new"),
            puts={key(b"put"): b"2", key(b"range/3"): b""},
            inserts={key(b"new"): b"2"},
            deletes=[key(b"deleted"), key(b"range/1")],
            adds={key(b"added"): 2, key(b"bounded"): 3},
            ranges=[
                RangeCount(key(b"guard"), key(b"range/"), key(b"range0"), 2),
                RangeCount(key(b"read"), key(b"x"), key(b"y"), 0),
            ],
            bounds=[Bound(key(b"added"), 3), Bound(key(b"bounded"), 3)],
            progress=Progress(key(b"owner"), 4),
        ),
        "a commit with every part",
    )
    subject.holds(
        {
            **dict.fromkeys([b"range/2", b"range/3"], b""),
            b"put": b"2",
            b"new": b"2",
            b"read": b"1",
            b"added": (b"", 3),
            b"bounded": (b"", 3),
            b"owner": (b"", 4),
        },
        "after a commit with every part",
    )
    written = (b"put", b"range/3", b"new", b"added", b"bounded", b"owner")
    equal(set(subject.reads(*written).values()), {version}, "versions of what was written")


def check_conflict_changes_nothing(subject: Subject) -> None:
    """Check that a conflict undoes every part of its commit, whichever condition does not hold."""
    subject.fill({b"put": b"1", b"deleted": b"1", b"there": b"1", b"range/1": b""}, {b"added": 1, b"owner": 3})
    key = subject.key
    stale = subject.reads(b"there", b"a-first", b"z-last")
    subject.committed(Commit(puts={key(b"there"): b"2"}), "put")
    before = subject.records()
    wrong: Mapping[bytes, Commit] = {
        b"there": Commit(reads=stale),
        b"a-first": Commit(reads={key(b"a-first"): stale[key(b"there")]}),
        b"z-last": Commit(reads={key(b"z-last"): stale[key(b"there")]}),
        b"range/1": Commit(inserts={key(b"range/1"): b""}),
        b"guard": Commit(ranges=[RangeCount(key(b"guard"), key(b"range/"), key(b"range0"), 0)]),
        b"guard2": Commit(ranges=[RangeCount(key(b"guard2"), key(b"range/"), key(b"range0"), 2)]),
        b"bounded": Commit(adds={key(b"bounded"): 9}, bounds=[Bound(key(b"bounded"), 8)]),
    }
    for name, one in wrong.items():
        commit = Commit(
            reads=one.reads,
            puts={key(b"put"): b"2", key(b"new-put"): b"2"},
            inserts={key(b"new"): b"2", **one.inserts},
            deletes=[key(b"deleted")],
            adds={key(b"added"): 2, key(b"new-counter"): 1, **one.adds},
            ranges=one.ranges,
            bounds=one.bounds,
            progress=Progress(key(b"owner"), 4),
        )
        subject.conflicts(commit, f"commit with a condition on {name!r} that does not hold", name)
        equal(subject.records(), before, f"records after a conflict about {name!r}")


def check_mistakes_change_nothing(subject: Subject) -> None:
    """Check that a commit that cannot be right is refused, alone and in a group, and changes nothing."""
    subject.fill({b"a": b"1"})
    a, b, new = (subject.key(each) for each in (b"a", b"b", b"new"))
    reads = subject.reads(b"a")
    twice = [Commit(puts={b: b""}), Commit(inserts={b: b""}), Commit(deletes=[b]), Commit(adds={b: 2})]
    twice.append(Commit(progress=Progress(b, 1)))
    mistakes = [
        replace(one, **{part.name: value for part in fields(Commit) if (value := getattr(other, part.name))})
        for one, other in combinations(twice, 2)
    ]
    mistakes += [
        Commit(reads=reads, progress=Progress(a, 1)),
        Commit(reads=reads, inserts={a: b"2"}),
        Commit(bounds=[Bound(a, 7)]),
        Commit(puts={b: bytes(MAX_VALUE_BYTES + 1)}),
        Commit(inserts={b: bytes(MAX_VALUE_BYTES + 1)}),
        Commit(progress=Progress(b, 0)),
        Commit(ranges=[RangeCount(b, subject.prefix, subject.end, -1)]),
        Commit(reads={a: -1}),
        Commit(reads={a: 2**63}),
    ]
    for key in (b"", b"k" * (MAX_KEY_BYTES + 1)):
        mistakes += [Commit(reads={key: ABSENT}), Commit(puts={key: b""}), Commit(inserts={key: b""})]
        mistakes += [Commit(deletes=[key]), Commit(adds={key: 1}), Commit(progress=Progress(key, 1))]
        mistakes.append(Commit(ranges=[RangeCount(key, b"a", b"b", 0)]))
    for number in (MAX_NUMBER + 1, -MAX_NUMBER - 1, 2**63, 2**64):
        mistakes += [Commit(adds={b: number}), Commit(adds={b: 1}, bounds=[Bound(b, number)])]
        mistakes += [Commit(progress=Progress(b, number)), Commit(ranges=[RangeCount(b, b"a", b"b", number)])]
    for one in mistakes:
        commit = replace(one, puts={new: b"2", **one.puts})
        what = f"a commit with {[part.name for part in fields(Commit) if getattr(one, part.name)]}"
        refused(InvalidRequestError, partial(subject.backend.commit, commit), what)
        refused(InvalidRequestError, partial(subject.backend.commit_group, [Commit(), commit]), what)
    subject.holds({b"a": b"1"}, "after the mistakes")
    subject.committed(Commit(puts={new: b"2"}), "a commit after the mistakes")


# --- series of commits, each of which takes effect at most once ------------------------------------------------------
def _step(subject: Subject, number: int, owner: bytes = b"owner") -> Commit:
    return Commit(progress=Progress(subject.key(owner), number), adds={subject.key(b"n"): 1})


def check_progress(subject: Subject) -> None:
    """Check that commits of a series take effect in ascending order, each once, and that numbers may be left out."""
    version = subject.committed(_step(subject, 1), "step 1")
    equal(subject.record(b"owner"), Record(version, b"", 1), "record of the progress")
    equal(subject.other.commit(_step(subject, 1)), AlreadyDone(1), "step 1 again")
    subject.committed(_step(subject, 4), "step 4")
    for number in (1, 2, 3, 4):
        equal(subject.other.commit(_step(subject, number)), AlreadyDone(4), f"step {number} after step 4")
    subject.committed(_step(subject, 1, b"other"), "step 1 of another series")
    subject.committed(_step(subject, 2**40), "a large step")
    subject.holds({b"owner": (b"", 2**40), b"other": (b"", 1), b"n": (b"", 4)}, "in the end")
    equal(subject.backend.commit_group([_step(subject, 5), Commit()])[0], AlreadyDone(2**40), "step 5 in a group")


def check_conflict_makes_no_progress(subject: Subject) -> None:
    """Check that a commit that conflicts can be repeated with the same number."""
    subject.fill({b"a": b"1"})
    commit = Commit(progress=Progress(subject.key(b"owner"), 1), inserts={subject.key(b"a"): b""})
    for _ in range(2):
        subject.conflicts(commit, "a step with a conflict", b"a")
    subject.holds({b"a": b"1"}, "after the conflicts")
    subject.committed(Commit(deletes=[subject.key(b"a")]), "delete")
    subject.committed(commit, "the step without a conflict")


def check_done_before_conflict(subject: Subject) -> None:
    """Check that a commit that took effect before does not conflict with its own effects."""
    commit = Commit(
        progress=Progress(subject.key(b"owner"), 3),
        reads=subject.reads(b"a", b"b"),
        puts={subject.key(b"a"): b"1"},
        inserts={subject.key(b"b"): b"1"},
    )
    subject.committed(commit, "the step")
    equal(subject.other.commit(commit), AlreadyDone(3), "the step again")
    subject.holds({b"owner": (b"", 3), b"a": b"1", b"b": b"1"}, "in the end")


# --- groups: several independent commits in one call -----------------------------------------------------------------
def check_conflict_costs_its_caller(subject: Subject) -> None:
    """Check that each commit of a group succeeds or fails by itself, whatever the reason and the position."""
    subject.fill({b"there": b"1", b"range/1": b""}, {b"owner": 5, b"n": 1})
    stale = subject.reads(b"there")
    subject.committed(Commit(puts={subject.key(b"there"): b"2"}), "put")
    key = subject.key

    def group(suffix: bytes) -> list[Commit]:
        def new(name: bytes) -> dict[bytes, bytes]:
            return {key(name + suffix): b""}

        return [
            Commit(reads=stale, inserts=new(b"no-read")),
            Commit(inserts=new(b"yes-1")),
            Commit(inserts={**new(b"no-insert"), key(b"range/1"): b""}),
            Commit(puts=new(b"yes-2")),
            Commit(ranges=[RangeCount(key(b"guard"), key(b"range/"), key(b"range0"), 2)], puts=new(b"no-range")),
            Commit(progress=Progress(key(b"owner"), 5), puts=new(b"no-progress")),
            Commit(adds={key(b"n"): 9}, bounds=[Bound(key(b"n"), 9)], puts=new(b"no-bound")),
            Commit(adds={key(b"n"): 1}, puts=new(b"yes-3")),
        ]

    for suffix, turn in ((b" first", 0), (b" last", 7), (b" turned", 3)):
        commits = group(suffix)
        commits = commits[turn:] + commits[:turn]
        equal(independent(commits), len(commits), "size of the group")
        before = len(subject.records())
        outcomes = subject.backend.commit_group(commits)
        for commit, outcome in zip(commits, outcomes, strict=True):
            name = next(name for name in (*commit.inserts, *commit.puts) if name.endswith(suffix))
            equal(isinstance(outcome, Committed), name.startswith(key(b"yes")), f"effect of {name!r}")
            equal(outcome == AlreadyDone(5), name.startswith(key(b"no-progress")), f"progress of {name!r}")
        equal(len(subject.records()), before + 3, "records after the group")


def check_bounds_in_order(subject: Subject) -> None:
    """Check that bounds see the adds of the commits before them in the group, unless those failed."""
    subject.fill({b"there": b"1"})
    key, bounds = subject.key, [Bound(subject.key(b"n"), 3)]

    def add(delta: int, name: bytes) -> Commit:
        return Commit(adds={key(b"n"): delta}, bounds=bounds, puts={key(name): b""})

    group = [
        add(2, b"fits"),
        Commit(adds={key(b"n"): -1}, inserts={key(b"there"): b""}),
        add(2, b"too much"),
        Commit(adds={key(b"n"): -9}, progress=Progress(key(b"owner"), 1)),
        add(10, b"fits after -9"),
        add(1, b"too much again"),
        add(0, b"fits still"),
    ]
    outcomes = subject.backend.commit_group(group)
    equal([isinstance(one, Committed) for one in outcomes], [True, False, False, True, True, False, True], "effects")
    is_conflict(outcomes[2], {key(b"n")}, "add above the bound")
    found = subject.record(b"n")
    equal(found is not None and found.number, 3, "number")
    group = [Commit(adds={key(b"n"): -9}, progress=Progress(key(b"owner"), 1)), add(1, b"too much at last")]
    outcomes = subject.backend.commit_group(group)
    equal(outcomes[0], AlreadyDone(1), "the commit that took effect before")
    is_conflict(outcomes[1], {key(b"n")}, "add above the bound, after one that took effect before")


def check_group_of_many(subject: Subject) -> None:
    """Check a group of a thousand commits, of which every tenth fails."""
    subject.fill({b"there": b"1"})
    group = [
        Commit(inserts={subject.key(b"%04d" % number): b"", **({} if number % 10 else {subject.key(b"there"): b""})})
        for number in range(1000)
    ]
    outcomes = subject.backend.commit_group([one for one in group if len(one.inserts) == 1])
    equal(sum(isinstance(one, Committed) for one in outcomes), 900, "number of commits that took effect")
    failing = subject.backend.commit_group([group[0], *(Commit(adds={subject.key(b"n"): 1}) for _ in range(200))])
    is_conflict(failing[0], {subject.key(b"there")}, "the commit that fails")
    found = subject.record(b"n")
    equal(found is not None and found.number, 200, "number after 200 adds in one group")
    equal(len(subject.records()), 902, "number of records")
