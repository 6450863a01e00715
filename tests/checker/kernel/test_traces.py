"""Histories are counted as Mazurkiewicz traces: compared with all paths, classified by swapping neighbors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings

from holdfast_checker.kernel.calls import Fault, Footprint, conflicts
from holdfast_checker.kernel.explore import explore
from holdfast_checker.kernel.state_space import State, StateSpace
from holdfast_checker.kernel.world import World
from tests.checker.kernel.test_reduction import BUDGETS, PROGRAMS, TOYS, random_world
from tests.checker.kernel.toys import (
    CELLS,
    Handle,
    Program,
    guarded_increment,
    increment,
    racing_world,
    swap_increment,
    toy_world,
)

_PATHS = 9000
"""Of a world that is gone through path by path."""

_Path = tuple[tuple[int, str], ...]
"""Who did what, and how it ended."""

_Touched = tuple[Footprint, bool]
"""What a call touches, and whether a property looks at it."""


def _paths(world: World, most: int = _PATHS) -> dict[_Path, tuple[_Touched, ...]]:
    """Return all paths from the start to an end, without merging any."""
    space = StateSpace(world)
    found: dict[_Path, tuple[_Touched, ...]] = {}

    def follow(state: State, path: _Path, touched: tuple[_Touched, ...]) -> None:
        steps = list(space.steps(state))
        if all(step.fault is not None for step in steps):
            found[path] = touched
        assert len(found) <= most, "this world is too large to be gone through path by path"
        for step in steps:
            footprint = world.resources[step.call.resource].footprint(step.call)
            what = (step.actor, f"{step.call}: {step.label}")
            follow(step.target, (*path, what), (*touched, (footprint, world.observed(step.call))))

    follow(space.initial(), (), ())
    return found


def _count_traces(world: World, most: int = _PATHS) -> int:
    paths = _paths(world, most)
    numbers = {path: number for number, path in enumerate(paths)}
    parents = list(range(len(paths)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    for path, touched in paths.items():
        for at in range(len(path) - 1):
            (one, seen), (other, also_seen) = touched[at : at + 2]
            swapped = (*path[:at], path[at + 1], path[at], *path[at + 2 :])
            commute = path[at][0] != path[at + 1][0] and not (seen and also_seen) and not conflicts(one, other)
            if commute and swapped in paths:
                parents[root(numbers[path])] = root(numbers[swapped])
    return len(set(map(root, parents)))


def _alone(name: str, steps: int) -> Callable[[Handle], None]:
    def run(handle: Handle) -> None:
        for number in range(steps):
            handle.put(f"{name} {number}", 1)

    return run


def _read(handle: Handle) -> None:
    handle.get("count")


@pytest.mark.parametrize(
    ("programs", "traces"),
    [
        ({"a": _alone("a", 3), "b": _alone("b", 3), "c": _alone("c", 2)}, 1),  # 560 paths
        ({"a": _read, "b": _read, "c": _read}, 1),
        ({"a": increment, "b": _read}, 2),  # the read comes before or after the put
        ({"a": increment, "b": increment}, 4),  # get and put of each; 6 paths
        ({"a": increment, "b": _alone("b", 3)}, 1),
        ({"a": lambda h: h.put("x", 1), "b": lambda h: h.put("x", 2), "c": lambda h: h.put("x", 3)}, 6),
    ],
)
@pytest.mark.parametrize("reduce", [True, False])
def test_known_numbers(programs: dict[str, Program], traces: int, reduce: bool) -> None:
    world = toy_world(programs)
    assert explore(world, reduce=reduce).histories == traces
    assert _count_traces(world) == traces


_LARGE = {"private", "private and lost", "mixed"}
_WORLDS = {
    **{name: world for name, world in TOYS.items() if name not in _LARGE},
    "race, crash and lost reply": racing_world({Fault.CRASH: 1, Fault.LOST_REPLY: 1}),
    "two crashes": toy_world({"a": increment, "b": increment, "c": _read}, budgets={Fault.CRASH: 2}),
    "leases": toy_world({"a": guarded_increment, "b": guarded_increment}, budgets={Fault.CLOCK: 1, Fault.CRASH: 1}),
    "swaps": toy_world({"a": swap_increment, "b": swap_increment}),
}


@pytest.mark.parametrize("name", _WORLDS)
def test_as_many_as_classes_of_paths(name: str) -> None:
    """A death unblocks others if a lock was held, which no footprint shows."""
    traces = _count_traces(_WORLDS[name])
    assert explore(_WORLDS[name]).histories == traces
    assert explore(_WORLDS[name], reduce=False).histories == traces


@settings(derandomize=True)
@given(PROGRAMS, BUDGETS)
def test_random_programs(programs: list[list[tuple[object, ...]]], budgets: dict[Fault, int]) -> None:
    world = random_world(programs, budgets)
    try:
        traces = _count_traces(world, most=300)
    except AssertionError:
        assume(False)
    assert explore(world).histories == traces
    assert explore(world, reduce=False).histories == traces


def test_what_properties_look_at_is_never_swapped() -> None:
    programs = {"a": lambda h: h.put("x", 1), "b": lambda h: h.put("y", 1)}
    assert explore(toy_world(programs)).histories == 1
    assert explore(toy_world(programs, observed=lambda call: call.resource == CELLS)).histories == 2
