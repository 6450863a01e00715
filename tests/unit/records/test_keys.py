"""Kinds of records do not overlap: what one part of a database keeps, no other part takes for its own."""

from __future__ import annotations

from holdfast.records import keys


def test_kinds_differ() -> None:
    found = keys.KINDS.values()
    assert len(set(found)) == len(found)
    assert all(len(kind) == 2 for kind in found)
    assert {getattr(keys, name) for name in keys.KINDS} == set(found)
