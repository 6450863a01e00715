"""Test what a transaction of cells counts as written: a group of units ends when it is too much for one commit."""

from __future__ import annotations

from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.database import Database
from holdfast.records.tables import TableCache
from holdfast.records.values import encode_value
from holdfast.runtime import Environment
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.transaction import Transaction


def begun() -> CellTransaction:
    environment = Environment()
    database = MemoryBackend(environment.ids)
    Database(database, "memory://written-bytes", environment).create_table("t")
    return CellTransaction(Transaction(database), TableCache(database).get)


def test_values_of_units_that_ended_count_once() -> None:
    cells = begun()
    cells.put("t", "a", b"12345")
    assert cells.written_bytes == 0, "the unit has not ended"
    cells.end_unit()
    first = cells.written_bytes
    assert first == len(encode_value(b"12345"))
    cells.put("t", "a", b"54321")
    cells.put("t", "b", b"12345")
    cells.end_unit()
    assert cells.written_bytes == 2 * first
    cells.put("t", "c", b"12345")
    cells.drop_unit()
    cells.delete("t", "a")
    cells.add("t", "d", 5)
    cells.end_unit()
    assert cells.written_bytes == first
