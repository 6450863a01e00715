"""The database in memory, in which the checker and many tests keep their records."""

from __future__ import annotations

import threading

from holdfast.transactions.base import Commit
from holdfast.transactions.memory import MemoryBackend
from tests.patience import PATIENCE_S


def test_a_snapshot_waits_for_who_has_locked_the_backend() -> None:
    backend = MemoryBackend()
    seen: list[int] = []

    def look() -> None:
        with backend.snapshot() as reader:
            seen.append(len(reader.get_many([b"a", b"b"])))

    other = threading.Thread(target=look)
    with backend.begin_locking_transaction():
        other.start()
        other.join(0.1)
        backend.commit(Commit(puts={b"a": b"", b"b": b""}))
    other.join(PATIENCE_S)
    assert seen == [2]
