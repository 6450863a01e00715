"""Check concurrent commits: the anomalies that locks and validation must prevent, each as a race.

A database may keep each promise for one caller and still break it for eight. Commits that neither read nor insert have
no reason to conflict, so a conflict of such a commit means that the database found a deadlock.
"""

from __future__ import annotations

from holdfast.conformance import equal, expect
from holdfast.runtime import SeededRandom
from holdfast.transactions.base import ABSENT, Bound, Commit, Committed, RangeCount, TransactionBackend
from holdfast.transactions.conformance.subject import Meeting, Subject, version_of_committed

_RACERS = 8


def check_increment_race(subject: Subject) -> None:
    """Check that no increment is lost that reads a record, and writes it if nobody has written it since."""
    key = subject.key(b"n")
    subject.fill({b"n": b"0"})

    def run(_racer: int, backend: TransactionBackend) -> None:
        def build() -> Commit:
            record = backend.get_many([key])[key]
            return Commit(reads={key: record.version}, puts={key: b"%d" % (int(record.value) + 1)})

        for _ in range(subject.rounds):
            subject.repeat(backend, build)

    subject.race(run)
    subject.holds({b"n": b"%d" % (subject.rounds * _RACERS)}, "after all increments")


def check_add_race(subject: Subject) -> None:
    """Check that adds never conflict, and that none is lost, even if they create their counter."""
    keys = [subject.key(b"%d" % number) for number in range(3)]

    def run(racer: int, backend: TransactionBackend) -> None:
        for turn in range(subject.rounds):
            order = keys[turn % 3 :] + keys[: turn % 3]
            version_of_committed(backend.commit(Commit(adds=dict.fromkeys(order, racer + 1))), "add")

    subject.race(run)
    total = subject.rounds * sum(range(1, _RACERS + 1))
    subject.holds({b"%d" % number: (b"", total) for number in range(3)}, "after all adds")


def check_bound_race(subject: Subject) -> None:
    """Check that a bound is never exceeded, and always reached."""
    key, most = subject.key(b"n"), _RACERS * subject.rounds // 2

    def run(_racer: int, backend: TransactionBackend) -> int:
        commit = Commit(adds={key: 1}, bounds=[Bound(key, most)])
        return sum(isinstance(backend.commit(commit), Committed) for _ in range(subject.rounds))

    equal(sum(subject.race(run)), most, "adds that took effect")
    subject.holds({b"n": (b"", most)}, "after all adds")


def check_insert_race(subject: Subject) -> None:
    """Check that of several inserts of one record exactly one takes effect, also right after the record was deleted."""
    for round_ in range(subject.rounds):
        key = subject.key(b"%d" % (round_ % 2))
        subject.committed(Commit(deletes=[key]), "delete")
        reads = {key: ABSENT} if round_ % 3 == 0 else {}

        def run(
            racer: int, backend: TransactionBackend, key: bytes = key, reads: dict[bytes, int] = reads
        ) -> bytes | None:
            commit = Commit(reads=reads, inserts={key: b"%d" % racer, subject.key(b"mine/%d" % racer): b""})
            return b"%d" % racer if isinstance(backend.commit(commit), Committed) else None

        winners = [one for one in subject.race(run) if one is not None]
        equal(len(winners), 1, "number of inserts that took effect")
        record = subject.other.get_many([key])[key]
        equal(record.value, winners[0], "value of the winner")
        subject.committed(Commit(deletes=[subject.key(b"mine/" + winners[0])]), "delete")
        equal(subject.records().keys() - {b"0", b"1"}, set(), "other inserts of those that did not take effect")


def check_delete_race(subject: Subject) -> None:
    """Check that a record stays deleted if it was created by a commit that came before its deletion, as its reads say.

    A database that takes no lock on an absent record in order to delete it lets the creation come in between.
    """
    filling = [b"%03d" % number for number in range(100)]  # takes time between the deletion and the write of z
    for round_ in range(subject.rounds):
        place = b"%d/" % round_
        key, last = subject.key(place + b"a"), subject.key(place + b"z")
        puts = {subject.key(place + b"m" + each): b"" for each in filling}
        meeting = Meeting(2)

        def run(
            racer: int,
            backend: TransactionBackend,
            commits: tuple[Commit, Commit] = (
                Commit(deletes=[key], puts={**puts, last: b""}),
                Commit(reads={last: ABSENT}, inserts={key: b""}),
            ),
            meeting: Meeting = meeting,
        ) -> bool:
            with meeting.member():
                meeting.meet()
                return isinstance(backend.commit(commits[racer]), Committed)

        was_deleted, _was_created = subject.race(run, threads=2)
        expect(was_deleted, "a commit that reads nothing takes effect")
        equal(subject.record(place + b"a"), None, "record whose creator did not see what the deletion has written")


def _one_of_two(subject: Subject, commits: tuple[Commit, Commit], what: str) -> None:
    """Check that of two commits at the same time exactly one takes effect."""
    meeting = Meeting(2)

    def run(racer: int, backend: TransactionBackend) -> bool:
        with meeting.member():
            meeting.meet()
            return isinstance(backend.commit(commits[racer]), Committed)

    equal(sum(subject.race(run, threads=2)), 1, f"commits that took effect, {what}")


def check_skew_race(subject: Subject) -> None:
    """Check that two commits that read both records and write different ones never both take effect."""
    x, y = subject.key(b"x"), subject.key(b"y")
    for round_ in range(subject.rounds):
        subject.fill({b"x": b"on", b"y": b"on"})
        reads = subject.reads(b"x", b"y")
        commits = (Commit(reads=reads, puts={x: b"off"}), Commit(reads=reads, puts={y: b"off"}))
        _one_of_two(subject, commits if round_ % 2 else commits[::-1], "of which each reads what the other one writes")


def check_skew_through_absence_race(subject: Subject) -> None:
    """Check that two commits that create what the other one read as absent never both take effect."""
    x, y = subject.key(b"x"), subject.key(b"y")
    for round_ in range(subject.rounds):
        if round_ % 2:
            x, y = subject.key(b"%d x" % round_), subject.key(b"%d y" % round_)  # a database may know old keys
        subject.committed(Commit(deletes=[x, y]), "deletes")
        commits = (Commit(reads={y: ABSENT}, inserts={x: b""}), Commit(reads={x: ABSENT}, puts={y: b""}))
        _one_of_two(subject, commits, "of which each creates what the other one read as absent")


def check_phantom_race(subject: Subject) -> None:
    """Check that a range does not change under a commit that counted it: with a guard that exists, or does not."""
    for round_ in range(subject.rounds):
        place = b"%d/" % round_
        guard = subject.key(place + b"guard")
        subject.fill({place + b"guard": b""} if round_ % 2 else {})
        reads = subject.reads(place + b"guard")
        one = RangeCount(guard, subject.key(place + b"in/"), subject.key(place + b"in0"), 0)
        # Like the removal of an empty directory and the creation of a file in it.
        removal = Commit(ranges=[one], reads=reads, puts={subject.key(place + b"removed"): b""})
        creation = Commit(reads=reads, inserts={subject.key(place + b"in/1"): b""})
        meeting = Meeting(2)

        def run(
            racer: int,
            backend: TransactionBackend,
            commits: tuple[Commit, Commit] = (removal, creation),
            meeting: Meeting = meeting,
        ) -> bool:
            with meeting.member():
                meeting.meet()
                return isinstance(backend.commit(commits[racer]), Committed)

        was_removed, was_created = subject.race(run, threads=2)
        expect(was_created, "an insert that reads the guard takes effect: nobody writes what it reads")
        later = subject.backend.commit(removal)
        expect(not isinstance(later, Committed), "a range that holds a record is not counted as empty")
        if was_removed:
            continue  # the removal came first
    _claims(subject)


def _claims(subject: Subject) -> None:
    """Check that of several commits that count an empty range and insert into it, exactly one takes effect."""
    for round_ in range(subject.rounds):
        place = b"claim %d/" % round_
        guard = subject.key(place + b"guard")
        one = RangeCount(guard, subject.key(place + b"in/"), subject.key(place + b"in0"), 0)

        def run(racer: int, backend: TransactionBackend, one: RangeCount = one, place: bytes = place) -> bool:
            commit = Commit(ranges=[one], inserts={subject.key(place + b"in/%d" % racer): b""})
            return isinstance(backend.commit(commit), Committed)

        equal(sum(subject.race(run)), 1, "commits that found the range empty and inserted into it")


def check_transfer_race(subject: Subject) -> None:
    """Check that transfers between random records, which read and write both, lose and create nothing."""
    keys = [subject.key(b"%d" % number) for number in range(5)]
    subject.fill({b"%d" % number: b"100" for number in range(5)})

    def run(racer: int, backend: TransactionBackend) -> None:
        chance = SeededRandom(racer)
        for _ in range(subject.rounds):
            source, target = chance.shuffled(keys)[:2]

            def build(source: bytes = source, target: bytes = target) -> Commit:
                seen = backend.get_many([source, target])
                return Commit(
                    reads={key: record.version for key, record in seen.items()},
                    puts={
                        target: b"%d" % (int(seen[target].value) + 1),
                        source: b"%d" % (int(seen[source].value) - 1),
                    },
                )

            subject.repeat(backend, build)

    subject.race(run)
    equal(sum(int(record.value) for record in subject.records().values()), 500, "sum of all records")


def check_lock_order(subject: Subject) -> None:
    """Check that commits of many records in any order never wait for each other in a circle.

    All of them write blindly, or read what nobody writes, so none of them may conflict.
    """
    keys = [subject.key(b"%02d" % number) for number in range(12)]
    fixed = [subject.key(b"fixed %d" % number) for number in range(3)]
    subject.fill({b"fixed 0": b"", b"fixed 1": b""})
    reads = subject.reads(b"fixed 0", b"fixed 1", b"fixed 2")
    empty = RangeCount(fixed[2], subject.key(b"x"), subject.key(b"y"), 0)

    def run(racer: int, backend: TransactionBackend) -> int:
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

    def run(racer: int, backend: TransactionBackend) -> int:
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
    equal(sum(record.number for record in records.values()), 3 * subject.rounds * _RACERS, "sum of all adds")
    equal(sum(b"/" in key for key in records), total, "records of the commits that took effect")
    equal(sum(key.startswith(b"first") for key in records), subject.rounds, "inserts of which one took effect each")
