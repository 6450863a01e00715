"""Represent the transactions of a history: what they read, what they wrote, and what is wrong with them."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from holdfast_checker.histories.history import Operation


class Level(enum.Enum):
    """The isolation level that is promised."""

    SERIALIZABLE = "serializable"
    SNAPSHOT_ISOLATION = "snapshot isolation"


@dataclass(frozen=True, slots=True)
class Read:
    """A version of a key that a transaction read. The initial version, which may be absence, counts as a version."""

    key: str
    version: Hashable


@dataclass(frozen=True, slots=True)
class Write:
    """A version of a key that a transaction would install; no other write of the key has the same version."""

    key: str
    version: Hashable


@dataclass(frozen=True, slots=True)
class Transaction:
    """One attempt at a transaction: its reads and writes, in their order. A retry is another transaction."""

    operation: Operation
    actions: tuple[Read | Write, ...]

    def __str__(self) -> str:
        did = [f"{'read' if isinstance(a, Read) else 'wrote'} {a.key}={a.version!r}" for a in self.actions]
        return f"{self.operation.who}: {self.operation.name} ({', '.join(did)})"


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a key.

    Attributes:
        order: versions in the order of their installation, the initial one first.
        rest: versions that were installed after those in `order`, in unknown order.
    """

    order: tuple[Hashable, ...]
    rest: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What is wrong with a history.

    Attributes:
        name: name of the kind, such as ``G-single``.
        words: an explanation that proves the anomaly.
        transactions: the transactions involved.
    """

    name: str
    words: str
    transactions: tuple[Transaction, ...]


def transactions_of(operations: Iterable[Operation]) -> list[Transaction]:
    """Return the transactions in a history. Actors must `note` reads and writes before they request the commit.

    An operation without notes never requested the commit, and did nothing.
    """
    return [
        Transaction(one, tuple(action for action in one.notes if isinstance(action, Read | Write)))
        for one in operations
        if one.notes
    ]
