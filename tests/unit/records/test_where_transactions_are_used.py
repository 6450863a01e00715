"""A transaction is used while its function runs, in its process: what is written elsewhere would be lost in silence."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.records import CellTransaction, Database
from tests.children import Child
from tests.unit.records.databases import memory_db


@pytest.fixture
def db() -> Database:
    found = memory_db()
    found.create_table("t", exist_ok=True)
    return found


def test_a_child_is_told_that_it_cannot_write(db: Database) -> None:
    def function(cells: CellTransaction) -> str:
        cells.add("t", "n")
        return Child(lambda: _refusal(cells)).result()

    assert "belongs to the process that began it" in db.transact(function)
    assert db.get("t", "n") == 1


def test_a_transaction_that_was_kept_writes_nothing(db: Database) -> None:
    kept: list[CellTransaction] = []
    db.transact(kept.append)
    assert "the transaction is over" in _refusal(kept[0])


def _refusal(cells: CellTransaction) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        cells.put("t", "n", 5)
    with pytest.raises(InvalidRequestError):
        cells.get("t", "n")
    return caught.value.message
