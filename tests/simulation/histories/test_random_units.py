"""Random computation units of several tasks at once are serializable on every backend, and replaying them agrees."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from holdfast.errors import HoldfastError
from holdfast.records.database import Database
from holdfast.runtime import Environment, ThreadRunner
from holdfast.transactions.base import Backend
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.unit import SERVER, UnitSettings
from holdfast_checker.histories.linearizable import Linearizability
from tests.patience import PATIENCE_S
from tests.simulation.histories import wrong_backends as wrong
from tests.simulation.histories.lists import judge_lists
from tests.simulation.histories.told import Told, often_switched
from tests.simulation.histories.unit_lists import replay, run_unit_lists
from tests.simulation.histories.unit_mixes import PAIRS, begin_units, judge_units, run_units, told_of_all
from tests.transaction_backends import BACKENDS, Handles, opened

_SHARDS = 4
_FEW = ("memory", "sqlite", "postgresql", "mysql")


def _backends() -> list[object]:
    slow = (pytest.mark.slow,)
    return [
        pytest.param(name, marks=(*marks, *(() if name in _FEW else slow))) for name, (_, marks) in BACKENDS.items()
    ]


@pytest.fixture(scope="module", params=_backends())
def handles(request: pytest.FixtureRequest) -> Iterator[Handles]:
    with opened(request.param, request) as found:
        yield found


def _run(
    dbs: Sequence[Backend],
    name: str,
    seed: int,
    settings: UnitSettings | None = None,
    most: int | None = None,
) -> list[Told]:
    begin_units(dbs[0], name, _SHARDS)
    together = threading.Barrier(_SHARDS)

    def work(shard: int) -> list[Told]:
        together.wait(PATIENCE_S)
        return run_units(dbs[shard % len(dbs)], name, shard, _SHARDS, seed, settings=settings, most=most)

    with often_switched():
        told = [one for found in ThreadRunner(_SHARDS).map(work, range(_SHARDS)) for one in found]
    return [*told, told_of_all(dbs[0], name)]


_SEEDS = pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])


def _is_serializable(told: Sequence[Told], count: int) -> None:
    verdict = judge_units(told)
    assert verdict.answer is Linearizability.YES, verdict.words
    assert sum(len(one.steps) for one in told) == count


@_SEEDS
def test_units_are_serializable(handles: Handles, seed: int) -> None:
    _is_serializable(_run((handles.backend, handles.other), f"client-{seed}", seed), len(PAIRS))


@_SEEDS
def test_units_whose_reads_are_locked_are_serializable(handles: Handles, seed: int) -> None:
    """A server finds a deadlock only after a second, so it runs fewer units."""
    most = 1 if handles.url and not handles.url.startswith("sqlite") and seed == 1 else len(PAIRS) // _SHARDS
    told = _run((handles.backend, handles.other), f"server-{seed}", seed, UnitSettings(buffering=SERVER), most)
    _is_serializable(told, most * _SHARDS)


def _run_lists(dbs: Sequence[Backend], name: str, seed: int, count: int) -> list[Told]:
    begin_units(dbs[0], name, _SHARDS)

    def work(shard: int) -> list[Told]:
        return run_unit_lists(dbs[shard % len(dbs)], name, shard, _SHARDS, seed, count)

    with often_switched():
        return [one for found in ThreadRunner(_SHARDS).map(work, range(_SHARDS)) for one in found]


def _replayed(told: Sequence[Told], database: Backend, name: str) -> bool:
    """Check that the same units, in an order that what they saw allows, leave what the database holds."""
    cells = {
        (row, column): one
        for row, columns in Database(database, "memory://", Environment()).scan(name)
        for column, one in columns.items()
    }
    return replay(told, {row: one for (row, _column), one in cells.items() if isinstance(row, int)}) == cells


@_SEEDS
def test_units_replay_in_the_order_of_their_dependencies(handles: Handles, seed: int) -> None:
    name, count = f"lists-{seed}", 15 if seed == 1 else 60
    told = _run_lists((handles.backend, handles.other), name, seed, count)
    assert sum(len(one.saw) for one in told) == _SHARDS * count
    assert [one.words for one in judge_lists(told)] == []
    assert _replayed(told, handles.backend, name)


@pytest.mark.parametrize("backend", [wrong.ValidatesNothing, wrong.ValidatesWhatItWrites, wrong.JudgesThenApplies])
def test_a_mistake_is_noticed_in_lists(backend: Callable[[], MemoryBackend]) -> None:
    def is_noticed(seed: int) -> bool:
        try:
            return bool(judge_lists(_run_lists((backend(),), "wrong", seed, 15)))
        except HoldfastError:  # a task has noticed it, but not the judge
            return False

    assert any(is_noticed(seed) for seed in range(60))


@pytest.mark.parametrize(
    "backend", [wrong.ValidatesNothing, wrong.ValidatesWhatItWrites, wrong.ValidatesNoAbsence, wrong.CountsNothing]
)
def test_a_mistake_is_noticed(backend: Callable[[], MemoryBackend]) -> None:
    def is_noticed(seed: int) -> bool:
        try:
            return judge_units(_run((backend(),), "wrong", seed)).answer is Linearizability.NO
        except HoldfastError:  # a task has noticed it, but not the judge
            return False

    assert any(is_noticed(seed) for seed in range(60))
