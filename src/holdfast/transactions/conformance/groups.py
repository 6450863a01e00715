"""Check groups: several independent commits in one call."""

from __future__ import annotations

from holdfast.conformance import equal
from holdfast.transactions.base import AlreadyDone, Bound, Commit, Committed, Progress, RangeCount
from holdfast.transactions.conformance.subject import Subject, is_conflict
from holdfast.transactions.steps import independent


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
