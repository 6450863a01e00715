"""What a commit touches."""

from __future__ import annotations

from holdfast.transactions.base import Commit, RangeCount
from holdfast.transactions.validation import keys_of_commit


def test_a_commit_locks_all_that_it_names() -> None:
    commit = Commit(
        reads={b"read": 1},
        inserts={b"inserted": b""},
        puts={b"put": b""},
        deletes=[b"deleted"],
        adds={b"added": 1},
        ranges=[RangeCount(guard, b"a", b"b", 0) for guard in (b"first", b"last")],
    )
    names = (b"read", b"inserted", b"put", b"deleted", b"added", b"first", b"last")
    assert keys_of_commit(commit) == set(names)
