"""Kinds of records do not overlap: what one part of a database keeps, no other part takes for its own."""

from __future__ import annotations

from holdfast.records import keys
from holdfast.records.loads import abort_load, begin_load
from holdfast.units.open_work_list import open_work_list
from holdfast.units.work_list import list_work_lists
from tests.unit.records.databases import memory_db


def test_kinds_differ() -> None:
    found = keys.KINDS.values()
    assert len(set(found)) == len(found)
    assert all(len(kind) == 2 for kind in found)
    assert {getattr(keys, name) for name in keys.KINDS} == set(found)


def test_a_load_is_no_work_list() -> None:
    db = memory_db()
    load = begin_load(db.backend, db.environment, "words", overwrite=False)
    assert list_work_lists(db.backend) == []
    open_work_list(db, "frontier", create=True)
    assert [one.name for one in list_work_lists(db.backend)] == ["frontier"]
    assert not abort_load(db.backend, db.environment, load)
    assert [one.name for one in list_work_lists(db.backend)] == ["frontier"]
    assert db.collect(loads_older_than_s=0) == 0
