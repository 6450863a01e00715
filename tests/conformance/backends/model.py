"""Check commits against a model that says in the plainest form what a commit does to a dictionary.

Every pair of kinds of commits on one key, one after the other, in one group, and at the same time; random commits and
random groups. The model is deliberately not the code of any backend, so that a mistake there does not become the
expectation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.conformance import ConformanceError, equal, expect
from holdfast.runtime import SeededRandom
from holdfast.transactions.base import (
    ABSENT,
    Backend,
    Bound,
    Commit,
    Committed,
    Conflict,
    Outcome,
    RangeCount,
    Record,
    takes_adds,
)
from holdfast.transactions.validation import count_independent
from tests.conformance.backends.subject import Meeting, Subject, is_conflict


class Model:
    """Records, and what commits do to them."""

    def __init__(self) -> None:
        self.records: dict[bytes, Record] = {}

    def commit(self, commit: Commit, version: int) -> Outcome:
        """Apply a commit, if it is valid; a conflict names all keys that are not as expected."""
        wrong = {key for key, seen in commit.reads.items() if self._version(key) != seen}
        wrong |= {key for key in commit.inserts if key in self.records}
        wrong |= {
            one.guard for one in commit.ranges if sum(one.start <= key < one.end for key in self.records) != one.count
        }
        wrong |= {
            bound.key for bound in commit.bounds if self._number(bound.key) + commit.adds.get(bound.key, 0) > bound.most
        }
        wrong |= {key for key, delta in commit.adds.items() if delta and not takes_adds(self._value(key))}
        if wrong:
            return Conflict(tuple(sorted(wrong)))
        for key, value in (*commit.puts.items(), *commit.inserts.items()):
            self.records[key] = Record(version, value)
        for key in commit.deletes:
            self.records.pop(key, None)
        for key, delta in commit.adds.items():
            self.records[key] = Record(version, self._value(key), self._number(key) + delta)
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


# --- pairs -----------------------------------------------------------------------------------------------------------

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
        if count_independent(pair.commits) == 2:
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

    def run(number: int, backend: Backend) -> list[Outcome]:
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


# --- random commits --------------------------------------------------------------------------------------------------

_COMMITS = 400
_LARGEST_GROUP = 8


def check_random_commits(subject: Subject) -> None:
    """Check random commits, some made from old versions and with wrong counts, through both handles in turn."""
    model, draw = Model(), _Draw(subject, seed=1, keys=5)
    for number in range(_COMMITS):
        commit = draw.commit(model)
        handle = subject.other if number % 2 else subject.backend
        agree(model, commit, handle.commit(commit), f"random commit {number}, {commit}")
        if number % 20 == 0:
            agree_on_records(model, subject, f"after random commit {number}")
    agree_on_records(model, subject, "after all random commits")


def check_random_groups(subject: Subject) -> None:
    """Check random groups of independent commits: each outcome is as if the commits ran one after the other."""
    model, draw = Model(), _Draw(subject, seed=2, keys=16)
    for number in range(_COMMITS // 4):
        commits = [draw.commit(model, ranges=False) for _ in range(_LARGEST_GROUP)]
        group = commits[: count_independent(commits)]
        for commit, outcome in zip(group, subject.backend.commit_group(group), strict=True):
            agree(model, commit, outcome, f"random group {number} of {len(group)}, {commit}")
        agree_on_records(model, subject, f"after random group {number}")


class _Draw:
    """Draws commits that are made from the present state, or from an earlier one."""

    def __init__(self, subject: Subject, seed: int, keys: int) -> None:
        self._chance = SeededRandom(seed)
        self._keys = [subject.key(b"%02d" % number) for number in range(keys)]
        self._subject = subject
        self._old: dict[bytes, int] = {}

    def commit(self, model: Model, *, ranges: bool = True) -> Commit:
        """Draw a commit.

        Args:
            ranges: whether it may have conditions on ranges: not in a group, whose other commits read no guard.
        """
        chance = self._chance
        now = {key: model.records[key].version if key in model.records else ABSENT for key in self._keys}
        if chance.happens(0.2):
            self._old = dict(now)
        versions = self._old if self._old and chance.happens(0.2) else now
        reads = {key: versions[key] for key in self._keys if chance.happens(0.2)}
        puts: dict[bytes, bytes] = {}
        inserts: dict[bytes, bytes] = {}
        deletes: list[bytes] = []
        adds: dict[bytes, int] = {}
        for key in chance.shuffled(self._keys)[: chance.pick((0, 1, 1, 2, 3))]:
            kind = chance.pick(("put", "insert", "delete", "add", "add"))
            if kind == "put":
                puts[key] = chance.pick((b"", b"i", b"i1", b"i2", b"text", b"\xff"))
            elif kind == "delete":
                deletes.append(key)
            elif kind == "add":
                adds[key] = chance.pick((-2, -1, 0, 1, 2, 3))
            elif reads.get(key, ABSENT) == ABSENT:
                inserts[key] = chance.pick((b"inserted", b"another"))
        return Commit(
            reads=reads,
            puts=puts,
            inserts=inserts,
            deletes=deletes,
            adds=adds,
            ranges=self._ranges(model) if ranges and chance.happens(0.3) else (),
            bounds=[Bound(key, chance.pick((0, 2, 4))) for key in adds if chance.happens(0.3)],
        )

    def _ranges(self, model: Model) -> Sequence[RangeCount]:
        chance = self._chance
        start, end = sorted((chance.pick(self._keys), chance.pick([*self._keys, self._subject.end])))
        count = sum(start <= key < end for key in model.records) + chance.pick((0, 0, 0, 1, -1))
        guard = chance.pick([self._subject.key(b"guard"), *self._keys])
        return [RangeCount(guard, start, end, max(count, 0))]
