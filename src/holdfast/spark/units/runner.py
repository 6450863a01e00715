"""Implement `holdfast.TransactionalMap` and `holdfast.TransactionalReduce`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import (
    ConflictError,
    FencedError,
    HoldfastError,
    InputChangedError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from holdfast.records.database import Database, open_database, require_database_url
from holdfast.runtime import Environment
from holdfast.spark.failures import unwrap_task_errors
from holdfast.spark.session import require_session
from holdfast.spark.units.inputs import parse_input, run_workers
from holdfast.spark.units.streams import check_job_prefix, find_current_stream_batch
from holdfast.spark.units.tasks import UnitsTask
from holdfast.transactions.base import Backend
from holdfast.units.job_input import JobInput
from holdfast.units.jobs import (
    MAP,
    REDUCE,
    WORK_LIST,
    Job,
    begin_job,
    changed_input_error,
    delete_job_without_input,
    end_job,
    list_jobs,
    read_task_progress,
    record_job_input,
    record_run_failure,
)
from holdfast.units.progress import LIST_DROPPED, Statistics
from holdfast.units.report import JobReport, poll
from holdfast.units.unit import UnitFunction, UnitReads, UnitSettings
from holdfast.units.unit_loop import retry_while_unavailable
from holdfast.units.work_list import WorkList, find_work_list, release_all_claims

_log = logging.getLogger(__name__)

T = TypeVar("T")

_DEFAULT_WORKERS = 4


class _PreparedJob(NamedTuple):
    """What a job will do.

    Attributes:
        run: runs all tasks.
        job_input: see `UnitsTask`.
    """

    run: Callable[[UnitsTask], None]
    job_input: JobInput | None = None


class TransactionalMap:
    """Calls a function once for each row, each call as one transaction over a database: a computation unit.

    Worked composition::

        def count(txn, number, row):
            for word in row.line.split():
                txn.add("words", word)

        TransactionalMap(count, database="sqlite:///tmp/words.db").run(lines, key="number")

    Guarantee: when `run` returns, each unit has taken effect exactly once, whatever failed, was repeated or ran twice,
    and all units together had the effect of some serial order. The effects of a unit are visible to everybody from the
    moment it commits. When `run` raises, some units have taken effect, and no other one does afterwards; run the job
    again with its name and the same rows, and it goes on from there. With other rows it is refused as a whole.

    Args:
        function: takes a `holdfast.units.unit.UnitTransaction`, a key and a value. It runs in Spark's
            workers, perhaps several times for one unit, and has no effects but through the transaction.
        database: the URL of a database, which every executor can reach.
        reads: takes a key and a value, and names cells that the unit will read, as (table, row) or (table, row,
            column): those of a whole group of units are then read in one round trip. A hint: nothing depends on it.
        emit_to: name of the work list to which units add with ``txn.emit``.
        settings: those of `holdfast.units.unit.UnitSettings`, such as ``group=1`` or ``timeout_s=600``.

    Source: paper 003 (4.2, 4.3, 4.5).
    """

    _kind = MAP

    def __init__(
        self,
        function: UnitFunction,
        *,
        database: str | Database,
        reads: UnitReads | None = None,
        emit_to: str | None = None,
        **settings: Any,
    ) -> None:
        self._function = function
        self._url = database.full_url if isinstance(database, Database) else require_database_url(database)
        self._reads = reads
        self._emit_to = emit_to
        self._settings = UnitSettings.of(settings)
        self._environment = Environment()
        _require_serializable_function(function, "this is not a function: pass def step(txn, key, value)")
        if reads is not None:
            _require_serializable_function(reads, "reads is not a function: pass lambda key, value: [('table', row)]")
        if self._url.startswith("memory:"):
            raise UnsupportedError("a database in memory is in one process: use sqlite:///… or a server")

    def run(
        self, data: Any, *, key: str | Sequence[str] | None = None, job: str | None = None, tasks: int | None = None
    ) -> JobReport:
        """Run the units of a DataFrame's rows, or of an RDD's pairs.

        Args:
            data: a DataFrame, whose rows are the values; or an RDD of pairs of key and value.
            key: the columns that identify a row; for an RDD, the first part of the pairs does.
            job: a name, to go on with the job if it fails. A job that is finished is not run again, and refuses other
                rows than it had.
            tasks: how many tasks; by default as many as Spark runs at the same time.

        Raises:
            InvalidRequestError: fix the call, the input or the function; see the message.
            InputChangedError: the job began with other rows, another key, kind or number of tasks; nothing has run.
            NotFoundError: the database does not exist: create it.
            UnavailableError: the database cannot be reached: run the job again.
            HoldfastError: see `holdfast.errors` for what to do next.
        """
        return self._run_rows(data, key, job, tasks)

    def _run_rows(
        self,
        data: Any,
        key: str | Sequence[str] | None,
        job: str | None,
        tasks: int | None,
        batch: str = "",
    ) -> JobReport:
        found = parse_input(data, key)

        def prepare_job(job: Job) -> _PreparedJob:
            with convert_changed_rows_errors(job), unwrap_task_errors():
                rows = found.arranged(job.shards)  # Spark may bring the rows to their tasks here
                return _PreparedJob(rows.run, rows.survey(repeats=self._kind == REDUCE))

        return self._run(job, self._kind, found.keys, tasks, found.parallelism, self._emit_to, prepare_job, batch)

    def for_each_batch(
        self, *, key: str | Sequence[str], job: str, tasks: int | None = None
    ) -> Callable[[DataFrame, int], None]:
        """Return a function for the ``foreachBatch`` of a stream, which runs the units of each batch.

        Guarantee: each batch counts once, also if Spark repeats it, as after a failure. The batches of a stream with a
        new checkpoint are new ones.

        Args:
            key, tasks: see `run`.
            job: prefix of the job names: each batch is a job, named by the prefix and the ids of query and batch.
                Each function of a ``foreachBatch`` needs its own prefix.

        Raises:
            InvalidRequestError: no job can have such a name.
            InputChangedError: from the function: Spark repeats a batch, and the query or source has changed since.
            InvalidRequestError: also from the function: another with this prefix has already run for the batch.
        """
        check_job_prefix(job)

        def run_batch(batch: DataFrame, number: int) -> None:
            try:
                found = find_current_stream_batch(job, batch, number)
                self._run_rows(batch, key, found.job, tasks, found.made)
            except InputChangedError as error:
                raise InputChangedError(
                    "Spark repeats a batch of the stream, with other rows, another key, kind or number of tasks than "
                    "at first, or makes it anew, from an older copy of the checkpoint: run the query once more as it "
                    "was when the batch began, over the same source, with its newest checkpoint, and change it "
                    "afterwards; another name would run again what is done, and is for another function only",
                    **error.variables,
                ) from None  # its advice is not for streams

        return run_batch

    def run_work_list(
        self, spark: SparkSession, work_list: str, *, job: str | None = None, tasks: int | None = None
    ) -> JobReport:
        """Run the units of a work list, and those that they add to it, until nothing is left.

        Args:
            work_list: its name; units add to it with ``txn.emit``.
            job: see `run`. A finished job refuses keys that were added later: run them as a job with another name.
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
        prepared = _PreparedJob(partial(run_workers, spark))
        return self._run(
            job, WORK_LIST, f"work list: {work_list}", tasks, parallelism, work_list, lambda _job: prepared
        )

    def _run(
        self,
        name: str | None,
        kind: str,
        keys: str,
        tasks: int | None,
        parallelism: int,
        emit_to: str | None,
        prepare: Callable[[Job], _PreparedJob],
        batch: str = "",
    ) -> JobReport:
        environment, clock = self._environment, self._environment.clock
        name = name if name is not None else f"{kind.replace(' ', '-')}-{environment.ids.token()}"
        with (
            closing(open_database(self._url, environment=environment)) as database,
            add_job_to_errors(database.backend, name) as begun,
        ):
            backend = database.backend
            work = None if emit_to is None else _find_job_work_list(backend, emit_to, name)
            job = begin_job(
                backend,
                name,
                kind=kind,
                shards=tasks,
                default=parallelism,
                keys=keys,
                batch=batch,
                environment=environment,
            )
            begun.append(job.id)
            try:
                prepared = prepare(job)
            except InvalidRequestError:
                delete_job_without_input(backend, job, environment)
                begun.clear()
                raise
            if prepared.job_input is not None:
                job = record_job_input(backend, job, prepared.job_input, environment)
            if job.is_finished:
                if kind == WORK_LIST and work is not None:
                    _require_no_new_items(backend, job, work)
                _log.warning("the job was finished before, nothing runs: give new work another name: %s", name)
                return replace(JobReport.of(job.report), ran=False)
            earlier = sum(one.done for one in read_task_progress(backend, job))
            before_s = clock.elapsed_s()
            while True:
                try:
                    self._run_tasks(backend, job, prepared, work)
                except FencedError:
                    report = _find_report_by_others(backend, job)
                    if report is None:
                        raise
                    return report
                seconds = clock.elapsed_s() - before_s
                end = partial(self._end, backend, job, work, seconds, earlier=earlier)
                try:
                    return self._retry_while_unavailable(end)
                except ConflictError:  # the list has grown since the last worker looked
                    if kind != WORK_LIST or work is None or not _work_list_has_items(backend, work):
                        raise

    def _run_tasks(self, backend: Backend, job: Job, prepared: _PreparedJob, work: WorkList | None) -> None:
        """Run all tasks of a job. If one of them fails, the others have no effect once this has raised."""
        run = self._environment.ids.token()
        task = UnitsTask(
            function=self._function,
            url=self._url,
            job=job,
            run=run,
            job_input=prepared.job_input,
            settings=self._settings,
            reads=self._reads,
            is_reduce=job.kind == REDUCE,
            emit_to=work,
        )
        try:
            with unwrap_task_errors():
                prepared.run(task)
        except BaseException:
            self._stop(backend, job, run, work)
            raise

    def _stop(self, backend: Backend, job: Job, run: str, work: WorkList | None) -> None:
        """See to it that nothing that still runs for a run takes effect."""
        try:
            self._retry_while_unavailable(lambda: record_run_failure(backend, job, run, self._environment))
            if job.kind == WORK_LIST and work is not None:
                self._retry_while_unavailable(lambda: release_all_claims(backend, work))
        except HoldfastError as error:
            _log.warning(
                "tasks of the job may go on for a while, since the database cannot be told: %s: %s", job.name, error
            )

    def _retry_while_unavailable(self, call: Callable[[], T]) -> T:
        return retry_while_unavailable(call, self._settings.patience_s, self._environment, Statistics())

    def _end(self, backend: Backend, job: Job, work: WorkList | None, seconds: float, *, earlier: int) -> JobReport:
        progress = read_task_progress(backend, job)
        report = replace(JobReport.of_progress(job, progress, seconds), earlier=earlier)
        form = report.to_json()
        ended = end_job(backend, job, form, self._environment, work if job.kind == WORK_LIST else None)
        # If another driver has ended the job, the progress is deleted, and its report tells what was done.
        return report if ended.report == form else JobReport.of(ended.report)


class TransactionalReduce(TransactionalMap):
    """Calls a function once for each key, with the list of its values, each call as one transaction over a database.

    See `TransactionalMap`. The values of a key are in memory together, in no particular order.

    Source: paper 003 (4.5).
    """

    _kind = REDUCE


@contextmanager
def add_job_to_errors(backend: Backend, job: str) -> Iterator[list[int]]:
    """Add the name of a job, and how many of its units are done, to Holdfast's errors in a ``with`` block.

    For other errors, which cannot carry this information, it is logged.

    Yields a list to which the block appends the id of the job that it has begun. If the record of that job is deleted
    meanwhile, the number of units is left out, even if a newer job has the same name.
    """
    begun: list[int] = []
    try:
        yield begun
    except HoldfastError as error:
        figures = {} if not begun and isinstance(error, FencedError) else _progress_figures(backend, job, begun)
        raise type(error)(error.message, **{**error.variables, "job": job, **figures}) from error.__cause__
    except BaseException:
        if figures := _progress_figures(backend, job, begun):
            shown = " ".join(f"{name}={value!r}" for name, value in {"job": job, **figures}.items())
            _log.warning("run the job again with its name, and it goes on: %s", shown)
        raise


def _progress_figures(backend: Backend, job: str, begun: Sequence[int]) -> dict[str, object]:
    """Return how many units are done, and of how many, as far as that is known."""
    try:
        state = poll(backend, job)
    except NotFoundError:
        return {} if begun else {"done": 0}
    except HoldfastError:
        return {}
    if begun and state.job.id not in begun:
        return {}
    return {"done": state.done} if state.job.units is None else {"done": state.done, "units": state.job.units}


@contextmanager
def convert_changed_rows_errors(job: Job) -> Iterator[None]:
    """Replace the first pass's errors about rows by an `InputChangedError`, if the job already has an input.

    The job then began with other rows. What those errors advise, another key or a function for all rows of a key, would
    be refused.
    """
    try:
        yield
    except InvalidRequestError as error:
        if type(error) is InvalidRequestError and job.is_input_fixed:
            raise changed_input_error(job, error=error.message.partition(":")[0]) from None
        raise


def _find_job_work_list(backend: Backend, name: str, job: str) -> WorkList:
    """Return the work list of a job.

    Raises:
        NotFoundError: there is none; if units of the job are done, what they have added to it is lost.
    """
    try:
        return find_work_list(backend, name)
    except NotFoundError:
        found = next((one for one in list_jobs(backend) if one.name == job and not one.is_finished), None)
        if found is None or not any(task.done for task in read_task_progress(backend, found)):
            raise
        raise NotFoundError(LIST_DROPPED, list=name, job=job) from None


def _work_list_has_items(backend: Backend, work: WorkList) -> bool:
    return bool(backend.scan(*work.range, 1).records)


def _require_no_new_items(backend: Backend, job: Job, work: WorkList) -> None:
    """Check that the list of a finished job is empty.

    Raises:
        InvalidRequestError: it is not.
    """
    if _work_list_has_items(backend, work):
        raise InvalidRequestError(
            "the job is finished, and keys were added to its list since: give this run another name",
            list=work.name,
            job=job.name,
        )


def _find_report_by_others(backend: Backend, job: Job) -> JobReport | None:
    """Return the report of a job that another driver, which has run it at the same time, has ended; else None.

    Guarantee: the end is durable.
    """
    found = _find_ended_job(backend, job)
    if found is not None:
        backend.make_durable()  # the other driver may not have come so far
        found = _find_ended_job(backend, job)
    return None if found is None else JobReport.of(found.report)


def _find_ended_job(backend: Backend, job: Job) -> Job | None:
    return next((one for one in list_jobs(backend) if one.id == job.id and one.is_finished), None)


def _require_serializable_function(function: object, sentence: str) -> None:
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
