"""Transactions of a history as values: what they read, what they wrote, and what is wrong with them."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from holdfast.checker.histories.history import Operation

__all__ = ["Anomaly", "Level", "Read", "Transaction", "Versions", "Write", "transactions_of"]


class Level(enum.Enum):
    """What is promised."""

    SERIALIZABLE = "serializable"
    SNAPSHOT_ISOLATION = "snapshot isolation"


@dataclass(frozen=True, slots=True)
class Read:
    """A version of a key that was read; what was there at the start, or absence, is a version too."""

    key: str
    version: Hashable


@dataclass(frozen=True, slots=True)
class Write:
    """A version of a key that a transaction would install: no other write of the key has the same."""

    key: str
    version: Hashable


@dataclass(frozen=True, slots=True)
class Transaction:
    """One try at a transaction: its reads and writes in its own order. A retry is another one."""

    operation: Operation
    actions: tuple[Read | Write, ...]

    def __str__(self) -> str:
        did = [f"{'read' if isinstance(a, Read) else 'wrote'} {a.key}={a.version!r}" for a in self.actions]
        return f"{self.operation.who}: {self.operation.name} ({', '.join(did)})"


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a key.

    Attributes:
        order: as they were installed, the one at the start first.
        rest: installed after these, in an order that nobody knows.
    """

    order: tuple[Hashable, ...]
    rest: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What is wrong with a history.

    Attributes:
        name: of the kind: ``G-single``.
        words: the proof.
        transactions: those that it is about.
    """

    name: str
    words: str
    transactions: tuple[Transaction, ...]


def transactions_of(operations: Iterable[Operation]) -> list[Transaction]:
    """Transactions whose actors wrote their reads and writes down with `note`, before they asked for the commit.

    One without notes never asked for it, and neither did anything.
    """
    return [
        Transaction(one, tuple(action for action in one.notes if isinstance(action, Read | Write)))
        for one in operations
        if one.notes
    ]
