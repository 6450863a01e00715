"""Check every pair of kinds of commits on one key: one after the other, in one group, and at the same time.

What must come out is computed with `model`, so each pair is checked in full: both outcomes, and all records afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.conformance import ConformanceError, expect
from holdfast.transactions.base import (
    ABSENT,
    Bound,
    Commit,
    Committed,
    Conflict,
    Outcome,
    Progress,
    RangeCount,
    Record,
    TransactionBackend,
    independent,
)
from holdfast.transactions.conformance.model import Model, agree, agree_on_records
from holdfast.transactions.conformance.subject import Meeting, Subject

_STARTS: tuple[tuple[bytes, int] | None, ...] = (None, (b"i value", 3), (b"text", 0))
"""What exists before a pair: nothing, or a record with this value and number; a text, to which nothing is added."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two commits on one key, made from the same state."""

    names: tuple[str, str]
    key: bytes
    start: Record | None
    commits: tuple[Commit, Commit]

    @property
    def what(self) -> str:
        state = "an absent record" if self.start is None else "a record"
        return f"{self.names[0]} and {self.names[1]} on {state}"

    def model(self) -> Model:
        """Return the state before the pair."""
        found = Model()
        if self.start is not None:
            found.records[self.key] = self.start
        return found


def _commits(key: bytes, start: Record | None, who: bytes) -> dict[str, Commit]:
    """Return a commit of each kind that concerns the key, or the range below it that it guards."""
    reads = {key: ABSENT if start is None else start.version}
    most = 1 if start is None else start.number + 1
    below = key + b"/" + who
    empty = [RangeCount(key, key + b"/", key + b"0", 0)]
    blind = {
        "a put": Commit(puts={key: who}),
        "an insert": Commit(inserts={key: who}),
        "a delete": Commit(deletes=[key]),
        "an add": Commit(adds={key: 1}),
        "a bounded add": Commit(adds={key: 1}, bounds=[Bound(key, most)]),
        "a guarded count": Commit(ranges=empty),
        "a guarded count and an insert": Commit(ranges=empty, inserts={below: who}),
    }
    reading = {f"a read and {name}": replace(commit, reads=reads) for name, commit in blind.items()}
    if start is not None:
        del reading["a read and an insert"]
    return {
        **blind,
        **reading,
        "a read": Commit(reads=reads),
        "a read and an insert below": Commit(reads=reads, inserts={below: who}),
        "progress to 4": Commit(progress=Progress(key, 4), puts={below: who}),
        "progress to 3": Commit(progress=Progress(key, 3), puts={below: who}),
    }


def _pairs(subject: Subject) -> Iterator[_Pair]:
    """Write what is there before, and yield all pairs, each with its own key."""
    keys: dict[bytes, tuple[bytes, int]] = {}
    planned: list[tuple[str, str, bytes]] = []
    for start in _STARTS:
        names = list(_commits(b"", None if start is None else Record(1, *start), b""))
        for one in names:
            for other in names:
                key = subject.key(b"%04d" % len(planned))
                planned.append((one, other, key))
                if start is not None:
                    keys[key] = start
    subject.committed(Commit(puts={key: value for key, (value, _number) in keys.items()}), "puts")
    subject.committed(Commit(adds={key: number for key, (_value, number) in keys.items() if number}), "adds")
    found = subject.backend.get_many(keys)
    for one, other, key in planned:
        record = found.get(key)
        commits = (_commits(key, record, b"one")[one], _commits(key, record, b"other")[other])
        yield _Pair((one, other), key, record, commits)


def check_pairs_in_order(subject: Subject) -> None:
    """Check every pair in which the second commit was made before the first one took effect, but comes after it."""
    all_together = Model()
    for pair in _pairs(subject):
        model = pair.model()
        agree(model, pair.commits[0], subject.backend.commit(pair.commits[0]), f"first of {pair.what}")
        agree(model, pair.commits[1], subject.other.commit(pair.commits[1]), f"second of {pair.what}")
        all_together.records.update(model.records)
    agree_on_records(all_together, subject, "after all pairs")


def check_pairs_in_groups(subject: Subject) -> None:
    """Check every pair that may form a group."""
    all_together = Model()
    groups = 0
    for pair in _pairs(subject):
        model = pair.model()
        if independent(pair.commits) == 2:
            groups += 1
            outcomes = subject.backend.commit_group(pair.commits)
            for commit, outcome in zip(pair.commits, outcomes, strict=True):
                agree(model, commit, outcome, f"group of {pair.what}")
        all_together.records.update(model.records)
    expect(groups > 8, "some pairs form a group")
    agree_on_records(all_together, subject, "after all groups")


def check_pairs_at_once(subject: Subject) -> None:
    """Check that the commits of every pair, made at the same time, take effect one after the other, in some order."""
    pairs = list(_pairs(subject))
    meeting = Meeting(2)

    def run(number: int, backend: TransactionBackend) -> list[Outcome]:
        outcomes = []
        with meeting.member():
            for pair in pairs:
                meeting.meet()
                outcomes.append(backend.commit(pair.commits[number]))
        return outcomes

    ones, others = subject.race(run, threads=2)
    everything = {subject.key(key): record for key, record in subject.records().items()}
    for pair, one, other in zip(pairs, ones, others, strict=True):
        found = {key: record for key, record in everything.items() if key.startswith(pair.key)}
        if not any(_explains(pair, (one, other), order, found) for order in ((0, 1), (1, 0))):
            raise ConformanceError(
                f"{pair.what} at the same time take effect in some order: found {one} and {other}, then {found}"
            )


def _explains(
    pair: _Pair, outcomes: tuple[Outcome, Outcome], order: tuple[int, int], found: dict[bytes, Record]
) -> bool:
    """Check whether the commits in this order have these outcomes, and leave these records."""
    model = pair.model()
    for number in order:
        outcome = outcomes[number]
        expected = model.commit(pair.commits[number], outcome.version if isinstance(outcome, Committed) else ABSENT)
        if isinstance(expected, Conflict):
            if not isinstance(outcome, Conflict):
                return False
        elif outcome != expected:
            return False
    return model.records == found
