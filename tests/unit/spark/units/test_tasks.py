"""What a task does with its pairs: a key with many values is one unit of a reduce, however many there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.errors import FencedError, UnavailableError
from holdfast.records.database import Database, open_database
from holdfast.runtime import Environment
from holdfast.spark.units import tasks
from holdfast.spark.units.tasks import UnitsTask, open_database_for_task
from holdfast.units.job_input import JobInput, digest_task_units
from holdfast.units.jobs import MAP, REDUCE, WORK_LIST, begin_job
from holdfast.units.unit import UnitSettings, encode_unit_id
from holdfast.units.work_list import find_work_list, open_work_list
from tests.units_world import UnitWorld


def put_values(txn: Any, key: str, values: list[int]) -> None:
    txn.put("t", key, values)


def test_a_key_with_many_values_is_one_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    world = UnitWorld()
    monkeypatch.setattr(tasks, "open_database_for_task", lambda _url: world.db)
    job = begin_job(world.inner, "sizes", kind=REDUCE, shards=1, environment=world.environment)
    sizes = {"a": 1, "b": 5000, "c": 2}
    rows = (encode_unit_id(key) for key, size in sizes.items() for _ in range(size))
    task = tasks.UnitsTask(
        function=put_values,
        url="",
        job=job,
        run="run",
        job_input=JobInput([digest_task_units(rows, repeats=True)]),
        settings=UnitSettings(),
        reads=None,
        is_reduce=True,
        emit_to=None,
    )
    list(task.run_shard(0, ((key, number) for key, size in sizes.items() for number in range(size))))
    assert world.cells == {(key, "value"): list(range(size)) for key, size in sizes.items()}


def test_a_worker_that_starts_again_takes_nothing_from_another_list_of_this_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark starts a task again that has failed because its list was dropped; the new list is for another job."""
    world = UnitWorld()
    monkeypatch.setattr(tasks, "open_database_for_task", lambda _url: world.db)
    items = open_work_list(world.db, "list", create=True)
    job = begin_job(world.inner, "old", kind=WORK_LIST, shards=1, environment=world.environment)
    task = tasks.UnitsTask(
        function=put_values,
        url="",
        job=job,
        run="run",
        job_input=None,
        settings=UnitSettings(),
        reads=None,
        is_reduce=False,
        emit_to=find_work_list(world.inner, "list"),
    )
    items.drop()
    anew = open_work_list(world.db, "list", create=True)
    anew.add("a", 1)
    for _attempt in range(2):
        with pytest.raises(FencedError, match="the work list was dropped meanwhile"):
            list(task.run_worker(0))
    assert anew.counts() == (1, 0)
    assert not world.cells


@pytest.mark.parametrize("kind", [MAP, WORK_LIST])
def test_a_task_that_begins_waits_for_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Spark starts a task only a few times, and all of that takes no longer than a database needs to start."""
    url = f"sqlite://{tmp_path}/database.db"
    with open_database(url, create=True) as db:
        db.create_table("t")
        job = begin_job(db.backend, "j", kind=kind, shards=1, environment=Environment())
        open_work_list(db, "list", create=True).add(1, "one")
        refusals = iter([1, 2])

        def reluctant(url: str) -> Database:
            if next(refusals, None):
                raise UnavailableError("the database accepts no connections now")
            return open_database_for_task(url)

        monkeypatch.setattr(tasks, "open_database_for_task", reluctant)
        task = UnitsTask(
            function=lambda txn, key, value: txn.put("t", key, value),
            url=url,
            job=job,
            run="run",
            job_input=JobInput([digest_task_units([encode_unit_id(1)], repeats=False)]),
            settings=UnitSettings(),
            reads=None,
            is_reduce=False,
            emit_to=find_work_list(db.backend, "list"),
        )
        assert list(task.run_worker(0) if kind == WORK_LIST else task.run_shard(0, [(1, "one")])) == [(0, b"")]
        assert next(refusals, None) is None
        assert db.get("t", 1) == "one"
