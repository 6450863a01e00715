"""Measure the memory of a task with a unit that reads many cells: ``python -m … URL BUFFERING``."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.peak_memory import growth_mb, start_mb
from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.database import Database
from holdfast.runtime import Environment
from holdfast.spark.units.tasks import open_database_for_task
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import begin_job
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Unit, UnitSettings, UnitTransaction

__all__ = ["CELLS", "create_large_cells", "main"]

CELLS = 20_000
_BYTES = 1024
_PAGE = 500
_TABLE = "large"


def create_large_cells(database: Database) -> None:
    """Create the cells that the unit reads."""
    database.create_table(_TABLE)
    for first in range(0, CELLS, _PAGE):

        def put(cells: CellTransaction, first: int = first) -> None:
            for row in range(first, first + _PAGE):
                cells.put(_TABLE, row, row.to_bytes(4, "big") * (_BYTES // 4))

        database.transact(put)


def _sum_up(transaction: UnitTransaction, key: int, value: None) -> None:
    total = 0
    for first in range(0, CELLS, _PAGE):
        found = transaction.get_many(_TABLE, range(first, first + _PAGE))
        total += sum(len(one) for one in found.values())  # type: ignore[arg-type,misc]  # all of them are bytes
    transaction.put(_TABLE, "total", total)


def main() -> None:
    """Run the unit, and print the megabytes that it took, and the seconds."""
    url, buffering = sys.argv[1:]
    database, environment = open_database_for_task(url), Environment()
    job = begin_job(database.backend, f"large-{buffering}", kind="map", shards=1, environment=environment)
    execution = UnitExecution(_sum_up, database.backend, UnitSettings(buffering=buffering), environment)
    task = ShardTask(execution, database.backend, job, 0)
    before_mb, before_s = start_mb(), time.monotonic()
    task.run([Unit.of(0, None)])
    found = {"mb": growth_mb(before_mb), "seconds": time.monotonic() - before_s}
    assert database.get(_TABLE, "total") == CELLS * _BYTES
    print(json.dumps(found))


if __name__ == "__main__":
    main()
