"""Be a worker: it takes orders as JSON lines on its standard input, and answers with JSON lines.

| order | answer |
|---|---|
| ``prepare`` with the fields of `Order` | ``ready``, once there is a connection |
| ``go`` | what the worker did, see `_taken` |
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from benchmarks.unit_runs import peers
from benchmarks.unit_runs.tasks import run_attempt
from benchmarks.unit_runs.workloads import pairs
from holdfast.records.database import Database
from holdfast.spark.units.tasks import open_database_for_task

__all__ = ["Order", "main", "order_json"]


@dataclass(frozen=True, kw_only=True)
class Order:
    """What one worker is to do.

    Attributes:
        url: of the database.
        variant: its name in `VARIANTS` or in `PEERS`.
        job: name of the job, whose task number `worker` this is.
        workload, seed: which cells the units have.
        limit_s: when to stop, if `units` does not come first.
        units: how many units there are; 0 for as many as there is time for.
        dies_after: after so many units, the task is given up, and another attempt starts it anew; 0 for never.
    """

    url: str
    variant: str
    job: str
    workload: str
    worker: int
    workers: int
    seed: int
    limit_s: float
    units: int = 0
    dies_after: int = 0

    def cells(self) -> Iterator[tuple[int, int]]:
        """Yield the cells of the units, the same in each attempt."""
        every = pairs(self.workload, self.worker, self.workers, self.seed)
        return islice(every, self.units) if self.units else every


def order_json(order: Order) -> dict[str, object]:
    """Return an order as a worker reads it."""
    return {"do": "prepare", "order": asdict(order)}


class _Dead(Exception):
    """The task is given up here."""


def _prepare(
    order: Order, connections: dict[str, peers.Connection], databases: dict[str, Database]
) -> Callable[[], dict[str, Any]]:
    """Connect, and return what does the work."""
    if order.variant in peers.PEERS:
        if order.url not in connections:
            connections[order.url] = peers.connect(order.url)
        connection = connections[order.url]
        connection.execute("SELECT 1")
        return lambda: _run_peer(order, connection)
    if order.url not in databases:
        databases[order.url] = open_database_for_task(order.url)
    database = databases[order.url]
    database.tables()
    return lambda: _run_units(order, database)


def _run_peer(order: Order, connection: peers.Connection) -> dict[str, Any]:
    done = peers.Done()
    task = peers.PeerTask(connection, order.variant, order.worker)
    for cells in _attempts(order):
        try:
            task.run(cells, done)
        except _Dead:
            continue
    return {"units": done.units, "conflicts": done.conflicts}


def _run_units(order: Order, database: Database) -> dict[str, Any]:
    for cells in _attempts(order):
        try:
            statistics = run_attempt(database, order.variant, order.job, order.worker, cells)
        except _Dead:
            continue
    return {"units": statistics.units, "conflicts": statistics.conflicts, "statistics": statistics.to_json()}


def _attempts(order: Order) -> Iterator[Iterator[tuple[int, int]]]:
    """Yield the input of each attempt: the last one comes to its end."""
    if order.dies_after:
        yield _until_death(order)
    yield _until_deadline(order)


def _until_death(order: Order) -> Iterator[tuple[int, int]]:
    yield from islice(order.cells(), order.dies_after)
    raise _Dead


def _until_deadline(order: Order) -> Iterator[tuple[int, int]]:
    deadline_s = time.monotonic() + order.limit_s
    for cells in order.cells():
        if time.monotonic() > deadline_s:
            return
        yield cells


def _taken(work: Callable[[], dict[str, Any]]) -> Mapping[str, Any]:
    cpu_s, started_s = time.process_time(), time.monotonic()
    found = work()
    return {**found, "started_s": started_s, "ended_s": time.monotonic(), "cpu_s": time.process_time() - cpu_s}


def main() -> None:
    """Obey orders until the standard input ends."""
    connections: dict[str, peers.Connection] = {}
    databases: dict[str, Database] = {}
    work: Callable[[], dict[str, Any]] | None = None
    for line in sys.stdin:
        order = json.loads(line)
        answer: Mapping[str, Any]
        if order["do"] == "prepare":
            work = _prepare(Order(**order["order"]), connections, databases)
            answer = {"ready": True}
        else:
            assert work is not None, "first prepare"
            answer = _taken(work)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
