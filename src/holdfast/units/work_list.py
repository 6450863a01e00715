"""Keep a list of work in the database, from which long-lived tasks take units, and to which units add others.

An item is a key with a value and a priority. It waits under all three, so what is added again while it waits is still
one item, no value takes the place of another one, and to add reads nothing. A worker *claims* several items: one
transaction deletes them from those that wait, and writes them into a claim of the worker. The commit of a unit
validates the claim and takes the unit's item out of it, in the same step in which the unit's writes and the items that
it adds take effect. So:

- a claim that another worker has dissolved makes every later commit of its worker conflict: zombies do nothing;
- the list is at its end when nothing waits and nothing is claimed, as seen in one read. Nobody can add to it then,
  because only units add to it, and each unit that runs has a claim.

A claim is dissolved, and its items wait again, when its worker gave no sign of life for the time of a lease. Whoever
waits for work observes the workers' heartbeats on its own monotonic clock: no two clocks are compared, and if the time
is wrong, units run twice, but only one commit counts.

| key | record |
|---|---|
| ``Sl`` name | the definition of a list |
| ``Sw`` list id, ``r``, priority, key, digest of the value | an item that waits |
| ``Sw`` list id, ``t``, slot, token | a claim: the items that one worker has taken |
| ``Sb`` list id, slot, token | the heartbeat of a worker, as a number that grows |
| ``Sd`` list id | the mark of a list that was dropped, until nothing of it is left |
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeAlias

from holdfast.errors import (
    MALFORMED,
    ConflictError,
    CorruptDataError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
)
from holdfast.records.batches import (
    delete_dropped_tables,
    iter_commit_checked_batches,
    iter_records,
    split_into_batches,
)
from holdfast.records.database import Database, require_open_database
from holdfast.records.keys import BEAT, ID_BYTES, WORK, WORK_LIST, dropped_mark_key, id_bytes, new_table_id
from holdfast.records.row_keys import Row, decode_row, encode_row, to_python_integer
from holdfast.records.values import Value, decode_value, encode_value
from holdfast.runtime import Environment
from holdfast.transactions.base import (
    ABSENT,
    MAX_KEY_BYTES,
    Backend,
    Commit,
    Committed,
    Conflict,
    Record,
    SnapshotReader,
)
from holdfast.transactions.transaction import Transaction, run_transaction
from holdfast.wording import suggest_nearest

_READY, _CLAIM = b"r", b"t"  # in this order: whoever looks for work reads claims only if little waits
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_MOST_PRIORITY = 2**62
_DIGEST_BYTES = 16
_MOST_VALUE_BYTES = 4 * 1024 * 1024
"""A claim is one record, in which a value takes a third more bytes: a larger one could be added, but never claimed."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """An item of a work list: the key, value and priority of a unit that waits, or that a worker has claimed.

    Attributes:
        place: the suffix of the record key of the item: encoded priority and key, and a digest of the value.
        encoded: the encoded value; empty for None.
    """

    place: bytes
    encoded: bytes

    @property
    def key(self) -> Row:
        """Return the key of the unit."""
        return decode_row(self.place, decode_row(self.place)[1])[0]

    @property
    def value(self) -> Value | None:
        """Return the value of the unit."""
        return decode_value(self.encoded) if self.encoded else None


@dataclass(frozen=True, slots=True)
class WorkList:
    """The definition of a work list, and the keys of its records.

    Attributes:
        version: the version of the definition's record.
    """

    name: str
    id: int
    version: int

    @property
    def definition_key(self) -> bytes:
        """Return the key of the definition. A transaction that adds items validates its version."""
        return WORK_LIST + self.name.encode()

    @property
    def range(self) -> tuple[bytes, bytes]:
        """Return the range of keys of all claims and of all items that wait."""
        prefix = WORK + id_bytes(self.id)
        return prefix, prefix + b"\xff"

    @property
    def claims_range(self) -> tuple[bytes, bytes]:
        """Return the range of keys of all claims."""
        prefix = WORK + id_bytes(self.id) + _CLAIM
        return prefix, prefix + b"\xff" * (ID_BYTES + 1)

    @property
    def waiting(self) -> tuple[bytes, bytes]:
        """Return the range of keys of all items that wait."""
        prefix = WORK + id_bytes(self.id) + _READY
        return prefix, prefix + b"\xff"

    def item_key(self, place: bytes) -> bytes:
        """Return the key of the record of an item that waits, given its `place`."""
        return self.waiting[0] + place

    def decode_item(self, key: bytes, record: Record) -> WorkItem | None:
        """Decode an item that waits from its record; return None if the key is that of a claim."""
        start = self.waiting[0]
        return WorkItem(key[len(start) :], record.value) if key.startswith(start) else None

    def claim_key(self, slot: int, token: str = "") -> bytes:
        """Return the key of a claim of the worker `slot`; without a token, the prefix of all its claims' keys."""
        return self.claims_range[0] + id_bytes(slot) + token.encode()

    def heartbeat_key(self, claim: bytes) -> bytes:
        """Return the key of the heartbeat of the worker that has a claim."""
        return BEAT + id_bytes(self.id) + claim[len(self.claims_range[0]) :]

    @property
    def heartbeats_range(self) -> tuple[bytes, bytes]:
        """Return the range of keys of all heartbeats."""
        prefix = BEAT + id_bytes(self.id)
        return prefix, prefix + b"\xff" * (ID_BYTES + 1)

    def encode_new_item(self, key: Row, value: Value | None, priority: object) -> tuple[bytes, bytes]:
        """Return the key and the value of the record of a new item.

        Raises:
            InvalidRequestError: the key, the value or the priority is not valid: change it.
        """
        number = to_python_integer(priority)
        if number is None or abs(number) > _MOST_PRIORITY:
            raise InvalidRequestError("a priority is an integer of 62 bits: change it", priority=priority)
        record = self.item_key(encode_row(number) + encode_row(key))
        if len(record) > MAX_KEY_BYTES - _DIGEST_BYTES:
            raise InvalidRequestError("the key of an item is too long: shorten it", bytes=len(record))
        encoded = b"" if value is None else encode_value(value)
        if len(encoded) > _MOST_VALUE_BYTES:
            raise InvalidRequestError(
                f"the value of an item is limited to {_MOST_VALUE_BYTES} bytes: put it into a table, and add its row",
                bytes=len(encoded),
            )
        return record + blake2b(encoded, digest_size=_DIGEST_BYTES).digest(), encoded


def _definition_key(name: object) -> bytes:
    """Return the key of a list's definition.

    Raises:
        InvalidRequestError: no list has such a name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError(
            "the name of a work list has 1 to 64 letters, digits, points, hyphens and underscores: change it", name=name
        )
    return WORK_LIST + name.encode()


def _decode_definition(name: str, record: Record) -> WorkList:
    try:
        list_id = json.loads(record.value)["id"]
    except MALFORMED as error:
        raise CorruptDataError("the definition of a work list cannot be read: report it", list=name) from error
    if type(list_id) is not int or not 0 <= list_id < 2**63:
        raise CorruptDataError("the definition of a work list cannot be read: report it", list=name)
    return WorkList(name, list_id, record.version)


def create_work_list(database: Backend, name: str, environment: Environment, *, exist_ok: bool = False) -> WorkList:
    """Create a work list.

    Raises:
        InvalidRequestError: the name is not valid.
        ConflictError: it exists.
    """
    key = _definition_key(name)
    list_id = new_table_id(environment.ids)

    def insert_definition(transaction: Transaction) -> bool:
        if transaction.get(key) is not None:
            return False
        transaction.insert(key, json.dumps({"id": list_id}).encode())
        return True

    if not run_transaction(database, insert_definition, environment) and not exist_ok:
        raise ConflictError("the work list exists: choose another name, or pass exist_ok=True", list=name)
    return find_work_list(database, name)


def find_work_list(database: Backend, name: str) -> WorkList:
    """Return the work list with a name.

    Raises:
        NotFoundError: there is none.
    """
    key = _definition_key(name)
    record = database.get_many([key]).get(key)
    if record is None:
        known = [one.name for one in list_work_lists(database)]
        hint = suggest_nearest(name, known) if known else "create it with open_work_list(database, name, create=True)"
        raise NotFoundError(f"the database has no such work list: {hint}", list=name)
    return _decode_definition(name, record)


def list_work_lists(database: SnapshotReader) -> list[WorkList]:
    """Return all work lists of a database, by name."""
    return [
        _decode_definition(key[len(WORK_LIST) :].decode(errors="replace"), record)
        for key, record in iter_records(database, WORK_LIST, WORK_LIST + b"\xff")
    ]


def drop_work_list(database: Backend, name: str, environment: Environment) -> None:
    """Drop a work list with all waiting items; running units fail with their next commit.

    Guarantee: the list is gone in one step; then its items are deleted in small transactions.

    Raises:
        NotFoundError: there is none with this name.
        ConflictError: the database has lost the drop, as in a failover: drop it again.

    Crash: leftover items are never read again; `Database.collect` and the next drop delete it.
    """
    found = find_work_list(database, name)

    def is_list_there(reader: Backend | Transaction) -> bool:
        record = reader.get_many([found.definition_key]).get(found.definition_key)
        return record is not None and record.version == found.version

    def delete_definition(transaction: Transaction) -> None:
        if not is_list_there(transaction):
            raise NotFoundError("the work list was dropped meanwhile", list=name)
        transaction.delete(found.definition_key)
        transaction.put(dropped_mark_key(found.id), b"")

    run_transaction(database, delete_definition, environment)
    delete_dropped_tables(database)
    if is_list_there(database):
        raise ConflictError("the database has lost the drop, perhaps in a failover: drop it again", list=name)


NewItem: TypeAlias = "tuple[Row, Value | None] | tuple[Row, Value | None, int]"
"""A key, its value, and perhaps its priority."""


def encode_new_items(work: WorkList, items: Iterable[NewItem]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the value of the record of each item, for keys that users add to a work list.

    Raises:
        InvalidRequestError: an item is not valid, such as a text of two letters, which Python would take apart.
    """
    for item in items:
        given: object = item
        if not isinstance(given, tuple) or len(given) not in (2, 3):
            raise InvalidRequestError(
                "an item is a pair (key, value), or (key, value, priority): make tuples", type=type(given).__name__
            )
        key, value, priority = item if len(item) == 3 else (*item, 0)
        yield work.encode_new_item(key, value, priority)


# --- claims -----------------------------------------------------------------------------------------------------------
_MOST_BYTES = 2 * 1024 * 1024
"""Values of a claim: they are written again with every commit of its worker."""

_MOST_ITEMS = 1024
"""Of a claim: no group is larger."""

_TRIES = 20


@dataclass(frozen=True, slots=True)
class WorkClaim:
    """The items of a work list that one worker has taken.

    Attributes:
        key: the key of the claim's record.
        version: the version of the record; commits with another version fail.
        items: the items by `WorkItem.place`.
    """

    key: bytes
    version: int
    items: Mapping[bytes, WorkItem]


def encode_claim(items: Collection[WorkItem]) -> bytes:
    """Return the value of the record of a claim with these items."""
    return json.dumps([[b64encode(one.place).decode(), b64encode(one.encoded).decode()] for one in items]).encode()


def decode_claim(key: bytes, record: Record) -> WorkClaim:
    """Decode a claim from its record.

    Raises:
        CorruptDataError: it is damaged.
    """
    try:
        items = [
            WorkItem(b64decode(place, validate=True), b64decode(encoded, validate=True))
            for place, encoded in json.loads(record.value)
        ]
    except MALFORMED as error:
        raise CorruptDataError("a claim of a work list cannot be read: report it", key=key) from error
    return WorkClaim(key, record.version, {one.place: one for one in items})


def claim_items(
    database: Backend,
    work: WorkList,
    claim_key: bytes,
    waiting: Sequence[tuple[bytes, Record]],
    required: Mapping[bytes, int],
) -> WorkClaim | None:
    """Claim waiting items; return None if an item was taken meanwhile, or this worker already has a claim.

    Args:
        required: versions by key of further records: the claim fails if one has another version.

    Raises:
        OutcomeUnknownError: the claim may exist now or later: read the record at `claim_key`.
    """
    keys: list[bytes] = []
    items: list[WorkItem] = []
    size = 0
    for key, record in waiting:
        item = work.decode_item(key, record)
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
    return WorkClaim(claim_key, outcome.version, {one.place: one for one in items})


def release_claim(database: Backend, work: WorkList, claim: WorkClaim) -> bool:
    """Delete a claim, so that its items wait again; return False if it has changed, or the reply is lost.

    An item that was added again meanwhile waits once.

    Guarantee: after True, no commit with this claim takes effect.
    """
    puts = {work.item_key(item.place): item.encoded for item in claim.items.values()}
    deletes = [claim.key, work.heartbeat_key(claim.key)]
    try:
        outcome = database.commit(Commit(reads={claim.key: claim.version}, puts=puts, deletes=deletes))
    except OutcomeUnknownError:
        return False
    return isinstance(outcome, Committed)


def release_worker_claims(database: Backend, work: WorkList, slot: int) -> None:
    """Delete the claims of a worker's earlier attempts when a new attempt starts; their items wait again."""
    prefix = work.claim_key(slot)
    _release_claims_in_range(database, work, (prefix, prefix + b"\xff"), _TRIES)


def release_all_claims(database: Backend, work: WorkList) -> None:
    """Delete all claims of a work list, so that their items wait again. Its workers must be unable to make new claims.

    A worker's commit can make a deletion fail, but then also makes the claim smaller.
    """
    _release_claims_in_range(database, work, work.claims_range, _MOST_ITEMS)


def _release_claims_in_range(database: Backend, work: WorkList, claims: tuple[bytes, bytes], tries: int) -> None:
    for _ in range(tries):
        found = list(iter_records(database, *claims))
        if all(release_claim(database, work, decode_claim(key, record)) for key, record in found):
            return


_Sign: TypeAlias = "tuple[int, int]"
"""Of life: the version of a claim, and the heartbeat of its worker."""


@dataclass(slots=True)
class ExpiredClaimDetector:
    """Observes the claims of other workers, to find those whose workers are dead.

    A claim has expired if neither the claim nor its worker's heartbeat has changed for `lease_s`, as measured by the
    observer's monotonic clock.
    """

    database: Backend
    work: WorkList
    environment: Environment
    lease_s: float
    _seen: dict[bytes, tuple[_Sign, float]] = field(default_factory=dict)

    def release_expired_claims(self, own: bytes) -> int:
        """Observe all claims except `own`; delete the expired ones, and return their number."""
        now_s = self.environment.clock.elapsed_s()
        claims = [one for one in iter_records(self.database, *self.work.claims_range) if one[0] != own]
        beats = self.database.get_many([self.work.heartbeat_key(key) for key, _record in claims]) if claims else {}
        seen: dict[bytes, tuple[_Sign, float]] = {}
        count = 0
        for key, record in claims:
            beat = beats.get(self.work.heartbeat_key(key))
            sign = (record.version, 0 if beat is None else beat.number)
            last, since_s = self._seen.get(key, (sign, now_s))
            if sign != last:
                since_s = now_s
            seen[key] = (sign, since_s)
            if now_s - since_s >= self.lease_s:
                count += release_claim(self.database, self.work, decode_claim(key, record))
        self._seen = seen
        return count


# --- what people open -------------------------------------------------------------------------------------------------
_BATCH = 500


class OpenWorkList:
    """A work list of an open database: keys with values and priorities, which workers take and units add to.

    Attributes:
        name: of the list.
    """

    def __init__(self, database: Database, work: WorkList) -> None:
        self.name = work.name
        self._database = database
        self._work = work

    def add(self, key: Row, value: Value | None = None, *, priority: int = 0) -> None:
        """Add a key to the list. A key that waits already with this value and priority waits, and runs, only once.

        A running job takes the new key too. If it has finished, give the next run another name.

        Args:
            priority: keys with smaller numbers are taken first.

        Raises:
            NotFoundError: the list was dropped.
        """
        self.add_many([(key, value, priority)])

    def add_many(self, items: Iterable[NewItem]) -> int:
        """Add many keys, some hundreds per transaction; return the number of `items`.

        Raises:
            InvalidRequestError: an item is not valid.
            NotFoundError: the list was dropped.
            ConflictError: the database has lost some of the keys meanwhile, as in a failover.
            OutcomeUnknownError: the reply was lost.

        Crash: some keys are added. After a crash or an error of these, add all keys again, unless a job runs on the
            list: keys that it has processed would run again. So fill a list before its job
            begins, or let the units record in a table what is done.
        """
        count = 0
        backend = self._database.backend
        found = split_into_batches(encode_new_items(self._work, items), _BATCH, lambda record: len(record[1]))
        for batch, adds in iter_commit_checked_batches(found, backend, self._database.environment):
            reads = {self._work.definition_key: self._work.version}
            if isinstance(backend.commit(Commit(reads=reads, puts=dict(batch), adds=adds)), Conflict):
                raise NotFoundError("the work list was dropped: open it again with create=True", list=self.name)
            count += len(batch)
        return count

    def counts(self) -> tuple[int, int]:
        """Return the numbers of waiting keys and of keys that workers have claimed, from one snapshot."""
        with self._database.backend.snapshot() as reader:
            return count_items(reader, self._work)

    def drop(self) -> None:
        """Drop the list, with all keys that wait."""
        drop_work_list(self._database.backend, self.name, self._database.environment)

    def __repr__(self) -> str:
        return f"OpenWorkList({self.name!r})"


def count_items(reader: SnapshotReader, work: WorkList) -> tuple[int, int]:
    """Return the number of waiting keys of a list, and the number of keys that workers have claimed."""
    waiting = claimed = 0
    for key, record in iter_records(reader, *work.range):
        if work.decode_item(key, record) is not None:
            waiting += 1
        else:
            claimed += len(decode_claim(key, record).items)
    return waiting, claimed


def open_work_list(database: Database, name: str, *, create: bool = False) -> OpenWorkList:
    """Open a work list of a database.

    Args:
        create: whether to create it if it does not exist.

    Raises:
        InvalidRequestError: `database` is not an open database, or the name is not valid.
        NotFoundError: it does not exist.
    """
    require_open_database(database)
    if create:
        return OpenWorkList(database, create_work_list(database.backend, name, database.environment, exist_ok=True))
    return OpenWorkList(database, find_work_list(database.backend, name))
