"""Run units of Holdfast in a process, as a task of Spark does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.unit_runs.workloads import CELLS
from holdfast.records.batches import iter_records
from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.database import Database
from holdfast.records.keys import cells_range
from holdfast.records.values import decode_value
from holdfast.runtime import Environment
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import find_job
from holdfast.units.progress import Statistics
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import CLIENT, SERVER, Cell, Unit, UnitSettings, UnitTransaction

__all__ = ["TABLE", "VARIANTS", "Variant", "create_cells", "reads", "run_attempt", "step", "total"]

TABLE = "cells"
_BATCH = 1_000


@dataclass(frozen=True, kw_only=True)
class Variant:
    """How units run.

    Attributes:
        hints: whether the cells that a unit reads are named before it runs.
    """

    group: int
    hints: bool
    buffering: str = CLIENT


VARIANTS: Mapping[str, Variant] = {
    "single": Variant(group=1, hints=True),
    "single, no hint": Variant(group=1, hints=False),
    "grouped 32": Variant(group=32, hints=True),
    "grouped 32, no hint": Variant(group=32, hints=False),
    "grouped 128": Variant(group=128, hints=True),
    "server": Variant(group=1, hints=True, buffering=SERVER),
}


def create_cells(database: Database) -> None:
    """Create the table with all cells."""
    database.create_table(TABLE)
    for first in range(0, CELLS, _BATCH):

        def put(cells: CellTransaction, first: int = first) -> None:
            for row in range(first, first + _BATCH):
                cells.put(TABLE, row, 0)

        database.transact(put)


def total(database: Database) -> int:
    """Return the sum of all cells."""
    with database.snapshot() as snapshot:
        cells = iter_records(snapshot.reader, *cells_range(database.table(TABLE).id))
        values = (decode_value(record.value, record.number) for _, record in cells)
        return sum(int(value) for value in values)  # type: ignore[arg-type,misc]  # all of them are integers


def step(transaction: UnitTransaction, key: int, cells: tuple[int, int]) -> None:
    """Be a unit: read two cells, and write each with 1 more."""
    one, other = cells
    first = transaction.get(TABLE, one)
    second = transaction.get(TABLE, other)
    transaction.put(TABLE, one, first + 1)  # type: ignore[operator]  # all cells are integers
    transaction.put(TABLE, other, second + 1)  # type: ignore[operator]  # all cells are integers


def reads(key: int, cells: tuple[int, int]) -> list[Cell]:
    """Name the cells that a unit reads."""
    return [(TABLE, cells[0]), (TABLE, cells[1])]


def run_attempt(database: Database, variant: str, job: str, shard: int, cells: Iterable[tuple[int, int]]) -> Statistics:
    """Attempt a task, and return what happened."""
    chosen = VARIANTS[variant]
    execution = UnitExecution(
        step,
        database.backend,
        UnitSettings(group=chosen.group, buffering=chosen.buffering),
        Environment(),
        reads=reads if chosen.hints else None,
    )
    task = ShardTask(execution, database.backend, find_job(database.backend, job), shard)
    return task.run(_units(cells))


def _units(cells: Iterable[tuple[int, int]]) -> Iterator[Unit]:
    for number, pair in enumerate(cells):
        yield Unit.of(number, pair)
