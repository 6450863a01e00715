"""Run units that append to lists and read them; find an order of their commits, and run them again in that order.

Lists that only grow tell the order of the commits that wrote them, and what every read came after: so there is a graph
of what must precede what. If it has no cycle, each of its topological orders explains the history.

Source: `tests.simulation.histories.anomalies.appends`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

from holdfast.runtime import Environment, SeededRandom
from holdfast.transactions.base import Backend, Committed
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import MAP, begin_job
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Unit, UnitSettings
from tests.simulation.histories.told import Told
from tests.units_world import Model, Shaky

__all__ = ["replay", "run_unit_lists"]

_ROWS = 5


def _step(txn: Any, table: str, unit: str, rows: Sequence[int]) -> list[tuple[object, ...]]:
    """Read the rows; append to the last ones; write how long all lists are to a cell of the unit."""
    steps: list[tuple[object, ...]] = []
    found = 0
    for place, row in enumerate(rows):
        seen = txn.get(table, row, default=[])
        steps.append(("read", row, tuple(seen)))
        found += len(seen)
        if place:
            txn.put(table, row, [*seen, unit])
            steps.append(("append", row, unit))
    txn.put(table, unit, found)
    txn.add(table, "count")
    return steps


def run_unit_lists(database: Backend, table: str, shard: int, shards: int, seed: int, count: int) -> list[Told]:
    """Run the units of one task; tell what each commit read and appended, and as what it saw, its units and rows."""
    environment = Environment(chance=SeededRandom(seed * 1000 + shard))
    clock, chance = environment.clock, SeededRandom(seed * 100 + shard)
    job = begin_job(database, table, kind=MAP, shards=shards, environment=environment)
    told: list[Told] = []
    ran: dict[int, tuple[float, list[tuple[object, ...]], tuple[str, tuple[int, ...]]]] = {}
    sent: list[tuple[float, list[tuple[object, ...]], tuple[str, tuple[int, ...]]]] = []

    def before(number: int, call: str) -> None:
        if call in ("commit", "apply"):
            sent[:] = ran.values()
            ran.clear()

    def after(number: int, call: str) -> None:
        if call in ("commit", "apply") and sent and isinstance(shaky.last, Committed):
            steps = tuple(step for _began, those, _unit in sent for step in those)
            told.append(Told(f"w{shard}", steps, tuple(one[2] for one in sent), sent[0][0], clock.elapsed_s()))

    def step(txn: Any, key: int, rows: tuple[int, ...]) -> None:
        before_s = clock.elapsed_s()
        steps = _step(txn, table, f"{shard}.{key}", rows)
        clock.sleep(0)  # lets others run
        ran.pop(key, None)
        ran[key] = before_s, steps, (f"{shard}.{key}", rows)

    shaky = Shaky(database, before, after)
    execution = UnitExecution(step, shaky, UnitSettings(group=1 + 3 * (shard % 3)), environment)
    work = [tuple(chance.shuffled(range(_ROWS))[: chance.pick((1, 2, 3))]) for _ in range(count)]
    ShardTask(execution, shaky, job, shard).run([Unit.of(key, rows) for key, rows in enumerate(work)])
    return told


def replay(told: Sequence[Told], lists: Mapping[int, Sequence[str]]) -> dict[Any, Any]:
    """Run the units of all commits again, in an order that their dependencies allow; return the cells.

    Raises:
        graphlib.CycleError: there is no such order.
    """
    writers = {(step[1], step[2]): number for number, one in enumerate(told) for step in one.steps if step[0] != "read"}
    graph: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(range(len(told)), ()))
    for number, one in enumerate(told):
        for kind, row, what in one.steps:
            if kind != "read":
                continue
            around = [(row, element) for element in (*what[-1:], *lists.get(row, ())[len(what) : len(what) + 1])]
            for key, is_before in zip(around, (bool(what), False), strict=False):
                writer = writers[key]
                if writer != number:
                    graph.add(*((number, writer) if is_before else (writer, number)))
    model = Model()
    for number in graph.static_order():
        for unit, rows in told[number].saw:
            _step(model, "", unit, rows)
    return model.cells
