"""Every unit takes effect once, wherever an attempt dies, loses a reply, conflicts, or meets its twin: enumerated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from holdfast.units.progress import Statistics
from holdfast.units.unit import CLIENT, SERVER, UnitSettings
from tests.units_world import FAULTS, Death, Shaky, UnitWorld, fail_at, interleaved, replayed, units

_KEYS = range(5)
_GROUPS = (1, 3, 32)


def step(txn: Any, key: int, value: object) -> None:
    """Read and write in all ways, so that the result depends on the order, which the cell ``order`` tells."""
    order = txn.get("t", "order", default=[])
    txn.put("t", "order", [*order, key])
    txn.add("t", "count")
    txn.add("t", ("ran", key))
    if key % 2:
        txn.put("t", ("odd", key), len(txn.scan("t", limit=2)))
    else:
        txn.delete("t", ("odd", key - 1))
        txn.put("t", "row", len(txn.get_row("t", "count")), column=f"c{key}")


def _settings(group: int, **more: Any) -> UnitSettings:
    return UnitSettings(group=group, **more)


def _calls(settings: UnitSettings) -> int:
    """Return how many calls of the database an attempt makes that nothing disturbs."""
    world = UnitWorld()
    shaky = Shaky(world.inner)
    world.task(step, settings, database=shaky).run(units(_KEYS))
    return len(shaky.calls)


def _judge(world: UnitWorld, others: int = 0) -> list[Any]:
    """Check that the state is that of some order of all units; return the order."""
    cells = world.cells
    order: list[Any] = cells["order", "value"]
    assert sorted(one for one in order if one >= 0) == list(_KEYS)
    assert len(order) == len(_KEYS) + others
    expected = replayed(step, order)
    assert cells == expected
    progress = world.progress
    assert progress.is_finished and progress.done == len(_KEYS) and not progress.deferred
    return order


def _plausible(world: UnitWorld, *attempts: Statistics) -> None:
    total = world.progress.statistics
    assert total.units <= len(_KEYS) and total.groups <= total.units
    assert sum(one.units for one in attempts) <= len(_KEYS)
    assert all(getattr(total, name) >= 0 for name in ("conflicts", "reruns", "run_s", "function_s", "read_s"))


@pytest.mark.parametrize(("buffering", "group"), [*((CLIENT, group) for group in _GROUPS), (SERVER, 32)])
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_anywhere(fault: str, buffering: str, group: int) -> None:
    settings = _settings(group, buffering=buffering)
    for call in range(1, _calls(settings) + 1):
        world = UnitWorld()
        shaky = Shaky(world.inner)
        fail_at(shaky, call, fault)
        attempts = []
        try:
            attempts.append(world.task(step, settings, database=shaky).run(units(_KEYS)))
        except Death:
            assert fault.startswith("dies")
        attempts.append(world.task(step, settings).run(units(_KEYS)))
        assert _judge(world) == list(_KEYS), f"call {call}"
        _plausible(world, *attempts)
        if not fault.startswith("dies"):
            assert world.progress.statistics.units == attempts[0].units == len(_KEYS)
            assert attempts[1].skipped == len(_KEYS)


@pytest.mark.parametrize("group", _GROUPS)
@pytest.mark.parametrize("second", ["dies", "lost with effect"])
def test_two_faults(second: str, group: int) -> None:
    """The second attempt fails too, and a third one ends the job; the first has lost a reply, and then died."""
    settings = _settings(group)
    calls = _calls(settings)
    for call in range(1, calls + 1, 3):
        for later in range(1 + call % 2, calls + 1, 4):
            world = UnitWorld()
            for fault, number in (("dies later", call), (second, later)):
                shaky = Shaky(world.inner)
                fail_at(shaky, number, fault)
                try:
                    world.task(step, settings, database=shaky).run(units(_KEYS))
                except Death:
                    continue
            world.task(step, settings).run(units(_KEYS))
            assert _judge(world) == list(_KEYS)


def test_a_database_that_is_away_while_cells_are_named_is_no_fault_of_a_unit() -> None:
    """The definition of the table is read first where the hint names a cell."""

    def count(txn: Any, key: int, value: object) -> None:
        txn.put("t", key, txn.get("t", key, default=0) + 1)

    faults, call = 1, 0
    while faults:
        call += 1
        world = UnitWorld()
        shaky = Shaky(world.inner)
        fail_at(shaky, call, "unavailable")
        found = world.task(count, database=shaky, reads=lambda key, _value: [("t", key)]).run(units(_KEYS))
        faults = found.unavailable
        assert found.units == len(_KEYS)
        assert world.cells == replayed(count, _KEYS)
    assert call > len(shaky.calls) > 3


# --- conflicts --------------------------------------------------------------------------------------------------------
def _disturb(world: UnitWorld, key: int) -> None:
    """Run a unit of another job."""
    world.db.transact(lambda cells: step(cells, key, None))


@pytest.mark.parametrize("group", _GROUPS)
@pytest.mark.parametrize("times", [1, 2, 40])
def test_another_transaction_anywhere(times: int, group: int) -> None:
    """Before each call from some call on, another transaction changes what the units read.

    One makes a group conflict, two a single unit, so that it is deferred; many lead to the rounds with locks.
    """
    settings = _settings(group, rounds=3)
    for call in range(1, _calls(settings) + 1):
        world = UnitWorld()
        left = list(range(-1, -1 - times, -1))

        def before(number: int, name: str, call: int = call, world: UnitWorld = world, left: list[int] = left) -> None:
            if number >= call and left and name == "commit":
                _disturb(world, left.pop(0))

        shaky = Shaky(world.inner, before)
        statistics = world.task(step, settings, database=shaky).run(units(_KEYS))
        done = times - len(left)
        _judge(world, done)
        assert statistics.units == len(_KEYS) == world.progress.statistics.units
        assert world.progress.statistics.conflicts == statistics.conflicts
        if done == 40:
            assert statistics.locked > 0


@pytest.mark.parametrize("group", _GROUPS)
def test_a_conflict_and_a_death_anywhere(group: int) -> None:
    """Units are deferred when the attempt dies: the record says so."""
    settings = _settings(group)
    for call in range(1, 2 * _calls(settings), 1 if group == 1 else 2):
        world = UnitWorld()
        left = [-1, -2, -3]

        def before(number: int, name: str, call: int = call, world: UnitWorld = world, left: list[int] = left) -> None:
            if number == call:
                raise Death
            if left and name == "commit":
                _disturb(world, left.pop(0))

        try:
            world.task(step, settings, database=Shaky(world.inner, before)).run(units(_KEYS))
        except Death:
            world.task(step, settings).run(units(_KEYS))
        _judge(world, 3 - len(left))


# --- twins ------------------------------------------------------------------------------------------------------------
def _twins(world: UnitWorld, settings: UnitSettings, first: int, second: int, left: list[int]) -> None:
    def attempt(call: int, at_point: Callable[[], None]) -> None:
        def before(number: int, name: str) -> None:
            if left and name == "commit":
                _disturb(world, left.pop())
            if number == call:
                at_point()

        world.task(step, settings, database=Shaky(world.inner, before)).run(units(_KEYS))

    interleaved(partial(attempt, first), partial(attempt, second))


@pytest.mark.parametrize("group", [1, pytest.param(2, marks=pytest.mark.slow), 3, 32])
@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize(
    "stride", [pytest.param(1, marks=pytest.mark.slow), pytest.param(4, id="some")], ids=lambda stride: f"{stride}"
)
def test_twins(stride: int, others: int, group: int) -> None:
    """Two attempts run at the same time, interleaved at every pair of calls."""
    settings = _settings(group)
    calls = _calls(settings) + 2 * others
    for first in range(1, calls + 1, stride):
        for second in range(1 + first % stride, calls + 1, stride):
            world = UnitWorld()
            left = list(range(-others, 0))
            _twins(world, settings, first, second, left)
            _judge(world, others - len(left))
            assert world.progress.statistics.units <= len(_KEYS)
