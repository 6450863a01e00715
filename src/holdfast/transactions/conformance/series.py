"""Check the progress of series of commits, which makes each of them take effect at most once."""

from __future__ import annotations

from holdfast.conformance import equal
from holdfast.transactions.base import AlreadyDone, Commit, Committed, Outcome, Progress, Record, TransactionBackend
from holdfast.transactions.conformance.subject import Subject


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


def check_progress_race(subject: Subject) -> None:
    """Check that of several processes that repeat one series, each step takes effect in one."""

    def run(_racer: int, backend: TransactionBackend) -> int:
        return sum(isinstance(backend.commit(_step(subject, step)), Committed) for step in range(1, subject.rounds + 1))

    won = subject.race(run)
    record = subject.record(b"n")
    equal(record is not None and record.number, sum(won), "effects, and commits that were told of theirs")
    owner = subject.record(b"owner")
    equal(owner is not None and owner.number, subject.rounds, "progress")


def check_progress_twins(subject: Subject) -> None:
    """Check that of two processes that commit the same step at the same time, exactly one does."""
    for round_ in range(1, subject.rounds + 1):
        commit = Commit(progress=Progress(subject.key(b"owner"), round_), inserts={subject.key(b"%d" % round_): b""})

        def run(_racer: int, backend: TransactionBackend, commit: Commit = commit) -> Outcome:
            return backend.commit(commit)

        outcomes = subject.race(run, threads=2)
        equal(sum(isinstance(one, Committed) for one in outcomes), 1, f"twins that committed step {round_}")
        equal(outcomes.count(AlreadyDone(round_)), 1, f"twins that were told that step {round_} is done")
