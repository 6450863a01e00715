"""Decode the records of a units database: cells, effects of units, progress of tasks, jobs and work lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import cast

from holdfast.records.batches import iter_records
from holdfast.records.cells import decode_rows, rows_range
from holdfast.records.keys import cell_key, cells_range, dropped_marks_range, parse_dropped_mark_key
from holdfast.records.tables import Table, list_tables
from holdfast.records.values import Value
from holdfast.transactions.base import Record
from holdfast.units.jobs import Job, list_jobs, read_task_progress
from holdfast.units.progress import TaskProgress
from holdfast.units.work_list import WorkList, decode_claim, list_work_lists
from holdfast_checker.framework.subject import VerdictCache
from holdfast_checker.histories.effects import Effect
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.database import DATABASE, DatabaseCopy, RecordMap
from holdfast_checker.units.database import UnitsImage
from holdfast_checker.units.scenes import LIST, ActorSpec, UnitsScene
from holdfast_checker.units.scripts import CELLS, EFFECTS, SAW, TIMES, Contents, Script

ENDER = "driver that gives up"


@dataclass(frozen=True, kw_only=True)
class UnitsWorldContext(VerdictCache):
    """The context of actors and properties of a units world: its scene, and values derived from it.

    Attributes:
        table_id, effects_id: the ids of the tables of cells and of effects at the start.
    """

    scene: UnitsScene
    table_id: int
    effects_id: int

    @cached_property
    def scripts(self) -> dict[str, Script]:
        """The scripts of all units of all jobs and of the work list, by the unit's key."""
        found = dict(self.scene.work)
        for shards in self.scene.jobs.values():
            for shard in shards:
                found.update(shard)
        return found

    @cached_property
    def drivers(self) -> frozenset[str]:
        """The names of the actors that are drivers: they begin and end jobs."""
        return frozenset(who for who, run in self.scene.runs.items() if run.drives)

    @cached_property
    def workers(self) -> frozenset[str]:
        """The names of the actors that are workers: they run units of the work list."""
        return frozenset(who for who, run in self.scene.runs.items() if run.job == LIST)

    @cached_property
    def exclusive_units(self) -> Mapping[str, frozenset[str]]:
        """The keys of the units that are in the input of only one driver, by the name of this driver."""
        runs, found = self.scene.runs, {}
        for who in self.drivers:
            others = [runs[name].without for name in self.drivers - {who}]
            left_out = frozenset.intersection(*others) if others else frozenset[str]()
            if left_out:
                found[who] = left_out - runs[who].without
        return found

    @cached_property
    def required_effects(self) -> Mapping[str, tuple[bytes, ...]]:
        """The keys of effect records, by actor, that must exist once that actor has reported success."""
        found = {who: self._effect_keys(self._units_of(run)) for who, run in self.scene.runs.items()}
        every = (unit for units in self.scene.jobs.get("job", ()) for unit in units)
        return {**found, ENDER: self._effect_keys(every)}

    def _units_of(self, run: ActorSpec) -> Iterator[str]:
        for shard, units in enumerate(self.scene.jobs[run.job] if run.job != LIST else ()):
            yield from (unit for unit in units if unit not in run.without and (run.drives or shard == run.shard))

    def _effect_keys(self, units: Iterable[str]) -> tuple[bytes, ...]:
        return tuple(cell_key(self.effects_id, unit, TIMES.encode()) for unit in units)


@dataclass
class DecodedUnitsState:
    """The decoded records of a units database: cells, effects, progress, jobs and work lists."""

    records: RecordMap
    _copy: DatabaseCopy = field(init=False)

    def __post_init__(self) -> None:
        self._copy = DatabaseCopy(self.records)

    @cached_property
    def cells(self) -> Contents:
        """The decoded cells that scripts read and write; empty if their table does not exist."""
        return tuple((str(row), value) for row, columns in self._rows_of_table(CELLS) for value in columns.values())

    @cached_property
    def table_id(self) -> int | None:
        """The id of the table that has the cells of scripts; None if the table does not exist."""
        return next((one.id for one in list_tables(self._copy) if one.name == CELLS), None)

    @cached_property
    def cells_outside_tables(self) -> tuple[bytes, ...]:
        """The keys of orphaned cells: they belong to no table, not even to one whose deletion is pending."""
        dropped = [parse_dropped_mark_key(key) for key in self.records.keys if _is_within(key, dropped_marks_range())]
        ranges = [cells_range(one) for one in (*(table.id for table in list_tables(self._copy)), *dropped)]
        cells = (
            key for key in self.records.keys if _is_within(key, (cells_range(0)[0][:2], cells_range(2**64 - 1)[1]))
        )
        return tuple(key for key in cells if not any(_is_within(key, one) for one in ranges))

    @cached_property
    def effects(self) -> Mapping[str, tuple[int, object]]:
        """For each unit, by key: how often it took effect, and the values that it had read."""
        rows = self._rows_of_table(EFFECTS)
        return {str(row): (cast("int", columns.get(TIMES, 0)), columns.get(SAW)) for row, columns in rows}

    @cached_property
    def progress(self) -> Mapping[str, tuple[TaskProgress, ...]]:
        """The progress records of all tasks, by job."""
        return {job.name: tuple(read_task_progress(self._copy, job)) for job in self.jobs}

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """The records of all jobs, sorted by name."""
        return tuple(list_jobs(self._copy))

    @cached_property
    def waiting_units(self) -> tuple[str, ...]:
        """The keys of the units that wait on the work list to be run."""
        found = (work.decode_item(key, record) for work, key, record in self._list_records())
        return tuple(str(item.key) for item in found if item is not None)

    @cached_property
    def claimed_units(self) -> tuple[str, ...]:
        """The keys of the units that workers have claimed from the work list, once for each claim."""
        claims = (
            decode_claim(key, one) for work, key, one in self._list_records() if work.decode_item(key, one) is None
        )
        return tuple(str(item.key) for claim in claims for item in claim.items.values())

    def _list_records(self) -> Iterator[tuple[WorkList, bytes, Record]]:
        for work in list_work_lists(self._copy):
            start, end = work.range
            yield from ((work, key, record) for key, record in self.records.as_dict().items() if start <= key < end)

    def effects_of_units(self, units: Iterable[str]) -> list[Effect]:
        """Return the committed effects of the given units: one `Effect` for each time that a unit took effect."""
        times = {unit: self.effects.get(unit, (0, None))[0] for unit in units}
        return [Effect(unit, f"commit {number}") for unit in times for number in range(times[unit])]

    def _rows_of_table(self, name: str) -> Iterator[tuple[object, dict[str, Value]]]:
        table = next((one for one in list_tables(self._copy) if one.name == name), None)
        return iter(()) if table is None else self._rows_of(table)

    def _rows_of(self, table: Table) -> Iterator[tuple[object, dict[str, Value]]]:
        yield from decode_rows(table, iter_records(self._copy, *rows_range(table)))


def _is_within(key: bytes, range_: tuple[bytes, bytes]) -> bool:
    return range_[0] <= key < range_[1]


def units_image_of(view: View) -> UnitsImage:
    """Return the state of the simulated database of computation units in a state of the world."""
    return cast("UnitsImage", view.states[DATABASE])


def decode_units_state(view: View) -> DecodedUnitsState:
    """Decode the records of the database of computation units in a state of the world; cached for equal records."""
    return _decode_records(units_image_of(view).records)


@lru_cache(maxsize=8192)
def _decode_records(records: RecordMap) -> DecodedUnitsState:
    return DecodedUnitsState(records)
