"""What a driver does before and after its tasks: here, they run in its own process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.errors import InvalidRequestError
from holdfast.records.opening import open_store
from holdfast.spark.units import runner
from holdfast.spark.units.tasks import UnitsTask
from holdfast.units.connections import store_of_process
from holdfast.units.open_work_list import open_work_list


def fail_or_count(txn: Any, key: str, value: object) -> None:
    if value == "bad":
        raise ValueError("bad")
    txn.add("t", key)


def test_a_job_goes_on_with_the_work_list_with_which_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_this_process(_spark: object, task: UnitsTask) -> list[str]:
        return list(task.run_worker(0))

    spark: Any = None
    monkeypatch.setattr(runner, "require_session", lambda _spark: None)
    monkeypatch.setattr(runner, "run_workers", in_this_process)
    url = f"sqlite://{tmp_path}/store.db"
    with open_store(url, create=True) as store:
        store.create_table("t")
        first, other = (open_work_list(store, name, create=True) for name in ("first", "other"))
        first.add("a", "bad")
        other.add("b")
        units = runner.TransactionalMap(fail_or_count, store=store)
        with pytest.raises(InvalidRequestError, match="unit='a'"):
            units.run_work_list(spark, "first", job="j", tasks=1)
        with pytest.raises(InvalidRequestError, match="keys='work list: first' given='work list: other'"):
            units.run_work_list(spark, "other", job="j")
        assert other.counts() == (1, 0)
        first.drop()
        open_work_list(store, "first", create=True).add("a")
        assert units.run_work_list(spark, "first", job="j").total.units == 1
        assert dict(store.scan("t")) == {"a": {"value": 1}}
    store_of_process(url).close()
