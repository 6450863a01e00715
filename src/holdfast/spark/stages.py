"""What Spark's driver remembers of a stage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from holdfast.spark.task_reports import StageTasks

__all__ = ["stage_tasks"]

_BUS_MS = 30_000


def stage_tasks(context: SparkContext) -> Callable[[int], StageTasks | None]:
    """A function that tells of a stage how many tasks it has, None if Spark has forgotten it.

    Spark keeps the last ``spark.ui.retainedStages`` stages, a thousand by default, also without a UI. PySpark's own
    status tracker knows a stage's last attempt only, which has fewer tasks where output was lost.
    """
    jvm_context: Any = context._jsc.sc()
    # What has ended is told to the store by way of a queue.
    with contextlib.suppress(Py4JError):  # a driver so busy has not forgotten: what is not told yet is refused
        jvm_context.listenerBus().waitUntilEmpty(_BUS_MS)
    store = jvm_context.statusStore()

    def tasks_of(stage: int) -> StageTasks | None:
        try:
            defaults = [getattr(store, f"stageData$default${number}")() for number in (2, 3, 4, 5)]
            found = store.stageData(stage, *defaults)
        except Py4JError:
            return None
        attempts = [found.apply(number) for number in range(found.size())]
        if not any(attempt.attemptId() == 0 for attempt in attempts):
            return None
        last = max(attempts, key=lambda attempt: int(attempt.attemptId()))
        return StageTasks(
            count=max(int(attempt.numTasks()) for attempt in attempts),
            complete=str(last.status().toString()) == "COMPLETE",
        )

    return tasks_of
