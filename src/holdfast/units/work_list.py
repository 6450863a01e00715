"""Keep a list of work in the database, from which long-lived tasks take units, and to which units add others.

An item is a key with a value and a priority. It waits under all three, so what is added again while it waits is still
one item, no value takes the place of another one, and nobody has to read before adding. Values that are to be
*combined* wait under their priority and key alone: whoever adds one reads the one that waits. A worker *claims* several
items: one transaction deletes them from those that wait, and writes them into a claim of the worker. The commit of a
unit validates the claim and takes the unit's item out of it, in the same step in which the unit's writes and the items
that it adds take effect. So:

- a claim that somebody else has dissolved makes every later commit of its worker conflict: zombies do nothing;
- the list is at its end when nothing waits and nothing is claimed, as seen in one read. Nobody can add to it then,
  because only units add to it, and each unit that runs has a claim.

A claim is dissolved, and its items wait again, when its worker gave no sign of life for the time of a lease. What was
combined gets a place of its own, since other values of its key may have been combined meanwhile. Whoever waits for work
observes the workers' heartbeats on its own monotonic clock: no two clocks are compared, and if the time is wrong, units
run twice, but only one commit counts.

| key | record |
|---|---|
| ``Sl`` name | the definition of a list |
| ``Sw`` list id, ``r``, priority, key, digest of the value | an item that waits |
| ``Sw`` list id, ``r``, priority, key | one whose value is combined with those that are added |
| ``Sw`` list id, ``t``, slot, token | a claim: the items that one worker has taken |
| ``Sb`` list id, slot, token | the heartbeat of a worker, as a number that grows |
| ``Sd`` list id | the mark of a list that was dropped, until nothing of it is left |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from holdfast.errors import ConflictError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.records.batches import collect_dropped, read_records
from holdfast.records.keys import BEAT, ID_BYTES, WORK, WORK_LIST, dropped_key, id_bytes, new_id
from holdfast.records.row_keys import Row, decode_row, encode_row, integer_of
from holdfast.records.values import Value, decode_value, encode_value
from holdfast.runtime import Environment
from holdfast.transactions.base import MAX_KEY_BYTES, Backend, Record, SnapshotReader
from holdfast.transactions.retry import run_transaction
from holdfast.transactions.transaction import Transaction
from holdfast.wording import nearest

_READY, _CLAIM = b"r", b"t"  # in this order: whoever looks for work reads claims only if little waits
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_MOST_PRIORITY = 2**62
_DIGEST_BYTES = 16
_MOST_VALUE_BYTES = 4 * 1024 * 1024
"""A claim is one record, in which a value takes a third more bytes: a larger one could be added, but never claimed."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item that waits, or that is claimed.

    Attributes:
        place: the end of its record's key: priority and key, as bytes, and a digest of the value unless it is combined.
        encoded: the bytes of its value; empty for None.
    """

    place: bytes
    encoded: bytes

    @property
    def key(self) -> Row:
        """The key of the unit."""
        return decode_row(self.place, decode_row(self.place)[1])[0]

    @property
    def value(self) -> Value | None:
        """The value of the unit."""
        return decode_item(self.encoded)

    def place_of_its_own(self, claim: bytes) -> bytes:
        """Return where the item waits when a claim is dissolved: others may have been combined in its place meanwhile.

        Args:
            claim: identifies the claim, so that two equal values, of which each counts, do not become one.
        """
        _key, end = decode_row(self.place, decode_row(self.place)[1])
        return self.place if len(self.place) > end else self.place + _digest(claim + self.encoded)


def encode_item(value: Value | None) -> bytes:
    """Return the bytes of an item's value.

    Raises:
        InvalidRequestError: the value is not valid: change it.
    """
    encoded = b"" if value is None else encode_value(value)
    if len(encoded) > _MOST_VALUE_BYTES:
        raise InvalidRequestError(
            f"the value of an item is limited to {_MOST_VALUE_BYTES} bytes: put it into a table, and add its row",
            bytes=len(encoded),
        )
    return encoded


def decode_item(encoded: bytes) -> Value | None:
    """Return the value of an item."""
    return decode_value(encoded) if encoded else None


def _digest(encoded: bytes) -> bytes:
    return blake2b(encoded, digest_size=_DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True)
class WorkList:
    """A work list.

    Attributes:
        version: of its definition.
    """

    name: str
    id: int
    version: int

    @property
    def definition_key(self) -> bytes:
        """The key of the definition. Whoever adds items validates its version: nobody adds to a dropped list."""
        return WORK_LIST + self.name.encode()

    @property
    def range(self) -> tuple[bytes, bytes]:
        """The range of all claims and of all items that wait."""
        prefix = WORK + id_bytes(self.id)
        return prefix, prefix + b"\xff"

    @property
    def claims(self) -> tuple[bytes, bytes]:
        """The range of all claims."""
        prefix = WORK + id_bytes(self.id) + _CLAIM
        return prefix, prefix + b"\xff" * (ID_BYTES + 1)

    @property
    def waiting(self) -> tuple[bytes, bytes]:
        """The range of all items that wait."""
        prefix = WORK + id_bytes(self.id) + _READY
        return prefix, prefix + b"\xff"

    def item_key(self, place: bytes) -> bytes:
        """Return the key of an item that waits."""
        return self.waiting[0] + place

    def item_of(self, key: bytes, record: Record) -> Item | None:
        """Return an item that waits, or None if it is the key of a claim."""
        start = self.waiting[0]
        return Item(key[len(start) :], record.value) if key.startswith(start) else None

    def claim_key(self, slot: int, token: str = "") -> bytes:
        """Return the key of a worker's claim, or the beginning of those of a slot."""
        return self.claims[0] + id_bytes(slot) + token.encode()

    def beat_key(self, claim: bytes) -> bytes:
        """Return the key of the heartbeat of a claim's worker."""
        return BEAT + id_bytes(self.id) + claim[len(self.claims[0]) :]

    @property
    def beats(self) -> tuple[bytes, bytes]:
        """The range of all heartbeats."""
        prefix = BEAT + id_bytes(self.id)
        return prefix, prefix + b"\xff" * (ID_BYTES + 1)

    def new_item(
        self, key: Row, value: Value | None, priority: object, *, combined: bool = False
    ) -> tuple[bytes, bytes]:
        """Return the record of an item.

        Args:
            combined: whether it is the item in which all values of the key, with this priority, are combined.

        Raises:
            InvalidRequestError: the key, the value or the priority is not valid: change it.
        """
        number = integer_of(priority)
        if number is None or abs(number) > _MOST_PRIORITY:
            raise InvalidRequestError("a priority is an integer of 62 bits: change it", priority=priority)
        record = self.item_key(encode_row(number) + encode_row(key))
        if len(record) > MAX_KEY_BYTES - _DIGEST_BYTES:
            raise InvalidRequestError("the key of an item is too long: shorten it", bytes=len(record))
        encoded = encode_item(value)
        return record if combined else record + _digest(encoded), encoded


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


def _definition(name: str, record: Record) -> WorkList:
    try:
        list_id = json.loads(record.value)["id"]
    except (ValueError, TypeError, KeyError) as error:
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
    list_id = new_id(environment.ids)

    def create(transaction: Transaction) -> bool:
        if transaction.get(key) is not None:
            return False
        transaction.insert(key, json.dumps({"id": list_id}).encode())
        return True

    if not run_transaction(database, create, environment) and not exist_ok:
        raise ConflictError("the work list exists: choose another name, or pass exist_ok=True", list=name)
    return find_work_list(database, name)


def find_work_list(database: Backend, name: str) -> WorkList:
    """Return a work list.

    Raises:
        NotFoundError: there is none with this name.
    """
    key = _definition_key(name)
    record = database.get_many([key]).get(key)
    if record is None:
        known = [one.name for one in list_work_lists(database)]
        hint = nearest(name, known) if known else "create it with open_work_list(database, name, create=True)"
        raise NotFoundError(f"the database has no such work list: {hint}", list=name)
    return _definition(name, record)


def list_work_lists(database: SnapshotReader) -> list[WorkList]:
    """Return all work lists, by name."""
    return [
        _definition(key[len(WORK_LIST) :].decode(errors="replace"), record)
        for key, record in read_records(database, WORK_LIST, WORK_LIST + b"\xff")
    ]


def drop_work_list(database: Backend, name: str, environment: Environment) -> None:
    """Drop a work list with everything that waits; units that run fail with their next commit.

    Guarantee: the list is gone in one step; then its items are deleted in small transactions.

    Raises:
        NotFoundError: there is none with this name.
        ConflictError: the database has lost the drop, as in a failover: drop it again.

    Crash: what is left of it is never seen again; `Database.collect` and the next drop delete it.
    """
    found = find_work_list(database, name)

    def is_there(reader: Backend | Transaction) -> bool:
        record = reader.get_many([found.definition_key]).get(found.definition_key)
        return record is not None and record.version == found.version

    def drop(transaction: Transaction) -> None:
        if not is_there(transaction):
            raise NotFoundError("the work list was dropped meanwhile", list=name)
        transaction.delete(found.definition_key)
        transaction.put(dropped_key(found.id), b"")

    run_transaction(database, drop, environment)
    collect_dropped(database)
    if is_there(database):
        raise ConflictError("the database has lost the drop, perhaps in a failover: drop it again", list=name)


NewItem: TypeAlias = "tuple[Row, Value | None] | tuple[Row, Value | None, int]"
"""A key, its value, and perhaps its priority."""

Combine: TypeAlias = "Callable[[Any, Any], Value | None]"
"""Makes one value of the one that waits and a new one, such as `min`; the order in which values come is by chance."""


@dataclass(frozen=True, slots=True)
class NewRecord:
    """An item that is to be added.

    Attributes:
        key: of its record.
        encoded: its value.
    """

    key: bytes
    encoded: bytes

    def combined_with(self, waiting: bytes | None, combine: Combine) -> bytes:
        """Return the bytes of the value that waits from now on.

        A transaction that conflicts combines again, so each time `combine` gets values of its own: it may change them.

        Args:
            waiting: those of the value that waits; None if none does.

        Raises:
            InvalidRequestError: the combined value cannot be stored.
        """
        if waiting is None:
            return self.encoded
        return encode_item(combine(decode_item(waiting), decode_item(self.encoded)))


def new_records(work: WorkList, items: Iterable[NewItem], combine: Combine | None) -> Iterable[NewRecord]:
    """Yield the records of items; those whose values are combined have a place for their key.

    Raises:
        InvalidRequestError: an item is not valid, or `combine` is no function.
    """
    if combine is not None and not callable(combine):
        raise InvalidRequestError(
            "combine is a function of two values, such as min: pass it itself, not its name", combine=combine
        )
    for item in items:
        _require_item(item)
        key, value, priority = item if len(item) == 3 else (*item, 0)
        yield NewRecord(*work.new_item(key, value, priority, combined=combine is not None))


def _require_item(item: object) -> None:
    """Check that something is an item: a text of two letters, which Python would take apart, is none.

    Raises:
        InvalidRequestError: it is not.
    """
    if not isinstance(item, tuple) or len(item) not in (2, 3):
        raise InvalidRequestError(
            "an item is a pair (key, value), or (key, value, priority): make tuples", type=type(item).__name__
        )
