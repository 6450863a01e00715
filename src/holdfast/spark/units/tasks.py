"""What runs in Spark's tasks: open the database, run the units, return the figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Row
from holdfast.runtime import Environment
from holdfast.spark.failures import one_sentence
from holdfast.transactions.base import Backend
from holdfast.units.connections import database_of_process
from holdfast.units.execution import UnitExecution
from holdfast.units.job_input import JobInput, units_of
from holdfast.units.jobs import Job
from holdfast.units.patience import patiently
from holdfast.units.report import most_at_once
from holdfast.units.settings import UnitSettings
from holdfast.units.shard_task import ShardTask
from holdfast.units.statistics import Statistics
from holdfast.units.unit import Unit, UnitFunction, UnitReads
from holdfast.units.work_list import WorkList
from holdfast.units.work_task import WorkTask

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsTask:
    """What each task of a job does. Spark pickles it, with the user's function.

    Attributes:
        url: of the database, with its password.
        run: which run of the job the tasks belong to.
        job_input: the units of each task; None for a work list.
        is_reduce: whether rows with the same key are one unit.
        emit_to: the work list to which units add, as it was when the job was started; None if there is none. If
            another one has its name by now, its items are not for this job.
    """

    function: UnitFunction
    url: str
    job: Job
    run: str
    job_input: JobInput | None
    settings: UnitSettings
    reads: UnitReads | None
    is_reduce: bool
    emit_to: WorkList | None

    def run_shard(self, shard: int, pairs: Iterable[tuple[Row, object]]) -> Iterator[str]:
        """Run the units of a partition: pairs of key and value, sorted by key. Yield the figures as JSON."""
        began_s = _now_s()
        with one_sentence():
            execution, backend = self._patiently(self._opened)
            assert self.job_input is not None, "a job of rows has an input"
            units = _reduced(pairs) if self.is_reduce else ((Unit.of(key, value), 1) for key, value in pairs)
            task = ShardTask(execution, backend, self.job, shard, run=self.run)
            yield _figures(began_s, task.run(units_of(units, self.job_input.tasks[shard])))

    def run_worker(self, slot: int) -> Iterator[str]:
        """Run units from the work list. Yield the figures as JSON."""
        began_s = _now_s()
        with one_sentence():
            assert self.emit_to is not None, "a worker has a work list"
            execution, backend = self._patiently(self._opened)
            yield _figures(began_s, WorkTask(execution, backend, self.job, slot, self.emit_to, run=self.run).run())

    def _opened(self) -> tuple[UnitExecution, Backend]:
        """Open the database; return what runs units, and the database."""
        backend = database_of_process(self.url).backend
        execution = UnitExecution(
            self.function, backend, self.settings, Environment(), reads=self.reads, emit_to=self.emit_to
        )
        return execution, backend

    def _patiently(self, call: Callable[[], T]) -> T:
        """Wait for the database: Spark gives a task only a few attempts, which are over in a second."""
        return patiently(call, self.settings.patience_s, Environment(), Statistics())

    def __repr__(self) -> str:
        return f"UnitsTask(job={self.job.name!r})"


def tasks_at_once(figures: Iterable[str]) -> int:
    """Return how many tasks of a run ran at the same time, at most, from the figures that each has returned."""
    return most_at_once(json.loads(one)["span"] for one in figures)


def _figures(began_s: float, statistics: Statistics) -> str:
    return json.dumps({**statistics.to_json(), "span": [began_s, _now_s()]})


def _now_s() -> float:
    return Environment().clock.now_s()


def _reduced(pairs: Iterable[tuple[Row, object]]) -> Iterator[tuple[Unit, int]]:
    """Yield a unit for each key, with the list of its values; and their number."""
    units = (Unit.of(key, value) for key, value in pairs)
    for _unit_id, same in groupby(units, key=attrgetter("id")):
        first, *others = same
        values = [first.value, *(one.value for one in others)]
        yield Unit.of(first.key, values, first.id), len(values)


def key_of_row(row: Any, columns: tuple[str, ...]) -> Row:
    """Return the key of a DataFrame's row.

    Raises:
        InvalidRequestError: it is null.
    """
    return key_of([row[name] for name in columns], columns)


def key_of(values: Iterable[Any], columns: tuple[str, ...]) -> Row:
    """Return the key that some columns make.

    Raises:
        InvalidRequestError: one of them is null.
    """
    parts = tuple([bytes(value) if isinstance(value, bytearray) else value for value in values])
    if None in parts:
        raise InvalidRequestError(
            "the key of a unit is null: choose columns that are never null, or filter the rows", columns=columns
        )
    return parts[0] if len(parts) == 1 else parts
