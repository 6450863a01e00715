"""Lock the records of a group in one packet of statements, and write what the group's valid transactions write.

The validation phase of paper 004 (3.4) and its update phase (3.5), in MySQL's terms. Keys are locked in their global
order, so two groups do not wait for each other in a circle. A record that is only read is locked shared, so that those
who read it do not wait for each other. An absent record cannot be locked under READ COMMITTED: it is *claimed*, which
means that it is inserted, with its final value or as a placeholder of version 0. Nobody sees it before the commit, and
what is not wanted is deleted before that.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby

from holdfast.transactions.base import ABSENT, Commit, Record
from holdfast.transactions.mysql.connection import Link, Reply, chunked, literal
from holdfast.transactions.sql_files import load_queries
from holdfast.transactions.steps import ANY, Judgment, Kind, Step, apply_steps, judge, seen_count, version_of

_SQL = load_queries(__package__)


class _Lock(enum.IntEnum):
    """How a key is locked, the strongest last."""

    SHARED = 1
    EXCLUSIVE = 2
    CLAIM = 3


@dataclass
class Group:
    """A group of transactions on its way through one database transaction.

    Attributes:
        base: the version that the first transaction would give to its records.
    """

    commits: Sequence[Commit]
    steps: Sequence[Step]
    base: int
    _locks: dict[bytes, _Lock] = field(default_factory=dict, init=False)
    _inserts: dict[bytes, Step] = field(default_factory=dict, init=False)  # claimed keys with their final values
    _seen: dict[bytes, Record] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for step in self.steps:
            self._locks[step.key] = max(_lock_of(step), self._locks.get(step.key, _Lock.SHARED))
            if step.kind is Kind.INSERT or (step.kind is Kind.PUT and step.expected == ABSENT):
                self._inserts[step.key] = step

    def lock(self, link: Link, first: Sequence[str] = ()) -> Judgment:
        """Lock the records of all steps, read their versions and numbers, and judge.

        Args:
            first: statements to run before, in the same packet.
        """
        wanted = [(call, index) for call, commit in enumerate(self.commits) for index, _ in enumerate(commit.ranges)]
        no_integers = list(self._no_integer_statements())
        replies = link.run(chain(first, self.lock_statements(), no_integers, self._count_statements()))
        counted = len(replies) - len(wanted)
        locked = counted - len(no_integers)
        for reply in replies[len(first) : locked]:
            for key, version, number in reply.rows:
                self._seen[key] = Record(version, b"", number)
        for reply in replies[locked:counted]:
            for key, head in reply.rows:
                if (record := self._seen.get(key)) is not None:  # else others have created it since: no step expects it
                    self._seen[key] = replace(record, value=head)
        found = [int(reply.rows[0][0]) for reply in replies[counted:]]
        return judge(self.commits, self.steps, self._seen, dict(zip(wanted, found, strict=True)), self.base)

    def lock_statements(self) -> Iterator[str]:
        """Return the statements that lock all keys in order, and read the records."""
        claimed: list[bytes] = []
        for lock, keys in groupby(self._locks, key=self._locks.__getitem__):  # the steps are ordered by key
            if lock is _Lock.CLAIM:
                run = list(keys)
                claimed += run
                for rows in chunked(map(self._claimed_row, run)):
                    yield _SQL["claim"].format(rows=rows)
            else:
                query = _SQL["lock_shared" if lock is _Lock.SHARED else "lock_exclusive"]
                for texts in chunked(map(literal, keys)):
                    yield query.format(keys=texts)
        for texts in chunked(map(literal, claimed)):
            yield _SQL["claimed"].format(keys=texts, **self._own_versions())

    def _claimed_row(self, key: bytes) -> str:
        step = self._inserts.get(key)
        if step is None:
            return f"({literal(key)},0,'',0)"
        return f"({literal(key)},{version_of(self.base, step.call)},{literal(step.value)},0)"

    def _no_integer_statements(self) -> Iterator[str]:
        added = dict.fromkeys(step.key for step in self.steps if step.kind is Kind.ADD and step.delta)
        for texts in chunked(map(literal, added)):
            yield _SQL["no_integers"].format(keys=texts)

    def _count_statements(self) -> Iterator[str]:
        for commit in self.commits:
            for one in commit.ranges:
                yield _SQL["count"].format(
                    start=literal(one.start), end=literal(one.end), limit=seen_count(one), **self._own_versions()
                )

    def _own_versions(self) -> Mapping[str, int]:
        return {"first": self.base, "last": version_of(self.base, len(self.commits) - 1)}

    def write_statements(self, judgment: Judgment) -> Iterator[str]:
        """Yield the statements that write what valid transactions write, and delete what the others claimed."""
        changes = apply_steps(self._seen, judgment.valid, self.base)
        counters = {step.key for step in judgment.valid if step.kind in (Kind.ADD, Kind.PROGRESS)}
        written = [(key, record) for key, record in changes.items() if record is not None]
        puts = (
            f"({literal(key)},{record.version},{literal(record.value)},0)"
            for key, record in written
            if key not in counters and key not in self._inserts
        )
        numbers = (
            f"({literal(key)},{record.version},'',{record.number})" for key, record in written if key in counters
        )
        yield from (_SQL["put"].format(rows=rows) for rows in chunked(puts))
        yield from (_SQL["set_numbers"].format(rows=rows) for rows in chunked(numbers))
        for key, lock in self._locks.items():
            is_deleted = key in changes and key in self._seen
            is_unused = lock is _Lock.CLAIM and key not in self._seen
            if (is_deleted or is_unused) and changes.get(key) is None:
                yield _SQL["delete"].format(key=literal(key))


def find_held(link: Link, keys: Collection[bytes]) -> set[bytes]:
    """Return the keys of the existing records that others have locked."""
    texts = list(chunked(map(literal, sorted(keys))))
    statements = [_SQL[name].format(keys=one) for name in ("existing_keys", "free_keys") for one in texts]
    replies = link.run(["START TRANSACTION", *statements, "ROLLBACK"])[1:-1]
    existing, free = ({key for reply in half for (key,) in reply.rows} for half in _halves(replies))
    return existing - free


def _halves(replies: Sequence[Reply]) -> tuple[Sequence[Reply], Sequence[Reply]]:
    return replies[: len(replies) // 2], replies[len(replies) // 2 :]


def _lock_of(step: Step) -> _Lock:
    """Return the lock for a step. A record that the step expects, but that is gone, needs none: the step has failed."""
    if step.expected in (ABSENT, ANY):
        return _Lock.CLAIM  # even to delete it: nobody may create the record before this transaction takes effect
    return _Lock.SHARED if step.kind is Kind.READ else _Lock.EXCLUSIVE
