"""Say in the plainest form what a commit does: to a dictionary, one commit after the other, without locks or steps.

This is deliberately not the code of any database, so that a mistake in that code does not become the expectation.
"""

from __future__ import annotations

from holdfast.conformance import equal
from holdfast.transactions.base import (
    ABSENT,
    AlreadyDone,
    Commit,
    Committed,
    Conflict,
    Outcome,
    Record,
)
from holdfast.transactions.conformance.subject import Subject, is_conflict


class Model:
    """Records, and what commits do to them."""

    def __init__(self) -> None:
        self.records: dict[bytes, Record] = {}

    def commit(self, commit: Commit, version: int) -> Outcome:
        """Apply a commit, if it is valid; a conflict names all keys that are not as expected."""
        done = commit.progress
        if done is not None and self._number(done.owner) >= done.number:
            return AlreadyDone(self._number(done.owner))
        wrong = {key for key, seen in commit.reads.items() if self._version(key) != seen}
        wrong |= {key for key in commit.inserts if key in self.records}
        wrong |= {
            one.guard for one in commit.ranges if sum(one.start <= key < one.end for key in self.records) != one.count
        }
        wrong |= {
            bound.key for bound in commit.bounds if self._number(bound.key) + commit.adds.get(bound.key, 0) > bound.most
        }
        wrong |= {key for key, delta in commit.adds.items() if delta and self._value(key)[:1] not in (b"", b"i")}
        if wrong:
            return Conflict(tuple(sorted(wrong)))
        for key, value in (*commit.puts.items(), *commit.inserts.items()):
            self.records[key] = Record(version, value)
        for key in commit.deletes:
            self.records.pop(key, None)
        for key, delta in commit.adds.items():
            self.records[key] = Record(version, self._value(key), self._number(key) + delta)
        if done is not None:
            self.records[done.owner] = Record(version, self._value(done.owner), done.number)
        return Committed(version)

    def _version(self, key: bytes) -> int:
        return self.records[key].version if key in self.records else ABSENT

    def _number(self, key: bytes) -> int:
        return self.records[key].number if key in self.records else 0

    def _value(self, key: bytes) -> bytes:
        return self.records[key].value if key in self.records else b""


def agree(model: Model, commit: Commit, outcome: Outcome, what: str) -> None:
    """Apply a commit to the model, and check that the database's outcome agrees with the model's."""
    expected = model.commit(commit, outcome.version if isinstance(outcome, Committed) else ABSENT)
    if isinstance(expected, Conflict):
        is_conflict(outcome, set(expected.keys), what)
    else:
        equal(outcome, expected, what)


def agree_on_records(model: Model, subject: Subject, what: str) -> None:
    """Check that the database has the records of the model, and no others."""
    expected = {key[len(subject.prefix) :]: record for key, record in model.records.items()}
    equal(subject.records(), expected, f"records {what}")
