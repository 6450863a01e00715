"""Say what a write makes of a cell, and what a record of a cell means.

In a table without history, the record of a cell is the encoded value, and its number is what was added to it. In a
table with history it begins with the update counter (8 bytes); a deleted cell keeps its counter, without a value.

Source: paper 003 (4.1): cells are row : column : update counter, and a write is appended with the next counter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import TypeAlias

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.records.values import Value, decode_value, encode_integer, type_of
from holdfast.transactions.base import Record, takes_adds
from holdfast.transactions.transaction import Transaction

VALUE = "value"
"""The column that is meant if none is named."""

_COUNTER = Struct(">Q")


@dataclass(frozen=True, slots=True)
class Put:
    """A write that replaces a record's bytes, and sets its number to 0."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Deleted:
    """A write that deletes a record."""


DELETED = Deleted()

Write: TypeAlias = "Put | Deleted | int"
"""The outcome for a record; an integer is added to its number."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a record holds: encoded bytes, and the number that was added."""

    encoded: bytes
    number: int = 0

    def value(self) -> Value:
        """Return the value; see `decode_value`."""
        return decode_value(self.encoded, self.number)


def written_over(before: Write | None, write: Write) -> Write:
    """Return the one write that does what `before` and then `write` do.

    Raises:
        InvalidRequestError: a number is added to a value that is no integer.
    """
    if not isinstance(write, int) or before is None:
        return write
    if isinstance(before, int):
        return before + write
    if isinstance(before, Deleted):
        return Put(encode_integer(write))
    _require_integer(before.value)
    total = decode_value(before.value, write)
    assert isinstance(total, int), "an integer, and a number"
    return Put(encode_integer(total))


def _require_integer(encoded: bytes) -> None:
    if not takes_adds(encoded):
        raise InvalidRequestError("only an integer can be added to: put a new value instead", type=type_of(encoded))


def written(record: Record | None, write: Write | None) -> Content | None:
    """Return what a record holds after a write, None if it is deleted or absent.

    Raises:
        InvalidRequestError: a number is added to a value that is no integer: the commit will refuse it, too.
    """
    if isinstance(write, Put):
        return Content(write.value)
    if isinstance(write, Deleted):
        return None
    if record is None:
        return None if write is None else Content(b"", write)
    if write is not None:
        _require_integer(record.value)
    return Content(record.value, record.number + (write or 0))


def apply_writes(writes: Mapping[bytes, Write], transaction: Transaction) -> None:
    """Pass writes on to a transaction."""
    for key, write in writes.items():
        if isinstance(write, Put):
            transaction.put(key, write.value)
        elif isinstance(write, Deleted):
            transaction.delete(key)
        else:
            transaction.add(key, write)


def head_record(counter: int, encoded: bytes) -> bytes:
    """Return the bytes of a cell in a table with history.

    Args:
        encoded: empty for a deleted cell.
    """
    return _COUNTER.pack(counter) + encoded


def split_head(content: Content | None) -> tuple[int, Content | None]:
    """Return the update counter of a cell in a table with history, and what it holds, None if it is deleted.

    Raises:
        CorruptDataError: the record has no counter.
    """
    if content is None:
        return 0, None
    if len(content.encoded) < _COUNTER.size:
        raise CorruptDataError("a cell with history has no update counter: keep the database and report it")
    encoded = content.encoded[_COUNTER.size :]
    return int(_COUNTER.unpack_from(content.encoded)[0]), Content(encoded) if encoded else None
