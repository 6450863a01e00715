"""Check concurrent calls: the anomalies that locks and validation must prevent, each as a race; reads under load.

A database may keep each promise for one caller and still break it for eight. Commits that neither read nor insert have
no reason to conflict, so a conflict of such a commit means that the database found a deadlock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.conformance import ConformanceError, equal, expect
from holdfast.runtime import SeededRandom
from holdfast.transactions.base import (
    ABSENT,
    Backend,
    Bound,
    Commit,
    Committed,
    RangeCount,
    Record,
)
from tests.conformance.backends.subject import RACERS, Subject, version_of_committed

_READERS = 3
_COMMITS_IN_ROUND = 5


def check_increment_race(subject: Subject) -> None:
    """Check that no increment is lost that reads a record, and writes it if it has not changed since."""
    key = subject.key(b"n")
    subject.fill({b"n": b"0"})

    def run(_racer: int, backend: Backend) -> None:
        def build() -> Commit:
            record = backend.get_many([key])[key]
            return Commit(reads={key: record.version}, puts={key: b"%d" % (int(record.value) + 1)})

        for _ in range(subject.rounds):
            subject.repeat(backend, build)

    subject.race(run)
    subject.holds({b"n": b"%d" % (subject.rounds * RACERS)}, "after all increments")


def check_add_race(subject: Subject) -> None:
    """Check that adds never conflict, and that none is lost, even if they create their counter."""
    keys = [subject.key(b"%d" % number) for number in range(3)]

    def run(racer: int, backend: Backend) -> None:
        for turn in range(subject.rounds):
            order = keys[turn % 3 :] + keys[: turn % 3]
            version_of_committed(backend.commit(Commit(adds=dict.fromkeys(order, racer + 1))), "add")

    subject.race(run)
    total = subject.rounds * sum(range(1, RACERS + 1))
    subject.holds({b"%d" % number: (b"", total) for number in range(3)}, "after all adds")


def check_bound_race(subject: Subject) -> None:
    """Check that a bound is never exceeded, and always reached."""
    key, most = subject.key(b"n"), RACERS * subject.rounds // 2
    commit = Commit(adds={key: 1}, bounds=[Bound(key, most)])
    won = sum(subject.took_effect([commit] * RACERS).count(True) for _ in range(subject.rounds))
    equal(won, most, "adds that took effect")
    subject.holds({b"n": (b"", most)}, "after all adds")


def check_insert_race(subject: Subject) -> None:
    """Check that of several inserts of one record exactly one takes effect, also right after the record was deleted."""
    for round_ in range(subject.rounds):
        key = subject.key(b"%d" % (round_ % 2))
        subject.committed(Commit(deletes=[key]), "delete")
        reads = {key: ABSENT} if round_ % 3 == 0 else {}
        mine = [subject.key(b"mine/%d" % racer) for racer in range(RACERS)]
        won = subject.took_effect([Commit(reads=reads, inserts={key: one, one: b""}) for one in mine])
        equal(won.count(True), 1, "number of inserts that took effect")
        winner = mine[won.index(True)]
        equal(subject.other.get_many([key])[key].value, winner, "value of the winner")
        subject.committed(Commit(deletes=[winner]), "delete")
        equal(subject.records().keys() - {b"0", b"1"}, set(), "other inserts of those that did not take effect")


def check_delete_race(subject: Subject) -> None:
    """Check that a record stays deleted if it was created by a commit that came before its deletion, as its reads say.

    A database that takes no lock on an absent record in order to delete it lets the creation come in between.
    """
    for round_ in range(subject.rounds):
        place = b"%d/" % round_
        key, last = subject.key(place + b"a"), subject.key(place + b"z")
        # What is put takes time between the deletion and the write of z.
        puts = {subject.key(place + b"m%03d" % number): b"" for number in range(100)}
        deletion = Commit(deletes=[key], puts={**puts, last: b""})
        was_deleted, _was_created = subject.took_effect([deletion, Commit(reads={last: ABSENT}, inserts={key: b""})])
        expect(was_deleted, "a commit that reads nothing takes effect")
        equal(subject.record(place + b"a"), None, "record whose creator did not see what the deletion has written")


def check_skew_race(subject: Subject) -> None:
    """Check that two commits that read both records and write different ones never both take effect.

    The records exist, or do not: then each creates what the other one has read as absent.
    """
    for round_ in range(subject.rounds):
        place = b"%d/" % round_ if round_ % 4 < 2 else b""  # a database may know old keys
        x, y = subject.key(place + b"x"), subject.key(place + b"y")
        subject.committed(Commit(puts={x: b"on", y: b"on"}) if round_ % 2 else Commit(deletes=[x, y]), "start")
        reads = subject.reads(place + b"x", place + b"y")
        second = Commit(reads=reads, puts={y: b"off"})
        first = Commit(reads=reads, puts={x: b"off"}) if round_ % 2 else Commit(reads={y: ABSENT}, inserts={x: b""})
        won = subject.took_effect((first, second) if round_ % 3 else (second, first))
        equal(sum(won), 1, "commits that took effect, of which each reads what the other one writes")


def check_phantom_race(subject: Subject) -> None:
    """Check that a range does not change under a commit that counted it: with a guard that exists, or does not."""
    for round_ in range(subject.rounds):
        place = b"%d/" % round_
        guard, first = subject.key(place + b"guard"), subject.key(place + b"in/")
        subject.fill({place + b"guard": b""} if round_ % 2 else {})
        reads = subject.reads(place + b"guard")
        one = RangeCount(guard, first, subject.key(place + b"in0"), 0)
        # Like the removal of an empty directory and the creation of a file in it.
        removal = Commit(ranges=[one], reads=reads, puts={subject.key(place + b"removed"): b""})
        _was_removed, was_created = subject.took_effect([removal, Commit(reads=reads, inserts={first + b"1": b""})])
        expect(was_created, "an insert that reads the guard takes effect: nobody writes what it reads")
        later = subject.backend.commit(removal)
        expect(not isinstance(later, Committed), "a range that holds a record is not counted as empty")
        subject.committed(Commit(deletes=[first + b"1"]), "delete")
        claims = [Commit(ranges=[one], inserts={first + b"%d" % racer: b""}) for racer in range(RACERS)]
        equal(sum(subject.took_effect(claims)), 1, "commits that found the range empty and inserted into it")


def check_lock_order(subject: Subject) -> None:
    """Check that commits of many records in any order never wait for each other in a circle.

    All of them write blindly, or read what nobody writes, so none of them may conflict.
    """
    keys = [subject.key(b"%02d" % number) for number in range(12)]
    fixed = [subject.key(b"fixed %d" % number) for number in range(3)]
    subject.fill({b"fixed 0": b"", b"fixed 1": b""})
    reads = subject.reads(b"fixed 0", b"fixed 1", b"fixed 2")
    empty = RangeCount(fixed[2], subject.key(b"x"), subject.key(b"y"), 0)

    def run(racer: int, backend: Backend) -> int:
        chance = SeededRandom(100 + racer)
        added = 0
        for turn in range(subject.rounds):
            order = chance.shuffled(keys)
            parts = chance.pick((2, 3, 4))
            commit = Commit(
                reads=reads,
                puts=dict.fromkeys(order[:parts], b"i%d" % turn),
                deletes=order[parts : 2 * parts],
                adds={**dict.fromkeys(order[2 * parts : 3 * parts], 1), subject.key(b"sum"): 1},
                ranges=[empty] if chance.happens(0.5) else (),
            )
            version_of_committed(backend.commit(commit), "a commit without a reason to conflict")
            added += 1
        return added

    total = sum(subject.race(run))
    record = subject.record(b"sum")
    equal(record is not None and record.number, total, "sum of all adds")


def check_group_race(subject: Subject) -> None:
    """Check that groups from several processes take effect as if each of their commits came alone."""
    keys = [subject.key(b"%02d" % number) for number in range(10)]

    def run(racer: int, backend: Backend) -> int:
        chance = SeededRandom(200 + racer)
        done = 0
        for turn in range(subject.rounds):
            own = [subject.key(b"%d/%d/%d" % (racer, turn, number)) for number in range(4)]
            shared = chance.shuffled(keys)
            group = [
                Commit(adds={shared[0]: 1}, inserts={own[0]: b""}),
                Commit(adds={shared[0]: 1, shared[1]: 1}, inserts={own[1]: b""}),
                Commit(puts={subject.key(b"put %d" % (turn % 3)): b"%d" % racer}, inserts={own[2]: b""}),
                Commit(inserts={subject.key(b"first %d" % turn): b"", own[3]: b""}),
            ]
            outcomes = backend.commit_group(group)
            for outcome in outcomes[:3]:
                version_of_committed(outcome, "a commit without a reason to conflict")
            done += 3 + isinstance(outcomes[3], Committed)
        return done

    total = sum(subject.race(run))
    records = subject.records()
    equal(sum(record.number for record in records.values()), 3 * subject.rounds * RACERS, "sum of all adds")
    equal(sum(b"/" in key for key in records), total, "records of the commits that took effect")
    equal(sum(key.startswith(b"first") for key in records), subject.rounds, "inserts of which one took effect each")


# --- reads under load ------------------------------------------------------------------------------------------------
def _while_writing(
    subject: Subject, write: Callable[[int, Backend], object], read: Callable[[Backend], object]
) -> None:
    """Run one writer and several readers: the readers read until the writer has ended, and once more."""
    is_over = threading.Event()

    def run(number: int, backend: Backend) -> None:
        if number == 0:
            try:
                for turn in range(subject.rounds * _COMMITS_IN_ROUND):
                    write(turn, backend)
            finally:
                is_over.set()
            return
        goes_on = True
        while goes_on:
            goes_on = not is_over.is_set()
            read(backend)

    subject.race(run, threads=1 + _READERS)


def _move(keys: list[bytes]) -> Callable[[int, Backend], None]:
    """Return a function that moves 1 from one number to another."""

    def write(turn: int, backend: Backend) -> None:
        source, target = keys[turn % len(keys)], keys[(turn * 7 + 1) % len(keys)]
        if source != target:
            outcome = backend.commit(Commit(adds={source: -1, target: 1}))
            expect(isinstance(outcome, Committed), f"adds take effect: {outcome}")

    return write


def _sum(records: dict[bytes, Record]) -> int:
    return sum(record.number for record in records.values())


def check_get_many_is_a_snapshot(subject: Subject) -> None:
    """Check that x + y never changes for readers while a writer moves amounts between x and y."""
    keys = [subject.key(b"x"), subject.key(b"y")]
    subject.fill({}, {b"x": 100, b"y": 100})
    _while_writing(subject, _move(keys), lambda backend: equal(_sum(backend.get_many(keys)), 200, "x + y"))


def check_wide_get_many_is_a_snapshot(subject: Subject) -> None:
    """Check that a read of thousands of records is one snapshot, too."""
    keys = [subject.key(b"%04d" % number) for number in range(1500)]
    subject.committed(Commit(adds=dict.fromkeys(keys, 1)), "adds")
    few = [keys[0], keys[700], keys[-1], keys[499], keys[500]]
    _while_writing(
        subject, _move(few), lambda backend: equal(_sum(backend.get_many(keys)), 1500, "sum of 1,500 numbers")
    )


def check_scan_is_a_snapshot(subject: Subject) -> None:
    """Check that a page, with its guards, shows the records of one instant, while others insert and delete."""
    guard, last = subject.key(b"guard"), subject.key(b"zz")
    subject.fill({b"guard": b"0", b"zz": b"0", b"in/0": b"0"})

    def write(turn: int, backend: Backend) -> None:
        """Replace the record in the range, and stamp all others with its name."""
        stamp = b"%d" % (turn + 1)
        outcome = backend.commit(
            Commit(
                puts={guard: stamp, last: stamp},
                deletes=[subject.key(b"in/%d" % turn)],
                inserts={subject.key(b"in/" + stamp): stamp},
            )
        )
        expect(isinstance(outcome, Committed), f"the writer's commit takes effect: {outcome}")

    def read(backend: Backend) -> None:
        page = backend.scan(subject.key(b"in/"), subject.end, 10, [guard, subject.key(b"absent")])
        values = [record.value for _key, record in page.records]
        versions = {record.version for _key, record in page.records} | {one.version for one in page.guards.values()}
        if len(values) != 2 or (len(versions) != 1 and values[0] != b"0"):
            raise ConformanceError(f"a page shows one record and the two stamps of its commit: {page}")
        equal(set(values), {page.guards[guard].value}, "stamps on a page and of its guard")

    _while_writing(subject, write, read)


def check_reads_that_conflict_are_stale(subject: Subject) -> None:
    """Check that a commit that only reads never confirms what was not true at one instant."""
    keys = [subject.key(b"x"), subject.key(b"y")]
    subject.fill({}, {b"x": 100, b"y": 100})

    def read(backend: Backend) -> None:
        """Read one record after the other."""
        seen = {key: backend.get_many([key])[key] for key in keys}
        outcome = backend.commit(Commit(reads={key: record.version for key, record in seen.items()}))
        if isinstance(outcome, Committed):
            equal(_sum(seen), 200, "x + y, confirmed by a commit")

    _while_writing(subject, _move(keys), read)
