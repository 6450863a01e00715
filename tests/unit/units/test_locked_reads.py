"""What a unit reads with locks: each record as it is once it is locked."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.transactions.base import ABSENT, Commit, Outcome, Record, ScanPage
from holdfast.units.execution import LockedReads

_GUARD = b"guard"


class _Changing:
    """A transaction beside which others write between a scan and the locks of what it has found."""

    def __init__(self, scanned: dict[bytes, Record], now: dict[bytes, Record]) -> None:
        self._scanned = scanned
        self._now = now

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        return {key: self._now[key] for key in keys if key in self._now}

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        found = [one for one in sorted(self._scanned.items()) if start <= one[0] < end]
        return ScanPage(found[:limit], len(found) > limit, {})

    def apply(self, commit: Commit) -> Outcome:
        raise AssertionError("nothing is committed here")


def test_a_scan_returns_what_it_has_locked() -> None:
    """The commit does not validate locked records: a value that was read before the lock would never be noticed."""
    same, old, new = Record(1, b"same", 0), Record(2, b"old", 5), Record(3, b"new", 6)
    guard = Record(4, b"", 0)
    locked = _Changing(
        {b"a": same, b"b": old, b"c": old, b"d": same}, {_GUARD: guard, b"a": same, b"b": new, b"d": same}
    )
    for limit, expected in ((None, "abd"), (2, "ab"), (3, "abd")):
        reads = LockedReads(locked, exclusive=False)
        found = reads.scan(b"a", b"z", limit, guard=_GUARD)
        assert found == [(key.encode(), new if key == "b" else same) for key in expected], limit
        assert not reads.to_validation().reads


def test_nothing_is_asked_beyond_the_end_of_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record(1, b"", 0)
    locked = _Changing({b"a": record}, {_GUARD: record, b"a": record})
    asked: list[bytes] = []

    def scan(start: bytes, end: bytes, limit: int) -> ScanPage:
        asked.append(start)
        return ScanPage([(b"a", record)] if start == b"a" else [], start == b"a", {})

    monkeypatch.setattr(locked, "scan", scan)
    assert LockedReads(locked, exclusive=False).scan(b"a", b"a\0", None, guard=_GUARD) == [(b"a", record)]
    assert asked == [b"a"]


def test_nothing_is_asked_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record(1, b"", 0)
    cells = dict.fromkeys((b"a", b"b", b"c"), record)
    locked = _Changing(cells, {_GUARD: record, **cells})
    asked: list[int] = []
    scan = locked.scan
    monkeypatch.setattr(locked, "scan", lambda start, end, limit: asked.append(limit) or scan(start, end, limit))
    assert len(LockedReads(locked, exclusive=False).scan(b"a", b"z", 2, guard=_GUARD)) == 2
    assert asked == [2]


def test_absent_records_are_validated() -> None:
    reads = LockedReads(_Changing({}, {b"a": Record(1, b"", 0)}), exclusive=False)
    assert list(reads.get_many([b"a", b"b"])) == [b"a"]
    reads.get_many([b"c"])
    assert reads.to_validation() == Commit(reads={b"b": ABSENT, b"c": ABSENT})


def test_a_range_of_a_dropped_table_is_not_scanned() -> None:
    """Without its guard, others could insert into the range."""
    reads = LockedReads(_Changing({b"a": Record(1, b"", 0)}, {b"a": Record(1, b"", 0)}), exclusive=False)
    with pytest.raises(InvalidRequestError, match="the table was dropped: create it"):
        reads.scan(b"a", b"z", None, guard=_GUARD)
