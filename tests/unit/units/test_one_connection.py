"""Units whose reads are locked use one connection: a worker may have no other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.records.row_keys import Row
from holdfast.transactions.base import LockingTransaction, Record, ScanPage
from holdfast.units.unit import SERVER, UnitSettings
from tests.units_world import Shaky, UnitWorld, replayed, units

_SERVER = UnitSettings(buffering=SERVER)


class _OneConnection(Shaky):
    """A database with one connection, which a transaction with locks keeps."""

    is_busy = False

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        self._check()
        return super().get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self._check()
        return super().scan(start, end, limit, guards)

    def _check(self) -> None:
        if self.is_busy:
            raise UnavailableError("all connections to the database are busy")

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        with super().begin_locking_transaction() as transaction:
            self.is_busy = True
            try:
                yield transaction
            finally:
                self.is_busy = False


def step(txn: Any, key: Row, value: object) -> None:
    txn.put("t", key, len(txn.scan("t")))
    txn.put("t", "last", [txn.get("t", "last"), key][1])


def test_one_connection_is_enough() -> None:
    world = UnitWorld()
    world.task(step, _SERVER, database=_OneConnection(world.inner)).run(units("abc"))
    assert world.cells == replayed(step, "abc")


def test_a_missing_table_is_told() -> None:
    world = UnitWorld()

    def missing(txn: Any, key: Row, value: object) -> None:
        txn.get("u", key)

    with pytest.raises(InvalidRequestError, match=r"no such table.*table='u'.*unit='a'"):
        world.task(missing, _SERVER, database=_OneConnection(world.inner)).run(units("abc"))
