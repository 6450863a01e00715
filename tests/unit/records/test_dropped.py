"""What is left of a dropped table or work list is deleted, of every kind, and nothing else."""

from __future__ import annotations

import pytest

from holdfast.records.batches import delete_dropped_tables
from holdfast.records.keys import BEAT, CELL, HISTORY, WORK, dropped_mark_key, id_bytes
from holdfast.transactions.base import Commit
from holdfast.transactions.memory import MemoryBackend


@pytest.mark.parametrize("kind", [CELL, HISTORY, WORK, BEAT])
def test_records_of_each_kind_go_before_the_mark(kind: bytes) -> None:
    db = MemoryBackend()
    other = kind + id_bytes(6) + b"a"
    db.commit(
        Commit(puts=dict.fromkeys([dropped_mark_key(5), kind + id_bytes(5) + b"a", kind + id_bytes(5), other], b""))
    )
    assert delete_dropped_tables(db) == 2
    assert [key for key, _record in db.scan(b"", b"\xff" * 9, 10).records] == [other]
