"""Code that behaves differently after the same replies is detected, not explored."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.explore import Budget, explore_world
from holdfast_checker.kernel.walk import WalkResults, run_random_histories
from holdfast_checker.kernel.world import NondeterminismError, World
from tests.checker.kernel.toys import Handle, toy_world


def _counts_outside() -> Callable[[Handle], None]:
    runs = itertools.count()

    def run(handle: Handle) -> None:
        handle.put(f"run {next(runs)}", 1)
        handle.put("done", 1)

    return run


def _names_by_id() -> Callable[[Handle], None]:
    alive: list[object] = []

    def run(handle: Handle) -> None:
        alive.append(object())
        handle.put(f"object {id(alive[-1])}", 1)
        handle.put("done", 1)

    return run


def _order_of_a_set() -> Callable[[Handle], None]:
    alive: list[object] = []

    def run(handle: Handle) -> None:
        made = [object() for _ in range(50)]
        alive.extend(made)
        numbers = {each: number for number, each in enumerate(made)}
        for each in set(made):
            handle.put(f"number {numbers[each]}", 1)

    return run


def _remembers() -> Callable[[Handle], None]:
    seen: dict[str, int] = {}

    def run(handle: Handle) -> None:
        if "cell" not in seen:
            seen["cell"] = handle.get("cell")
        handle.put("cell", seen["cell"] + 1)

    return run


def _world(program: Callable[[Handle], object]) -> World:
    return toy_world({"odd": program, "even": lambda handle: handle.put("cell", 5)}, budgets={Fault.LOST_REPLY: 1})


@pytest.mark.parametrize("make", [_counts_outside, _names_by_id, _order_of_a_set, _remembers])
def test_it_is_found(make: Callable[[], Callable[[Handle], object]]) -> None:
    with pytest.raises(NondeterminismError):
        explore_world(_world(make()))
    with pytest.raises(NondeterminismError):
        run_random_histories(_world(make()), WalkResults(seed=1), budget=Budget(histories=50))
