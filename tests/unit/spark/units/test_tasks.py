"""What a task does with its pairs: a key with many values is one unit of a reduce, however many there are."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.spark.units import tasks
from holdfast.units.jobs import REDUCE, begin_job
from holdfast.units.settings import UnitSettings
from tests.units_world import UnitWorld


def put_values(txn: Any, key: str, values: list[int]) -> None:
    txn.put("t", key, values)


def test_a_key_with_many_values_is_one_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    world = UnitWorld()
    monkeypatch.setattr(tasks, "store_of_process", lambda _url: world.store)
    job = begin_job(world.inner, "sizes", kind=REDUCE, shards=1, environment=world.environment)
    task = tasks.UnitsTask(
        function=put_values, url="", job=job, settings=UnitSettings(), reads=None, is_reduce=True, emit_to=None
    )
    sizes = {"a": 1, "b": 5000, "c": 2}
    list(task.run_shard(0, ((key, number) for key, size in sizes.items() for number in range(size))))
    assert world.cells == {(key, "value"): list(range(size)) for key, size in sizes.items()}
