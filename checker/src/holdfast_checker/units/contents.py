"""Read what the records of a database mean: cells, effects of units, and the progress of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import cast

from holdfast.records.batches import read_records
from holdfast.records.cells import rows_of, rows_range
from holdfast.records.keys import cells_range, dropped_id_of, dropped_range
from holdfast.records.tables import Table, list_tables
from holdfast.records.values import Value
from holdfast.transactions.base import Record
from holdfast.units.jobs import Job, list_jobs, read_progress
from holdfast.units.progress import TaskProgress
from holdfast.units.work_list import WorkList, decode_claim, list_work_lists
from holdfast_checker.histories.effects import Effect
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.database import DATABASE, Copy, Records
from holdfast_checker.units.database import UnitsImage
from holdfast_checker.units.scripts import CELLS, EFFECTS, SAW, TIMES, Contents, Script

Shards = tuple[Mapping[str, Script], ...]
"""The units of each task of a job: scripts by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the properties of a world need to know.

    Attributes:
        start: the cells at the start.
        jobs: by name.
        fails: units whose function may fail.
        forgets: whether a job may be forgotten while its tasks run.
        loses: whether the newest commits may be lost.
        ends: whether a run may be ended while its attempts go on.
        only: by driver, the units that no other driver's input has.
        drops: whether the table of cells, with the id `table_id`, may be dropped and created again.
        work: units of the work list by key, those that were there at the start and those that others emit.
        items: keys on the work list at the start.
        drivers: who begins and ends jobs.
        workers: who runs units of the work list.
        wanted: by actor, the records that exist when it has reported success.
    """

    start: Contents
    jobs: Mapping[str, Shards]
    fails: frozenset[str] = frozenset()
    forgets: bool = False
    loses: bool = False
    ends: bool = False
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    drops: bool = False
    table_id: int = 0
    drivers: frozenset[str] = frozenset()
    work: Mapping[str, Script] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    workers: frozenset[str] = frozenset()
    wanted: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)

    @property
    def scripts(self) -> dict[str, Script]:
        """The scripts of all units of all jobs, by key."""
        found = dict(self.work)
        for shards in self.jobs.values():
            for shard in shards:
                found.update(shard)
        return found


@dataclass
class State:
    """What the records of a database mean."""

    records: Records
    _copy: Copy = field(init=False)

    def __post_init__(self) -> None:
        self._copy = Copy(self.records)

    @cached_property
    def cells(self) -> Contents:
        """The cells that scripts read and write; none if the table does not exist."""
        return tuple((str(row), value) for row, columns in self._rows(CELLS) for value in columns.values())

    @cached_property
    def table_id(self) -> int | None:
        """The id of the table of cells; None if it does not exist."""
        return next((one.id for one in list_tables(self._copy) if one.name == CELLS), None)

    @cached_property
    def stray_cells(self) -> tuple[bytes, ...]:
        """The keys of cells whose table was dropped, and is not waiting for the deletion of its cells either."""
        dropped = [dropped_id_of(key) for key in self.records.keys if _is_in(key, dropped_range())]
        ranges = [cells_range(one) for one in (*(table.id for table in list_tables(self._copy)), *dropped)]
        cells = (key for key in self.records.keys if _is_in(key, (cells_range(0)[0][:2], cells_range(2**64 - 1)[1])))
        return tuple(key for key in cells if not any(_is_in(key, one) for one in ranges))

    @cached_property
    def effects(self) -> Mapping[str, tuple[int, object]]:
        """How often each unit took effect, and what it had read; by its key."""
        return {
            str(row): (cast("int", columns.get(TIMES, 0)), columns.get(SAW)) for row, columns in self._rows(EFFECTS)
        }

    @cached_property
    def progress(self) -> Mapping[str, tuple[TaskProgress, ...]]:
        """The progress of all tasks, by job."""
        return {job.name: tuple(read_progress(self._copy, job)) for job in self.jobs}

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """All jobs, by name."""
        return tuple(list_jobs(self._copy))

    @cached_property
    def waiting(self) -> tuple[str, ...]:
        """The keys that wait on the work list."""
        found = (work.item_of(key, record) for work, key, record in self._work())
        return tuple(str(item.key) for item in found if item is not None)

    @cached_property
    def claimed(self) -> tuple[str, ...]:
        """The keys in all claims, each as often as it is in one."""
        claims = (decode_claim(key, record) for work, key, record in self._work() if work.item_of(key, record) is None)
        return tuple(str(item.key) for claim in claims for item in claim.items.values())

    def _work(self) -> Iterator[tuple[WorkList, bytes, Record]]:
        for work in list_work_lists(self._copy):
            start, end = work.range
            yield from ((work, key, record) for key, record in self.records.as_dict().items() if start <= key < end)

    def done(self, units: Iterable[str]) -> list[Effect]:
        """Return the effects of some units, each as often as it took effect."""
        return [
            Effect(unit, f"commit {number}") for unit in units for number in range(self.effects.get(unit, (0, None))[0])
        ]

    def _rows(self, name: str) -> Iterator[tuple[object, dict[str, Value]]]:
        table = next((one for one in list_tables(self._copy) if one.name == name), None)
        return iter(()) if table is None else self._rows_of(table)

    def _rows_of(self, table: Table) -> Iterator[tuple[object, dict[str, Value]]]:
        yield from rows_of(table, read_records(self._copy, *rows_range(table)))


def _is_in(key: bytes, range_: tuple[bytes, bytes]) -> bool:
    return range_[0] <= key < range_[1]


def image_of(view: View) -> UnitsImage:
    """Return the state of the database."""
    return cast("UnitsImage", view.states[DATABASE])


def state_of(view: View) -> State:
    """Return what the records mean."""
    return _state(image_of(view).records)


@lru_cache(maxsize=8192)
def _state(records: Records) -> State:
    return State(records)
