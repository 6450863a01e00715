"""Validate groups of transactions step by step, and apply them: the reference for every backend.

There is one step per key and transaction, in the one global order in which all backends lock. Two commits that lock in
the same order never wait for each other in a circle (paper 004, 3.5: total order update). SQLite, MySQL and the memory
backend validate and apply with the functions of this module; the function in PostgreSQL does the same inside the
database, and the conformance suite holds both to it.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from holdfast.errors import InvalidRequestError
from holdfast.runtime import Ids
from holdfast.runtime.process import ForkAwareObject
from holdfast.transactions.base import (
    ABSENT,
    MAX_KEY_BYTES,
    MAX_NUMBER,
    MAX_VALUE_BYTES,
    Commit,
    Committed,
    Conflict,
    Outcome,
    Record,
    takes_adds,
)


class StepKind(enum.IntEnum):
    """What a step does with its record. The numbers are part of the interface of the functions in the databases."""

    READ = 1
    """Lock shared: the version must still be the expected one."""
    GUARD = 2
    """Lock exclusively: no other transaction may insert into the range that the record guards."""
    INSERT = 3
    """Create the record: there must be none."""
    PUT = 4
    DELETE = 5
    ADD = 6


ANY = -1
"""The expected version of a step that does not validate one."""


class Step(NamedTuple):
    """One step of a transaction: what it expects of one record, and does with it.

    Attributes:
        call: index of the transaction in its group.
        expected: the version that the record must have, or `ANY`.
        value: the bytes of an insert or a put.
        delta: what an add adds.
    """

    key: bytes
    call: int
    kind: StepKind
    expected: int
    value: bytes = b""
    delta: int = 0


def steps_of_group(commits: Sequence[Commit]) -> list[Step]:
    """Return the steps of all transactions of a group, ordered by key and then by transaction.

    Raises:
        InvalidRequestError: a key or a value is too long, a number too large, one transaction writes a key twice, it
            inserts a record that it has seen, or it bounds a record that it does not add to.
    """
    steps: list[Step] = []
    for call, commit in enumerate(commits):
        check_commit(commit)
        steps.extend(_steps_of_commit(call, commit))
    steps.sort(key=_ORDER)
    return steps


_ORDER = attrgetter("key", "call")

_VERSIONS = 2**63
_SHARED_ADD = 2**50
"""Larger adds have their counter for themselves, so that a group's sum stays within what a database can hold."""


def check_commit(commit: Commit) -> None:
    """Check that a transaction is well-formed, so that `steps_of_group` does not refuse a group with it.

    Raises:
        InvalidRequestError: see `steps_of_group`.
    """
    reads = commit.reads
    for key in commit.inserts:
        if reads.get(key, ABSENT) != ABSENT:
            raise InvalidRequestError("a record that was read cannot be inserted: put it instead", key=key)
    writes = [*commit.inserts, *commit.puts, *commit.deletes, *commit.adds]
    if len(set(writes)) != len(writes):
        raise InvalidRequestError("a transaction writes one key twice: merge the two writes")
    keys = keys_of_commit(commit)
    for bound in commit.bounds:
        if bound.key not in commit.adds:
            raise InvalidRequestError("a bound needs an add to the same key in the same transaction", key=bound.key)
    if keys and not (all(keys) and max(map(len, keys)) <= MAX_KEY_BYTES):
        key = next(key for key in keys if not 0 < len(key) <= MAX_KEY_BYTES)
        raise InvalidRequestError(f"a key has 1 to {MAX_KEY_BYTES} bytes: change it", key=key, bytes=len(key))
    for values in (commit.inserts, commit.puts):
        for key, value in values.items():
            if len(value) > MAX_VALUE_BYTES:
                raise InvalidRequestError(
                    f"a value is limited to {MAX_VALUE_BYTES} bytes: split it", key=key, bytes=len(value)
                )
    _check_numbers(commit)


def _check_numbers(commit: Commit) -> None:
    """Refuse numbers that no database can hold; one of them would make a whole group fail."""
    for number in (*commit.adds.values(), *(bound.most for bound in commit.bounds)):
        if not -MAX_NUMBER <= number <= MAX_NUMBER:
            raise InvalidRequestError(f"a number is limited to {MAX_NUMBER}: use a smaller one", number=number)
    for one in commit.ranges:
        if not 0 <= one.count <= MAX_NUMBER:
            raise InvalidRequestError("no range has such a number of records: count them", count=one.count)
    versions = commit.reads.values()
    if versions and not ABSENT <= min(versions) <= max(versions) < _VERSIONS:
        key, version = next(one for one in commit.reads.items() if not ABSENT <= one[1] < _VERSIONS)
        raise InvalidRequestError("no record has such a version: read it", key=key, version=version)


def _steps_of_commit(call: int, commit: Commit) -> Iterable[Step]:
    reads = commit.reads
    steps = {key: Step(key, call, StepKind.READ, version) for key, version in reads.items()}
    for one in commit.ranges:
        steps[one.guard] = Step(one.guard, call, StepKind.GUARD, reads.get(one.guard, ANY))
    for key, value in commit.inserts.items():
        steps[key] = Step(key, call, StepKind.INSERT, ABSENT, value)
    for key, value in commit.puts.items():
        steps[key] = Step(key, call, StepKind.PUT, reads.get(key, ANY), value)
    for key in commit.deletes:
        steps[key] = Step(key, call, StepKind.DELETE, reads.get(key, ANY))
    for key, delta in commit.adds.items():
        steps[key] = Step(key, call, StepKind.ADD, reads.get(key, ANY), delta=delta)
    return steps.values()


def keys_of_commit(commit: Commit) -> set[bytes]:
    """Return the keys that a transaction reads, writes or uses in conditions: those that it locks."""
    guards = (one.guard for one in commit.ranges)
    return {*commit.reads, *commit.inserts, *commit.puts, *commit.deletes, *commit.adds, *guards}


def count_independent(commits: Sequence[Commit]) -> int:
    """Return how many transactions, from the start of the list, may form a group; at least 1 unless the list is empty.

    In a group, no transaction touches what another one writes. Several may add to one counter that none of them
    reads, if the adds are small.
    """
    shared: set[bytes] = set()
    exclusive: set[bytes] = set()
    added: set[bytes] = set()
    for number, commit in enumerate(commits):
        adds = {key for key, delta in commit.adds.items() if abs(delta) <= _SHARED_ADD and key not in commit.reads}
        reads = commit.reads.keys() - commit.adds.keys()
        writes = keys_of_commit(commit) - adds - reads
        writes.update(commit.inserts, commit.puts, commit.deletes, (one.guard for one in commit.ranges))
        adds -= writes
        reads -= writes
        if number and not (
            writes.isdisjoint(shared | exclusive | added)
            and reads.isdisjoint(exclusive | added)
            and adds.isdisjoint(shared | exclusive)
        ):
            return number
        exclusive |= writes
        shared |= reads
        added |= adds
    return len(commits)


# --- validation ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The result of validating a group of transactions.

    Attributes:
        outcomes: the outcome of each transaction.
        valid: the steps of the transactions that take effect, in the order of their keys.
    """

    outcomes: Sequence[Outcome]
    valid: Sequence[Step]


def validate_group(
    commits: Sequence[Commit],
    steps: Sequence[Step],
    seen: Mapping[bytes, Record],
    counts: Mapping[tuple[int, int], int],
    base: int,
) -> ValidationResult:
    """Decide which transactions of a group take effect, given the records as they are now.

    Args:
        steps: as `steps_of_group` returned them.
        seen: the existing records of the keys of all steps, by key; all are locked. Only the values of
            records with an add matter, and of these only the first byte.
        counts: maps (transaction, index of its range) to the number of records in the range, before any write.
        base: the version that the first transaction would give to its records; the others give the next ones.
    """
    conflicts: dict[int, list[bytes]] = {}
    for step in steps:
        record = seen.get(step.key)
        is_stale = step.expected not in (ANY, ABSENT if record is None else record.version)
        if is_stale or (step.kind is StepKind.ADD and not _can_apply_add(step.delta, record)):
            conflicts.setdefault(step.call, []).append(step.key)
    for call, commit in enumerate(commits):
        for index, one in enumerate(commit.ranges):
            if counts[call, index] != one.count:
                conflicts.setdefault(call, []).append(one.guard)
    _validate_bounds(commits, steps, seen, conflicts)
    outcomes = [
        Conflict(tuple(sorted(set(conflicts[call])))) if call in conflicts else Committed(base + call)
        for call in range(len(commits))
    ]
    return ValidationResult(outcomes, [step for step in steps if step.call not in conflicts])


def _can_apply_add(delta: int, record: Record | None) -> bool:
    """Return whether an add leaves a number within its limits; those of a group together may not."""
    if record is None or delta == 0:
        return True
    return takes_adds(record.value) and abs(record.number + delta) <= max(MAX_NUMBER, abs(record.number))


def _validate_bounds(
    commits: Sequence[Commit],
    steps: Sequence[Step],
    seen: Mapping[bytes, Record],
    conflicts: dict[int, list[bytes]],
) -> None:
    """Check bounds in the order of the transactions, each after the adds of the valid ones before it."""
    for call, commit in enumerate(commits):
        for bound in commit.bounds:
            record = seen.get(bound.key)
            number = 0 if record is None else record.number
            number += sum(
                step.delta
                for step in steps
                if step.key == bound.key
                and step.kind is StepKind.ADD
                and step.call <= call
                and (step.call == call or step.call not in conflicts)
            )
            if number > bound.most:
                conflicts.setdefault(call, []).append(bound.key)


def apply_steps(records: Mapping[bytes, Record], steps: Sequence[Step], base: int) -> dict[bytes, Record | None]:
    """Return the records that valid steps write, by key, with None for deletions. (Paper 004, 3.5: the update phase.)

    Args:
        records: the existing records of the steps' keys.
        base: the version that the first transaction gives to its records; the others give the next ones.
    """
    changes: dict[bytes, Record | None] = {}
    for step in steps:
        version = base + step.call
        if step.kind in (StepKind.INSERT, StepKind.PUT):
            changes[step.key] = Record(version, step.value)
        elif step.kind is StepKind.DELETE:
            changes[step.key] = None
        elif step.kind is StepKind.ADD:
            old = changes.get(step.key) or records.get(step.key) or Record(0, b"")
            changes[step.key] = Record(version, old.value, old.number + step.delta)
    return changes


# --- versions --------------------------------------------------------------------------------------------------------
_SESSION_BITS = 40
_NUMBER_BITS = 23


class VersionSource(ForkAwareObject):
    """Generates unique record versions: 40 random bits that stand for a session, then a number that counts up.

    A version is positive and less than 2**63. A new session begins after 2**23 - 1 versions, and after a fork.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        super().__init__()

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._next = 0
        self._end = 0

    def take(self, count: int) -> int:
        """Return the first of `count` new consecutive versions of one session; `count` is at most 2**20."""
        with self._lock:
            if self._next + count > self._end:
                session = int(self._ids.token(), 16) % (1 << _SESSION_BITS)
                self._next = (session << _NUMBER_BITS) + 1
                self._end = (session + 1) << _NUMBER_BITS
            first = self._next
            self._next += count
            return first

    @staticmethod
    def session_of(version: int) -> int:
        """Return the session's 40 bits of a version."""
        return version >> _NUMBER_BITS
