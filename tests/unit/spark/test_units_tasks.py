"""Test what tasks of units do around their units."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

import holdfast.spark.units.tasks as tasks
from holdfast.errors import UnavailableError
from holdfast.records.database import Database
from holdfast.records.opening import open_database
from holdfast.runtime import Environment
from holdfast.spark.units.tasks import UnitsTask
from holdfast.units.connections import database_of_process
from holdfast.units.job_input import JobInput, surveyed
from holdfast.units.jobs import MAP, WORK_LIST, begin_job
from holdfast.units.open_work_list import open_work_list
from holdfast.units.settings import UnitSettings
from holdfast.units.unit import id_of
from holdfast.units.work_list import find_work_list


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
            return database_of_process(url)

        monkeypatch.setattr(tasks, "database_of_process", reluctant)
        task = UnitsTask(
            function=lambda txn, key, value: txn.put("t", key, value),
            url=url,
            job=job,
            run="run",
            job_input=JobInput([surveyed([id_of(1)], repeats=False)]),
            settings=UnitSettings(),
            reads=None,
            is_reduce=False,
            emit_to=find_work_list(db.backend, "list"),
        )
        (figures,) = task.run_worker(0) if kind == WORK_LIST else task.run_shard(0, [(1, "one")])
        assert json.loads(figures)["units"] == 1
        assert next(refusals, None) is None
        assert db.get("t", 1) == "one"
        database_of_process(url).close()
