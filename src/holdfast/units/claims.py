"""Claim items of a work list, and dissolve claims of the dead."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.errors import CorruptDataError, OutcomeUnknownError
from holdfast.records.batches import read_records
from holdfast.records.keys import id_bytes
from holdfast.runtime import Environment
from holdfast.transactions.base import ABSENT, Backend, Commit, Committed, Record
from holdfast.units.work_list import Item, WorkList

_MOST_BYTES = 2 * 1024 * 1024
"""Values of a claim: they are written again with every commit of its worker."""

_MOST_ITEMS = 1024
"""Of a claim: no group is larger."""

_TRIES = 20


@dataclass(frozen=True, slots=True)
class Claim:
    """The items that one worker has taken.

    Attributes:
        version: of the record; a worker whose claim has another version has lost it.
    """

    key: bytes
    version: int
    items: Mapping[bytes, Item]


def encode_claim(items: Collection[Item]) -> bytes:
    """Return the value of a claim's record."""
    return json.dumps([[b64encode(one.place).decode(), b64encode(one.encoded).decode()] for one in items]).encode()


def decode_claim(key: bytes, record: Record) -> Claim:
    """Return the claim in a record.

    Raises:
        CorruptDataError: it is damaged.
    """
    try:
        items = [
            Item(b64decode(place, validate=True), b64decode(encoded, validate=True))
            for place, encoded in json.loads(record.value)
        ]
    except (ValueError, TypeError) as error:
        raise CorruptDataError("a claim of a work list cannot be read: report it", key=key) from error
    return Claim(key, record.version, {one.place: one for one in items})


def take_items(
    database: Backend,
    work: WorkList,
    claim_key: bytes,
    waiting: Sequence[tuple[bytes, Record]],
    required: Mapping[bytes, int],
) -> Claim | None:
    """Claim items that were seen waiting; return None if somebody else was first, or the worker has a claim already.

    Args:
        required: versions that records must have, or the worker may not claim anything.

    Raises:
        OutcomeUnknownError: perhaps they are claimed, now or later: look for the claim.
    """
    keys: list[bytes] = []
    items: list[Item] = []
    size = 0
    for key, record in waiting:
        item = work.item_of(key, record)
        assert item is not None, "claims are no items"
        size += len(record.value)
        if items and size > _MOST_BYTES:
            break
        keys.append(key)
        items.append(item)
    versions = {key: record.version for key, record in waiting[: len(keys)]}
    outcome = database.commit(
        Commit(
            reads={**versions, **required, work.definition_key: work.version, claim_key: ABSENT},
            deletes=keys,
            puts={claim_key: encode_claim(items)},
        )
    )
    if not isinstance(outcome, Committed):
        return None
    return Claim(claim_key, outcome.version, {one.place: one for one in items})


def dissolve(database: Backend, work: WorkList, claim: Claim) -> bool:
    """Let the items of a claim wait again; return whether that is done.

    An item that was added again meanwhile waits once; one whose values are combined waits beside those that were.

    Guarantee: its worker commits nothing anymore.
    """
    identity = claim.key + id_bytes(claim.version)
    puts = {work.item_key(item.place_of_its_own(identity)): item.encoded for item in claim.items.values()}
    deletes = [claim.key, work.beat_key(claim.key)]
    try:
        outcome = database.commit(Commit(reads={claim.key: claim.version}, puts=puts, deletes=deletes))
    except OutcomeUnknownError:
        return False
    return isinstance(outcome, Committed)


def dissolve_slot(database: Backend, work: WorkList, slot: int) -> None:
    """Dissolve the claims of earlier attempts at a worker: Spark has started another one."""
    prefix = work.claim_key(slot)
    _dissolve_range(database, work, (prefix, prefix + b"\xff"), _TRIES)


def dissolve_all(database: Backend, work: WorkList) -> None:
    """Dissolve all claims, of workers that cannot get new ones: each commit that is faster makes its claim smaller."""
    _dissolve_range(database, work, work.claims, _MOST_ITEMS)


def _dissolve_range(database: Backend, work: WorkList, claims: tuple[bytes, bytes], tries: int) -> None:
    for _ in range(tries):
        found = list(read_records(database, *claims))
        if all(dissolve(database, work, decode_claim(key, record)) for key, record in found):
            return


_Sign: TypeAlias = "tuple[int, int]"
"""Of life: the version of a claim, and the heartbeat of its worker."""


@dataclass(slots=True)
class ClaimWatch:
    """Observes the claims of others, to find those whose workers are dead.

    A claim is expired if neither it nor the heartbeat of its worker has changed for the time of a lease, as measured by
    the monotonic clock of the observer.
    """

    database: Backend
    work: WorkList
    environment: Environment
    lease_s: float
    _seen: dict[bytes, tuple[_Sign, float]] = field(default_factory=dict)

    def dissolve_expired(self, own: bytes) -> int:
        """Look at all claims but one's own; dissolve those that are expired, and return how many."""
        now_s = self.environment.clock.elapsed_s()
        claims = [one for one in read_records(self.database, *self.work.claims) if one[0] != own]
        beats = self.database.get_many([self.work.beat_key(key) for key, _record in claims]) if claims else {}
        seen: dict[bytes, tuple[_Sign, float]] = {}
        count = 0
        for key, record in claims:
            beat = beats.get(self.work.beat_key(key))
            sign = (record.version, 0 if beat is None else beat.number)
            last, since_s = self._seen.get(key, (sign, now_s))
            if sign != last:
                since_s = now_s
            seen[key] = (sign, since_s)
            if now_s - since_s >= self.lease_s:
                count += dissolve(self.database, self.work, decode_claim(key, record))
        self._seen = seen
        return count
