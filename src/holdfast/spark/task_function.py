"""A function as Spark's tasks run it for `holdfast.job`: each run is a task attempt, and reports to the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark import Accumulator, AccumulatorParam, TaskContext

from holdfast.commit import JobRecord, get_committer
from holdfast.commit.magic.layout import magic_work_path
from holdfast.errors import InvalidRequestError
from holdfast.options.parsing import JobOptions
from holdfast.spark.failures import one_sentence
from holdfast.spark.task_files import Task
from holdfast.spark.task_reports import PARTITIONS, Run, RunReport, mark_run

__all__ = ["Reports", "TaskFunction"]

_USES = 1000  # a task number has nine digits at most


class Reports(AccumulatorParam[list[RunReport]]):
    """Gathers the reports of accepted tasks in the driver."""

    def zero(self, value: list[RunReport]) -> list[RunReport]:
        return []

    def addInPlace(self, value1: list[RunReport], value2: list[RunReport]) -> list[RunReport]:
        value1.extend(value2)
        return value1


class TaskFunction:
    """``function(task, rows)`` as a function of the rows alone.

    Spark pickles it once for every DataFrame or RDD that is made with it: each of these uses has tasks of its own.

    Args:
        uses: the job's count of uses, in the driver.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: JobOptions,
        record: JobRecord,
        reports: Accumulator[list[RunReport]],
        uses: Iterator[int],
    ) -> None:
        self._function = function
        self._options = options
        self._record = record
        self._reports = reports
        self._uses = uses

    def __reduce__(self) -> tuple[object, ...]:
        use = next(self._uses)
        if use >= _USES:
            raise InvalidRequestError(
                f"the functions of a job can be used {_USES} times: write fewer, larger data sets"
            )
        return TaskFunction, (self._function, self._options, self._record, self._reports, _Fixed(use))

    def __call__(self, rows: Iterable[Any]) -> Iterator[Any]:
        with one_sentence():
            yield from self._run(rows)

    def _run(self, rows: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        if context is None:
            raise InvalidRequestError("a job's functions run in Spark's tasks: give them to mapPartitions or the like")
        partition, use = context.partitionId(), next(self._uses)
        if partition >= PARTITIONS:
            raise InvalidRequestError(f"a job has at most {PARTITIONS} partitions: coalesce them", partition=partition)
        committer = get_committer(self._options.committer)
        number = use * PARTITIONS + partition
        with (
            contextlib.closing(self._options.open()) as ctx,
            committer.setup_task(ctx, self._record, number) as attempt,
        ):
            run = Run(
                task=number,
                stage=context.stageId(),
                spark_task=context.taskAttemptId(),
                attempt=attempt.owner.attempt,
            )
            mark_run(ctx, self._record.job, run)
            work_path = f"{ctx.url.rstrip('/')}/{magic_work_path(attempt.owner)}" if committer.name == "magic" else ""
            task = Task(attempt, partition, work_path)
            results = self._function(task, rows)
            if results is not None:
                yield from results
            task.end()
            self._reports.add([RunReport(run=run, commit=attempt.commit())])


class _Fixed:
    """The use that a function was sent to Spark for: the same number for ever."""

    def __init__(self, use: int) -> None:
        self._use = use

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return self._use
