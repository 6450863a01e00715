"""Run a function of `holdfast.job` in Spark's tasks: each run is a task attempt, which reports to the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark import Accumulator, AccumulatorParam, TaskContext

from holdfast.commit import JobRecord, get_committer
from holdfast.errors import InvalidRequestError
from holdfast.options.job import JobOptions
from holdfast.spark.accepted_runs import mark_run
from holdfast.spark.failures import one_sentence
from holdfast.spark.task_files import Task
from holdfast.spark.task_report import PARTITIONS, Run, TaskReport

_USES = 1000  # a task number has at most nine digits


class Reports(AccumulatorParam[list[TaskReport]]):
    """An accumulator that collects the reports of accepted tasks on the driver."""

    def zero(self, value: list[TaskReport]) -> list[TaskReport]:
        return []

    def addInPlace(self, value1: list[TaskReport], value2: list[TaskReport]) -> list[TaskReport]:
        value1.extend(value2)
        return value1


class TaskFunction:
    """Wrap ``function(task, rows)`` as a function that takes only the rows.

    Spark pickles the wrapped function once for every DataFrame or RDD that is made with it. Each of these *uses* of the
    function gets its own task numbers in the job.

    Args:
        uses: yields a new number for each use; only the driver has it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: JobOptions,
        record: JobRecord,
        reports: Accumulator[list[TaskReport]],
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
            raise InvalidRequestError("a job's functions run in Spark tasks: pass them to mapPartitions or the like")
        partition, use = context.partitionId(), next(self._uses)
        if partition >= PARTITIONS:
            raise InvalidRequestError(f"a job has at most {PARTITIONS} partitions: coalesce them", partition=partition)
        committer = get_committer(self._options.committer)
        number = use * PARTITIONS + partition
        store, settings = self._options.store, self._options.settings
        with (
            store.open(settings, committer=committer.name) as ctx,
            committer.setup_task(ctx, self._record, number) as attempt,
        ):
            run = Run.of(context, number, attempt.owner.attempt)
            mark_run(ctx, self._record.job, run)
            work_path = committer.work_path(attempt.owner)
            task = Task(attempt, partition, f"{ctx.url.rstrip('/')}/{work_path}" if work_path else "")
            results = self._function(task, rows)
            if results is not None:
                yield from results
            task.end()
            self._reports.add([TaskReport(run, attempt.commit())])


class _Fixed:
    """A stand-in for `uses` in tasks: it always yields the number of the use for which the function was pickled."""

    def __init__(self, use: int) -> None:
        self._use = use

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return self._use
