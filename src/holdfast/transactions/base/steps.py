"""Break transactions into steps, one per key and transaction, in the one global order in which all backends lock.

Two commits that lock in the same order never wait for each other in a circle (paper 004, 3.5: total order update).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from holdfast.errors import InvalidRequestError
from holdfast.transactions.base.values import ABSENT, MAX_KEY_BYTES, MAX_NUMBER, MAX_VALUE_BYTES, Commit


class Kind(enum.IntEnum):
    """What a step does with its key. The numbers are part of the interface of the functions in the databases."""

    READ = 1
    """Lock shared: the version must still be the expected one."""
    GUARD = 2
    """Lock exclusively: nobody may insert into the range that the record guards."""
    INSERT = 3
    """Create the record: there must be none."""
    PUT = 4
    DELETE = 5
    ADD = 6
    PROGRESS = 7
    """Raise the number of the record to `Step.delta`: it must be less."""


ANY = -1
"""The expected version of a step that does not validate one."""


class Step(NamedTuple):
    """One step of a transaction.

    Attributes:
        call: index of the transaction in its group.
        expected: the version that the record must have, or `ANY`.
        value: the bytes of an insert or a put.
        delta: what an add adds; the new number of a progress record.
    """

    key: bytes
    call: int
    kind: Kind
    expected: int
    value: bytes = b""
    delta: int = 0


def steps_of(commits: Sequence[Commit]) -> list[Step]:
    """Return the steps of a group, ordered by key and then by transaction.

    Raises:
        InvalidRequestError: a key or a value is too long, a number too large, one transaction writes a key twice, it
            inserts a record that it has seen, it bounds a record that it does not add to, or it reads the record of its
            own progress.
    """
    steps: list[Step] = []
    for call, commit in enumerate(commits):
        check_commit(commit)
        steps.extend(_steps(call, commit))
    steps.sort(key=_ORDER)
    return steps


_ORDER = attrgetter("key", "call")

_VERSIONS = 2**63
_SHARED_ADD = 2**50
"""Larger adds have their counter for themselves, so that a group's sum stays within what a database can hold."""


def check_commit(commit: Commit) -> None:
    """Check a transaction; a group with it then has steps.

    Raises:
        InvalidRequestError: see `steps_of`.
    """
    reads = commit.reads
    for key in commit.inserts:
        if reads.get(key, ABSENT) != ABSENT:
            raise InvalidRequestError("a record that was read cannot be inserted: put it instead", key=key)
    writes = {*commit.inserts, *commit.puts, *commit.deletes, *commit.adds}
    count = len(commit.inserts) + len(commit.puts) + len(commit.deletes) + len(commit.adds)
    keys = writes.union(reads, [one.guard for one in commit.ranges])
    if commit.progress is not None:
        owner = commit.progress.owner
        if owner in keys and owner not in writes:
            raise InvalidRequestError("a transaction may not read its own progress: use another key", key=owner)
        keys.add(owner)
        writes.add(owner)
        count += 1
    if len(writes) != count:
        raise InvalidRequestError("a transaction writes one key twice: merge the two writes")
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
    if commit.progress is not None and not 1 <= commit.progress.number <= MAX_NUMBER:
        number = commit.progress.number
        raise InvalidRequestError(f"the numbers of a series are 1 to {MAX_NUMBER}: use one of them", number=number)
    versions = commit.reads.values()
    if versions and not ABSENT <= min(versions) <= max(versions) < _VERSIONS:
        key, version = next(one for one in commit.reads.items() if not ABSENT <= one[1] < _VERSIONS)
        raise InvalidRequestError("no record has such a version: read it", key=key, version=version)


def _steps(call: int, commit: Commit) -> Iterable[Step]:
    reads = commit.reads
    steps = {key: Step(key, call, Kind.READ, version) for key, version in reads.items()}
    for one in commit.ranges:
        steps[one.guard] = Step(one.guard, call, Kind.GUARD, reads.get(one.guard, ANY))
    for key, value in commit.inserts.items():
        steps[key] = Step(key, call, Kind.INSERT, ABSENT, value)
    for key, value in commit.puts.items():
        steps[key] = Step(key, call, Kind.PUT, reads.get(key, ANY), value)
    for key in commit.deletes:
        steps[key] = Step(key, call, Kind.DELETE, reads.get(key, ANY))
    for key, delta in commit.adds.items():
        steps[key] = Step(key, call, Kind.ADD, reads.get(key, ANY), delta=delta)
    if commit.progress is not None:
        owner = commit.progress.owner
        steps[owner] = Step(owner, call, Kind.PROGRESS, ANY, delta=commit.progress.number)
    return steps.values()


def keys_of(commit: Commit) -> set[bytes]:
    """Return the keys of all steps of a transaction: what it locks."""
    keys = {*commit.reads, *commit.inserts, *commit.puts, *commit.deletes, *commit.adds}
    keys.update(one.guard for one in commit.ranges)
    if commit.progress is not None:
        keys.add(commit.progress.owner)
    return keys


def independent(commits: Sequence[Commit]) -> int:
    """Return how many transactions from the start of the list may form a group; at least one, if there is one.

    In a group, no transaction touches what another one writes. Several may add to one counter that none of them
    reads, if the adds are small.
    """
    shared: set[bytes] = set()
    exclusive: set[bytes] = set()
    added: set[bytes] = set()
    for number, commit in enumerate(commits):
        writes = {*commit.inserts, *commit.puts, *commit.deletes, *(one.guard for one in commit.ranges)}
        adds = set(commit.adds)
        large = {key for key, delta in commit.adds.items() if abs(delta) > _SHARED_ADD}
        writes |= large
        adds -= large
        if commit.progress is not None:
            writes.add(commit.progress.owner)
        reads = commit.reads.keys() - writes
        if adds & reads:
            writes |= adds & reads
            adds -= writes
            reads -= writes
        if number and not (
            writes.isdisjoint(shared)
            and writes.isdisjoint(exclusive)
            and writes.isdisjoint(added)
            and reads.isdisjoint(exclusive)
            and reads.isdisjoint(added)
            and adds.isdisjoint(shared)
            and adds.isdisjoint(exclusive)
        ):
            return number
        exclusive |= writes
        shared |= reads
        added |= adds
    return len(commits)
