"""What runs in Spark's tasks: open the database, and run the units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.records.database import Database, open_database
from holdfast.records.row_keys import Row
from holdfast.runtime import Environment
from holdfast.spark.failures import errors_without_traceback
from holdfast.transactions.base import Backend
from holdfast.units.execution import UnitExecution
from holdfast.units.job_input import JobInput, iter_verified_units
from holdfast.units.jobs import Job
from holdfast.units.progress import Statistics
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Unit, UnitFunction, UnitReads, UnitSettings
from holdfast.units.unit_loop import retry_while_unavailable
from holdfast.units.work_list import WorkList
from holdfast.units.work_task import WorkTask


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsTask:
    """What each Spark task of a job of units needs to run them. Spark pickles it, with the user's function.

    Attributes:
        url: of the database, with its password.
        run: id of the job's run to which the tasks belong.
        job_input: the units of each task; None for a work list.
        is_reduce: whether rows with the same key are one unit.
        emit_to: the work list to which units add, as found when the job was started; None if they add to none. A newer
            list with the same name is not used.
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

    def run_shard(self, shard: int, pairs: Iterable[tuple[Row, object]]) -> Iterator[tuple[int, bytes]]:
        """Run the units of one partition; yield its number and ``b""`` at the end, which Spark collects.

        Args:
            pairs: keys and values, sorted by key.
        """
        with errors_without_traceback():
            assert self.job_input is not None, "a job of rows has an input"
            units = _group_pairs_by_key(pairs) if self.is_reduce else ((Unit.of(key, value), 1) for key, value in pairs)
            with self._open_database() as (execution, backend):
                task = ShardTask(execution, backend, self.job, shard, run=self.run)
                task.run(iter_verified_units(units, self.job_input.tasks[shard]))
            yield shard, b""

    def run_worker(self, slot: int) -> Iterator[tuple[int, bytes]]:
        """Run units from the work list, until none is left; yield the worker's number and ``b""``."""
        with errors_without_traceback():
            assert self.emit_to is not None, "a worker has a work list"
            with self._open_database() as (execution, backend):
                WorkTask(execution, backend, self.job, slot, self.emit_to, run=self.run).run()
            yield slot, b""

    @contextmanager
    def _open_database(self) -> Iterator[tuple[UnitExecution, Backend]]:
        """Open the database; yield what runs units, and the database.

        Waits for it: Spark gives a task only a few attempts, which are over in a second.
        """
        environment = Environment()
        with retry_while_unavailable(
            lambda: open_database_for_task(self.url), self.settings.patience_s, environment, Statistics()
        ) as database:
            yield (
                UnitExecution(
                    self.function, database.backend, self.settings, environment, reads=self.reads, emit_to=self.emit_to
                ),
                database.backend,
            )

    def __repr__(self) -> str:
        return f"UnitsTask(job={self.job.name!r})"


def _group_pairs_by_key(pairs: Iterable[tuple[Row, object]]) -> Iterator[tuple[Unit, int]]:
    """Yield a unit for each key, with the list of its values; and their number."""
    units = (Unit.of(key, value) for key, value in pairs)
    for _unit_id, same in groupby(units, key=attrgetter("id")):
        first, *others = same
        values = [first.value, *(one.value for one in others)]
        yield Unit.of(first.key, values, first.id), len(values)


def extract_unit_key(row: Any, columns: tuple[str, ...]) -> Row:
    """Return the key of a unit from the key columns of a DataFrame's row.

    Raises:
        InvalidRequestError: a key column is null.
    """
    parts = tuple([bytes(row[name]) if isinstance(row[name], bytearray) else row[name] for name in columns])
    if None in parts:
        raise InvalidRequestError(
            "the key of a unit is null: choose columns that are never null, or filter the rows", columns=columns
        )
    return parts[0] if len(parts) == 1 else parts


def open_database_for_task(url: str) -> Database:
    """Open a database in a Spark task, without sharing commits among threads: a task has only one."""
    return open_database(url)
