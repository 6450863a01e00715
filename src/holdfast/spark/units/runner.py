"""Implement `holdfast.TransactionalMap` and `holdfast.TransactionalReduce`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.errors import (
    FencedError,
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.records.opening import open_store, require_url
from holdfast.records.store import Store
from holdfast.runtime import Environment
from holdfast.spark.failures import find_holdfast_error
from holdfast.spark.session import require_session
from holdfast.spark.units.inputs import as_input, run_workers
from holdfast.spark.units.progress_bar import job_progress
from holdfast.spark.units.tasks import UnitsTask, tasks_at_once
from holdfast.transactions.base import Database
from holdfast.units.jobs import MAP, REDUCE, WORK_LIST, Job, begin_job, end_job, list_jobs, read_progress
from holdfast.units.patience import patiently
from holdfast.units.report import JobReport
from holdfast.units.settings import UnitSettings
from holdfast.units.statistics import Statistics
from holdfast.units.unit import UnitFunction, UnitReads
from holdfast.units.work_list import WorkList, find_work_list

__all__ = ["TransactionalMap", "TransactionalReduce"]

_log = logging.getLogger(__name__)

_DEFAULT_WORKERS = 4


class TransactionalMap:
    """Calls a function once for each row, each call as one transaction over a store: a computation unit.

    Worked composition::

        def count(txn, number, row):
            for word in row.line.split():
                txn.add("words", word)

        TransactionalMap(count, store="sqlite:///tmp/words.db").run(lines, key="number")

    Guarantee: when `run` returns, each unit has taken effect exactly once, whatever failed, was repeated or ran twice,
    and all units together had the effect of some serial order. The effects of a unit are visible to everybody from the
    moment it commits. When `run` raises, some units have taken effect; run the job again with its name, and it goes on
    from there.

    Args:
        function: takes a `holdfast.units.unit_transaction.UnitTransaction`, a key and a value. It runs in Spark's
            workers, perhaps several times for one unit, and has no effects but through the transaction.
        store: the URL of a store, which every executor can reach.
        reads: takes a key and a value, and names cells that the unit will read, as (table, row) or (table, row,
            column): those of a whole group of units are then read in one round trip. A hint: nothing depends on it.
        emit_to: name of the work list to which units add with ``txn.emit``.
        settings: those of `holdfast.units.settings.UnitSettings`, such as ``group=1`` or ``timeout_s=600``.

    Source: paper 003 (4.2, 4.3, 4.5).
    """

    _kind = MAP

    def __init__(
        self,
        function: UnitFunction,
        *,
        store: str | Store,
        reads: UnitReads | None = None,
        emit_to: str | None = None,
        **settings: Any,
    ) -> None:
        self._function = function
        self._url = store.full_url if isinstance(store, Store) else require_url(store)
        self._reads = reads
        self._emit_to = emit_to
        self._settings = UnitSettings.of(settings)
        self._environment = Environment()
        _check_function(function, "this is not a function: pass def step(txn, key, value)")
        if reads is not None:
            _check_function(reads, "reads is not a function: pass lambda key, value: [('table', row)]")
        if self._url.startswith("memory:"):
            raise UnsupportedError("a store in memory is in one process: use sqlite:///… or a server")

    def run(
        self, data: Any, *, key: str | Sequence[str] | None = None, job: str | None = None, tasks: int | None = None
    ) -> JobReport:
        """Run the units of a DataFrame's rows, or of an RDD's pairs.

        Args:
            data: a DataFrame, whose rows are the values; or an RDD of pairs of key and value.
            key: the columns that identify a row; for an RDD, the first part of the pairs does.
            job: a name, to go on with the job if it fails. A job that is finished is not run again.
            tasks: how many tasks; by default as many as Spark runs at the same time.

        Raises:
            InvalidRequestError: fix the call, the input or the function; see the message.
            NotFoundError: the store does not exist: create it.
            UnavailableError: the database cannot be reached: run the job again.
            HoldfastError: see `holdfast.errors` for what to do next.
        """
        found = as_input(data, key)
        return self._run(job, tasks, found.parallelism, self._kind, found.run, self._emit_to, found.keys)

    def run_work_list(
        self, spark: SparkSession, work_list: str, *, job: str | None = None, tasks: int | None = None
    ) -> JobReport:
        """Run the units of a work list, and those that they add to it, until nothing is left.

        Args:
            work_list: its name; units add to it with ``txn.emit``.
            tasks: how many long-lived workers; by default as many as Spark runs at the same time. If fewer run at the
                same time, they do all the work, and the others find nothing left to do.

        Raises: see `run`.
        """
        require_session(spark)
        if self._kind == REDUCE:
            raise InvalidRequestError("the keys of a work list have one value each: use TransactionalMap")
        if self._emit_to not in (None, work_list):
            raise InvalidRequestError(
                "the units of a work list add to this list: leave out emit_to", emit_to=self._emit_to, list=work_list
            )
        context = getattr(spark, "sparkContext", None) if hasattr(spark, "_jsparkSession") else None
        parallelism = _DEFAULT_WORKERS if context is None else int(context.defaultParallelism)
        keys = f"work list: {work_list}"
        return self._run(job, tasks, parallelism, WORK_LIST, lambda task: run_workers(spark, task), work_list, keys)

    def _run(
        self,
        name: str | None,
        tasks: int | None,
        parallelism: int,
        kind: str,
        run: Callable[[UnitsTask], list[str]],
        emit_to: str | None,
        keys: str,
    ) -> JobReport:
        environment, clock = self._environment, self._environment.clock
        with closing(open_store(self._url, environment=environment)) as store:
            database = store.database
            work = None if emit_to is None else find_work_list(database, emit_to)
            job = begin_job(
                database,
                name if name is not None else f"{kind.replace(' ', '-')}-{environment.ids.token()}",
                kind=kind,
                shards=tasks,
                default=parallelism,
                keys=keys,
                environment=environment,
            )
            if job.is_finished:
                _log.warning(
                    "the job was finished before, nothing runs: choose another name for new work: %s", job.name
                )
                return replace(JobReport.of(job.report), ran=False)
            earlier = sum(one.done for one in read_progress(database, job))
            before_s = clock.elapsed_s()
            try:
                with job_progress(database, job.name):
                    at_once = self._run_job(job, run, work)
            except FencedError:
                report = _report_of_others(database, job)
                if report is None:
                    raise
                return report
            seconds = clock.elapsed_s() - before_s
            end = partial(self._end, database, job, seconds, earlier=earlier, at_once=at_once)
            try:
                return patiently(end, self._settings.patience_s, environment, Statistics())
            except (UnavailableError, OutcomeUnknownError) as error:
                raise _with_name(error, job) from error

    def _run_job(self, job: Job, run: Callable[[UnitsTask], list[str]], work: WorkList | None) -> int:
        """Run all tasks; return how many ran at the same time, at most."""
        task = UnitsTask(
            function=self._function,
            url=self._url,
            job=job,
            settings=self._settings,
            reads=self._reads,
            is_reduce=job.kind == REDUCE,
            emit_to=work,
        )
        try:
            return tasks_at_once(run(task))
        except (PySparkException, Py4JError) as error:
            cause = find_holdfast_error(error)
            if cause is None:
                raise
            if isinstance(cause, UnavailableError):
                raise _with_name(cause, job) from None
            raise cause from None

    def _end(self, database: Database, job: Job, seconds: float, *, earlier: int, at_once: int) -> JobReport:
        progress = read_progress(database, job)
        assert all(one.is_finished for one in progress), "every task has said that it is finished"
        report = replace(JobReport.of_progress(job, progress, seconds), earlier=earlier, at_once=at_once)
        form = report.to_json()
        ended = end_job(database, job, form, self._environment)
        # If another driver has ended the job, the progress is deleted, and its report tells what was done.
        return report if ended.report == form else JobReport.of(ended.report)


class TransactionalReduce(TransactionalMap):
    """Calls a function once for each key, with the list of its values, each call as one transaction over a store.

    See `TransactionalMap`. The values of a key are in memory together, in no particular order.

    Source: paper 003 (4.5).
    """

    _kind = REDUCE


def _with_name(error: HoldfastError, job: Job) -> HoldfastError:
    """Return an error that says how the job goes on: under a name that the caller perhaps has not chosen."""
    sentence = f"{error.message}; then run the job again with its name, and it goes on"
    return type(error)(sentence, **{**error.variables, "job": job.name})


def _report_of_others(database: Database, job: Job) -> JobReport | None:
    """Return the report of a job that another driver, which has run it at the same time, has ended; else None."""
    found = next((one for one in list_jobs(database) if one.id == job.id), None)
    return JobReport.of(found.report) if found is not None and found.is_finished else None


def _check_function(function: object, sentence: str) -> None:
    """Check that a function can be sent to tasks.

    Args:
        sentence: the message if it is none.

    Raises:
        InvalidRequestError: it cannot.
    """
    if not callable(function):
        raise InvalidRequestError(sentence, type=type(function).__name__)
    from pyspark import cloudpickle

    try:
        cloudpickle.dumps(function)  # type: ignore[no-untyped-call] # PySpark's copy of cloudpickle has no types
    except Exception as error:
        raise InvalidRequestError(
            "the function cannot be sent to Spark's tasks: let it make what it needs itself, such as connections",
            error=f"{type(error).__name__}: {error}"[:200],
        ) from error
