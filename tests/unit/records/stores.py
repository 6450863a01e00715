"""Open stores for the tests of tables, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from holdfast.records import CellTransaction, Store
from holdfast.records.tables import TablesRead
from holdfast.runtime import Environment
from holdfast.transactions.base import Database
from holdfast.transactions.memory.store import MemoryTransactionStore
from holdfast.transactions.transaction import Transaction
from tests.transaction_backends import opened

__all__ = ["FAST", "SERVERS", "Stores", "begin", "memory_store", "open_stores"]

FAST = ("memory", "sqlite")
SERVERS = ("postgresql", "mysql")


class Stores(NamedTuple):
    """Two handles on one database."""

    store: Store
    other: Store


@contextmanager
def open_stores(backend: str, request: pytest.FixtureRequest) -> Iterator[Stores]:
    """Open a store twice, as two processes would."""
    with opened(backend, request) as handles:
        yield Stores(*(Store(one, "memory://tests", Environment()) for one in (handles.store, handles.other)))


def memory_store() -> Store:
    """Return an empty store in memory."""
    return Store(MemoryTransactionStore(), "memory://tests", Environment())


def begin(database: Database) -> CellTransaction:
    """Begin a transaction whose units and commit the test controls."""
    transaction = Transaction(database)
    return CellTransaction(transaction, TablesRead(transaction, database))
