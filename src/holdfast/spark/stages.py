"""Ask Spark's driver about its stages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from holdfast.spark.accepted_runs import StageTasks

_BUS_MS = 30_000


def stage_tasks(context: SparkContext) -> Callable[[int], StageTasks | None]:
    """Return a function that looks up the tasks of a stage by the stage's id; None if Spark has forgotten the stage.

    Spark remembers the last ``spark.ui.retainedStages`` stages, by default a thousand, even without a UI. PySpark's own
    status tracker only knows a stage's last attempt, which has fewer tasks if output was lost.
    """
    jvm_context: Any = context._jsc.sc()
    # Completed tasks reach Spark's status store through a queue: wait until the queue is empty.
    with contextlib.suppress(Py4JError):  # a timeout: runs that are not in the store yet are refused later
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
