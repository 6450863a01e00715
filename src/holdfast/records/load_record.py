"""The record of a load, which says who may still write, and what its tasks and its driver both need.

What the states mean is in `loads`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

from holdfast.errors import ConflictError, CorruptDataError, FencedError, InvalidRequestError
from holdfast.records.keys import ID_BYTES, load_key, load_of
from holdfast.records.tables import Table, check_table_name
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Record
from holdfast.transactions.retry import run_until_known
from holdfast.transactions.transaction import Transaction

T = TypeVar("T")

OPEN, SEALED, COMMITTED = "open", "sealed", "committed"
"""The states of a load."""

_ATTEMPTS = 50
_LOST_REPLIES = 5
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Load:
    """A load; a plain value, which may be sent to other processes.

    Attributes:
        table: the name of the table.
        hidden: the id under which rows, or marks, are written.
        history: how many values of each cell the table keeps; see `Table.history`.
        before: the id of the table that had the name when the load began, None if there was none.
        appends: whether the rows go into the table that is there.
        started_s: when it began, in seconds since the epoch.
    """

    id: int
    table: str
    hidden: int
    history: int
    before: int | None
    appends: bool
    started_s: float

    @property
    def key(self) -> bytes:
        """The key of the record."""
        return load_key(self.id)

    def to_bytes(self, state: str) -> bytes:
        """Return the value of the record."""
        fields = {name: getattr(self, name) for name in ("table", "hidden", "history", "before", "appends")}
        return json.dumps({**fields, "started_s": self.started_s, "state": state}).encode()


def load_and_state(key: bytes, record: Record) -> tuple[Load, str]:
    """Return a load and its state, from its record.

    Raises:
        CorruptDataError: the record is damaged.
    """
    try:
        found = json.loads(record.value)
        state = found.pop("state")
        load = Load(id=load_of(key), **found)
        ids = [load.hidden, *(() if load.before is None else (load.before,))]
        valid = all(type(one) is int and 0 <= one < 2 ** (8 * ID_BYTES - 1) for one in ids)
        valid = valid and type(load.history) is int and load.history >= 0 and type(load.appends) is bool
        valid = valid and type(load.started_s) in (int, float) and state in (OPEN, SEALED, COMMITTED)
        check_table_name(load.table)
    except (ValueError, TypeError, KeyError, AttributeError, InvalidRequestError) as error:
        raise CorruptDataError("the record of a load cannot be read: report it", key=key) from error
    if not valid:
        raise CorruptDataError("the record of a load cannot be read: report it", key=key)
    return load, state


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was written: by a task's attempt, or altogether.

    Attributes:
        rows, cells: how many have a value.
        digest: the sum of the digests of all cells; it does not depend on their order.
    """

    rows: int = 0
    cells: int = 0
    digest: int = 0

    def __add__(self, other: Loaded) -> Loaded:
        digest = (self.digest + other.digest) % 2 ** (8 * _DIGEST_BYTES)
        return Loaded(self.rows + other.rows, self.cells + other.cells, digest)


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """What an attempt at a task reports.

    Attributes:
        loaded: what it has written.
        key: of its record, if it has written anything.
        batches: how many batches it has written: the value of its record.
    """

    loaded: Loaded
    key: bytes
    batches: int


def require_open(load: Load, record: Record | None) -> None:
    """Check that the tasks of a load may write.

    Raises:
        FencedError: it has ended: stop.
    """
    if record is None or load_and_state(load.key, record)[1] != OPEN:
        raise FencedError("the load has ended, and takes no more rows: stop", table=load.table)


def require_table(load: Load, record: Record | None) -> None:
    """Check that the name of the table still has the meaning that it had when the load began.

    Args:
        record: the table's definition; None if there is none.

    Raises:
        ConflictError: it has another one: start the load again.
    """
    found = None if record is None else Table.of(load.table, record).id
    if found != load.before:
        raise ConflictError("another table has the name now: start the load again", table=load.table)


def cell_digest(key: bytes, value: bytes) -> int:
    """Return the digest of a cell: for `Loaded`, with its sums."""
    both = blake2b(len(key).to_bytes(2, "big") + key + value, digest_size=_DIGEST_BYTES)
    return int.from_bytes(both.digest(), "big")


def until_known(backend: Backend, function: Callable[[Transaction], T], environment: Environment) -> T:
    """Run a transaction of a load, with its bounds; see `run_until_known`."""
    return run_until_known(backend, function, environment, lost_replies=_LOST_REPLIES, attempts=_ATTEMPTS)
