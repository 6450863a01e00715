"""Kinds of records do not overlap: what one part of a store keeps, no other part takes for its own."""

from __future__ import annotations

from holdfast.records import kinds
from holdfast.records.loads import abort_load, begin_load
from holdfast.units.open_work_list import open_work_list
from holdfast.units.work_list import list_work_lists
from tests.unit.records.stores import memory_store


def test_kinds_differ() -> None:
    found = kinds.KINDS.values()
    assert len(set(found)) == len(found)
    assert all(len(kind) == 2 for kind in found)
    assert {getattr(kinds, name) for name in kinds.KINDS} == set(found)


def test_a_load_is_no_work_list() -> None:
    store = memory_store()
    load = begin_load(store.database, store.environment, "words", overwrite=False)
    assert list_work_lists(store.database) == []
    open_work_list(store, "frontier", create=True)
    assert [one.name for one in list_work_lists(store.database)] == ["frontier"]
    assert not abort_load(store.database, store.environment, load)
    assert [one.name for one in list_work_lists(store.database)] == ["frontier"]
    assert store.collect(loads_older_than_s=0) == 0
