"""What runs in Spark's tasks: open the database, and run the units."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote

from holdfast.errors import InvalidRequestError
from holdfast.records.database import Database, open_database
from holdfast.records.row_keys import Row
from holdfast.runtime import Environment
from holdfast.spark.failures import one_sentence
from holdfast.transactions.base import Backend
from holdfast.transactions.urls import split_url
from holdfast.units.execution import UnitExecution
from holdfast.units.job_input import JobInput, units_of
from holdfast.units.jobs import Job
from holdfast.units.progress import Statistics
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Unit, UnitFunction, UnitReads, UnitSettings
from holdfast.units.unit_loop import patiently
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

    def run_shard(self, shard: int, pairs: Iterable[tuple[Row, object]]) -> Iterator[int]:
        """Run the units of a partition: pairs of key and value, sorted by key. Yield its number at the end."""
        with one_sentence():
            execution, backend = self._opened()
            assert self.job_input is not None, "a job of rows has an input"
            units = _reduced(pairs) if self.is_reduce else ((Unit.of(key, value), 1) for key, value in pairs)
            task = ShardTask(execution, backend, self.job, shard, run=self.run)
            task.run(units_of(units, self.job_input.tasks[shard]))
            yield shard

    def run_worker(self, slot: int) -> Iterator[int]:
        """Run units from the work list. Yield the worker's number at the end."""
        with one_sentence():
            assert self.emit_to is not None, "a worker has a work list"
            execution, backend = self._opened()
            WorkTask(execution, backend, self.job, slot, self.emit_to, run=self.run).run()
            yield slot

    def _opened(self) -> tuple[UnitExecution, Backend]:
        """Open the database; return what runs units, and the database.

        Waits for it: Spark gives a task only a few attempts, which are over in a second.
        """
        environment = Environment()
        database = patiently(lambda: database_of_process(self.url), self.settings.patience_s, environment, Statistics())
        execution = UnitExecution(
            self.function, database.backend, self.settings, environment, reads=self.reads, emit_to=self.emit_to
        )
        return execution, database.backend

    def __repr__(self) -> str:
        return f"UnitsTask(job={self.job.name!r})"


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


# --- the database of a worker process, open from task to task ---------------------------------------------------------
_Place: TypeAlias = "tuple[int, str, tuple[int, int] | None]"
"""A database, as one process sees it: process id, URL, and file: one that was replaced is another one."""

_open: dict[_Place, Database] = {}


def database_of_process(url: str) -> Database:
    """Return the open database of a URL; open it, and close that of another URL, if this process has not.

    Connections are made after a fork: Spark forks its workers, and reuses them. Each commit is sent by itself: a task
    has one thread, so nothing is gained by waiting for others.

    Raises: see `open_database`.
    """
    place = os.getpid(), url, _file_of(url)
    if place not in _open:
        for old in [one for one in _open if one[0] == place[0]]:
            _open.pop(old).close()
        _open[place] = open_database(_alone(url), environment=Environment())
    return _open[place]


def _alone(url: str) -> str:
    """Return a URL that opens a database without group commit."""
    if "group=" in url.partition("?")[2]:
        return url
    return f"{url}{'&' if '?' in url else '?'}group=off"


def _file_of(url: str) -> tuple[int, int] | None:
    """Return what identifies the file of an SQLite database."""
    if not url.startswith("sqlite:"):
        return None
    try:
        status = os.stat(unquote(split_url(url).path))
    except OSError:
        return None
    return status.st_dev, status.st_ino
