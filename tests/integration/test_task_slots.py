"""An application that runs fewer tasks at a time than it has cores is noticed, and ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import SparkSession

from tests.integration import task_slots
from tests.integration.spark_session import new_session
from tests.integration.task_slots import free_slots, require_all_slots

pytestmark = pytest.mark.spark


def test_slots_are_free_when_tasks_have_ended(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    context = spark.sparkContext
    with pytest.raises(Exception, match="ZeroDivisionError"):
        context.parallelize(range(8), 8).map(lambda number: 1 // (number - 5)).count()
    assert free_slots(context) == (2, 2)
    require_all_slots(context, "tests/this_module.py")
    read = task_slots._number
    monkeypatch.setattr(task_slots, "_number", lambda *given: 2 if given[-1] == "CPUS_PER_TASK" else read(*given))
    assert free_slots(context) == (1, 2)


@pytest.mark.slow
def test_after_the_death_of_the_jvm_the_next_module_gets_another(spark: SparkSession) -> None:
    context = spark.sparkContext
    process = context._gateway.proc
    process.kill()
    process.wait()
    with pytest.raises(AssertionError, match=r"JVM has died with exit code -9 before the end of tests/this_module\.py"):
        require_all_slots(context, "tests/this_module.py")
    assert new_session().range(3).count() == 3


def test_an_application_that_has_lost_a_slot_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    context: Any = SimpleNamespace(stop=lambda: ended.append("application"))
    monkeypatch.setattr(task_slots, "free_slots", lambda _context: (1, 2))
    with pytest.raises(AssertionError, match=r"1 free slots for tasks on 2 cores after tests/this_module\.py"):
        require_all_slots(context, "tests/this_module.py")
    assert ended == ["application"]
