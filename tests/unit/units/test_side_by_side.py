"""Tables, jobs and work lists of one database do not get in each other's way."""

from __future__ import annotations

from holdfast.units.jobs import list_jobs
from holdfast.units.work_list import list_work_lists, open_work_list
from tests.units_world import UnitWorld


def test_everything_is_listed_and_collected_beside_everything_else() -> None:
    world = UnitWorld()
    db, database = world.db, world.inner
    work = open_work_list(db, "frontier", create=True)
    work.add(1)
    db.create_table("dropped")
    db.drop_table("dropped")
    db.collect()
    assert [one.name for one in list_work_lists(database)] == ["frontier"]
    assert [one.name for one in list_jobs(database)] == ["job"]
    assert [one.name for one in db.tables()] == ["t"]
    assert work.counts() == (1, 0)
    work.drop()
    assert list_work_lists(database) == []
