"""Open databases for the tests of tables, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import pytest

from holdfast.records import CellTransaction, Database
from holdfast.records.tables import read_table
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.transaction import Transaction
from tests.transaction_backends import opened

__all__ = ["FAST", "SERVERS", "Opened", "begin", "memory_db", "open_dbs"]

FAST = ("memory", "sqlite")
SERVERS = ("postgresql", "mysql")


class Opened(NamedTuple):
    """Two handles on one database."""

    db: Database
    other: Database


@contextmanager
def open_dbs(backend: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Open a database twice, as two processes would."""
    with opened(backend, request) as handles:
        yield Opened(*(Database(one, "memory://tests", Environment()) for one in (handles.backend, handles.other)))


def memory_db() -> Database:
    """Return an empty database in memory."""
    return Database(MemoryBackend(), "memory://tests", Environment())


def begin(database: Backend) -> CellTransaction:
    """Begin a transaction whose units and commit the test controls."""
    transaction = Transaction(database)
    return CellTransaction(transaction, partial(read_table, reader=transaction, database=database))
