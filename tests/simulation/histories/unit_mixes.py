"""Run random computation units, record what each commit saw, and judge whether some order of the commits explains it.

The whole table is one object, and each commit, of one unit or of a group, is one operation on it. The meaning of a unit
is its function over a dictionary (`tests.units_world.Model`): so a history is explained by running the same functions
again, one by one, and the last operation, which reads everything, says that this leads to the state of the database.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from holdfast.records.database import Database
from holdfast.runtime import Environment, SeededRandom
from holdfast.transactions.base import Backend, Committed
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import MAP, begin_job
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Unit, UnitSettings
from holdfast_checker.histories.history import Operation
from holdfast_checker.histories.linearizable import Model, Verdict, judge_linearizable
from tests import units_world
from tests.simulation.histories.told import Told, operations_of

__all__ = ["PAIRS", "begin_units", "judge_units", "run_units", "told_of_all"]

_ROWS = "0123"
_READS = ("get", "get_many", "get_row", "scan", "first")
_WRITES = ("put", "add", "add", "delete")
_KINDS = (*_READS, *sorted(set(_WRITES)))
PAIRS = [(one, other) for one in _KINDS for other in _KINDS]
"""Two operations on one row, in each order."""


def _scripts(shard: int, shards: int, seed: int) -> list[tuple[tuple[Any, ...], ...]]:
    """Draw what the units of a task do; together, the tasks have each pair of operations on one row."""
    chance = SeededRandom(seed * 1000 + shard)
    pairs = SeededRandom(seed).shuffled(PAIRS)[shard::shards]
    scripts = []
    for number, pair in enumerate(pairs):
        row, other = chance.shuffled(_ROWS)[:2]
        value = (shard * 1000 + number + 1) * 1000
        kinds = [(kind, row) for kind in pair]
        kinds.insert(chance.pick(range(3)), (chance.pick(_KINDS), other))
        scripts.append(tuple((kind, on, value + place) for place, (kind, on) in enumerate(kinds)))
    return scripts


def _play(txn: Any, table: str, script: Sequence[tuple[Any, ...]], pause: Any = lambda: None) -> tuple[Any, ...]:
    """Run a script; return what its reads saw."""
    saw: list[Any] = []
    for kind, row, number in script:
        pause()
        if kind == "get":
            saw.append(txn.get(table, row, default=-1))
        elif kind == "get_many":
            saw.append(sorted(txn.get_many(table, [row, "1", "2"]).items()))
        elif kind == "get_row":
            saw.append(sorted(txn.get_row(table, row).items()))
        elif kind == "scan":
            saw.append([(one, sorted(columns.items())) for one, columns in txn.scan(table, start=row)])
        elif kind == "first":
            saw.append([(one, sorted(columns.items())) for one, columns in txn.scan(table, start=row, limit=1)])
        elif kind == "put":
            txn.put(table, row, number, column="b" if number % 2 else "value")
        elif kind == "add":
            txn.add(table, row, number % 7)
        else:
            txn.delete(table, row)
    return _tuples(saw)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def begin_units(database: Backend, name: str, shards: int) -> None:
    """Create the table and the job of a history."""
    environment = Environment()
    Database(database, "memory://", environment).create_table(name, exist_ok=True)
    begin_job(database, name, kind=MAP, shards=shards, environment=environment)


def run_units(
    database: Backend,
    name: str,
    shard: int,
    shards: int,
    seed: int,
    *,
    settings: UnitSettings | None = None,
    most: int | None = None,
) -> list[Told]:
    """Run the first units of one task, at most so many, and tell what each commit did and saw."""
    environment = Environment(chance=SeededRandom(seed * 1000 + shard))
    clock = environment.clock
    job = begin_job(database, name, kind=MAP, shards=shards, environment=environment)
    told: list[Told] = []
    ran: dict[int, tuple[float, Any, Any]] = {}  # by unit: when it began, its script, and what it saw; the last run
    sent: list[tuple[float, Any, Any]] = []

    def before(number: int, call: str) -> None:
        if call in ("commit", "apply"):
            sent[:] = ran.values()
            ran.clear()

    def after(number: int, call: str) -> None:
        if call in ("commit", "apply") and sent and isinstance(shaky.last, Committed):
            began, steps, saw = zip(*sent, strict=True)
            told.append(Told(f"w{shard}", steps, saw, began[0], clock.elapsed_s()))

    def step(txn: Any, key: int, script: tuple[Any, ...]) -> None:
        before_s = clock.elapsed_s()
        saw = _play(txn, name, script, lambda: clock.sleep(0))
        ran.pop(key, None)
        ran[key] = before_s, script, saw

    shaky = units_world.Shaky(database, before, after)
    settings = settings or UnitSettings(group=(1, 3, 32)[(seed + shard) % 3], rounds=3)
    execution = UnitExecution(step, shaky, settings, environment)
    ShardTask(execution, shaky, job, shard).run(
        [Unit.of(number, script) for number, script in enumerate(_scripts(shard, shards, seed)[:most])]
    )
    return told


def told_of_all(database: Backend, name: str) -> Told:
    """Tell what the table holds at the end."""
    clock = Environment().clock
    before_s = clock.elapsed_s()
    found = Database(database, "memory://", Environment()).scan(name)
    cells = sorted(((row, column), one) for row, columns in found for column, one in columns.items())
    return Told("reader", (), _tuples(cells), before_s, clock.elapsed_s())


def _apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    if operation.name == "everything":
        return state, state
    model = units_world.Model(dict(state))  # type: ignore[call-overload] # the state is a tuple of cells
    saw = tuple(_play(model, "", script) for script in operation.args)  # type: ignore[arg-type] # the arguments are scripts of units
    return tuple(sorted(model.cells.items())), saw


def judge_units(told: Sequence[Told], limit: int = 400_000) -> Verdict:
    """Judge whether some order of the commits, which respects real time, explains what all saw, and what is left."""
    operations = operations_of(
        told,
        lambda one: {"name": "units" if one.steps else "everything", "args": one.steps, "value": one.saw},
    )
    return judge_linearizable(operations, Model(initial=(), apply=_apply), limit=limit)
