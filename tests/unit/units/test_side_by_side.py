"""Tables, loads, jobs and work lists of one database do not get in each other's way."""

from __future__ import annotations

from holdfast.records.load_task import LoadTask
from holdfast.records.loads import begin_load, finish_load
from holdfast.units.jobs import list_jobs
from holdfast.units.open_work_list import open_work_list
from holdfast.units.work_list import list_work_lists
from tests.units_world import UnitWorld


def test_everything_is_listed_and_collected_beside_everything_else() -> None:
    world = UnitWorld()
    db, database, environment = world.db, world.inner, world.environment
    work = open_work_list(db, "frontier", create=True)
    work.add(1)
    load = begin_load(database, environment, "loaded", overwrite=True)
    task = LoadTask(database, environment, load, 0)
    task.write([("row", {"value": 1})])
    db.create_table("dropped")
    db.drop_table("dropped")
    db.collect(loads_older_than_s=3600)
    assert [one.name for one in list_work_lists(database)] == ["frontier"]
    assert [one.name for one in list_jobs(database)] == ["job"]
    finish_load(database, environment, load, [task.finish()])
    assert [one.name for one in db.tables()] == ["loaded", "t"]
    assert work.counts() == (1, 0)
    work.drop()
    assert list_work_lists(database) == []
    assert db.get("loaded", "row") == 1
