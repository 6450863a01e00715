"""Partial-order reduction leaves nothing out: the same violations and the same ends, from no more states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.cluster import TaskCommitTiming
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.explore import explore_world
from holdfast_checker.kernel.world import World
from holdfast_checker.specimens import COMPARED
from tests.checker.kernel.toys import (
    CELLS,
    LOCK,
    Handle,
    always,
    ends_with,
    guarded_increment,
    increment,
    swap_increment,
    toy_world,
    with_ends,
)


def _same(world: World) -> tuple[int, int]:
    """Compare both explorations; return the states of each."""
    watched, seen = with_ends(world)
    reduced = explore_world(watched)
    ends = set(seen)
    seen.clear()
    full = explore_world(watched, reduce=False)
    assert reduced.complete
    assert full.complete
    assert set(reduced.findings) == set(full.findings)
    assert ends == seen
    assert reduced.states <= full.states
    return reduced.states, full.states


# --- toys -------------------------------------------------------------------------------------------------------------
def _alone(name: str, steps: int) -> Callable[[Handle], None]:
    def run(handle: Handle) -> None:
        for number in range(steps):
            handle.put(f"{name} {number}", 1)

    return run


def _privately(run: Callable[[Handle], None], name: str) -> Callable[[Handle], None]:
    def program(handle: Handle) -> None:
        handle.put(name, 1)
        run(handle)
        handle.put(name, 2)

    return program


def _wait(handle: Handle) -> None:
    handle.put("there", 1)
    handle.wait_for("never", 1)


def _break(handle: Handle) -> None:
    handle.break_("glass")


def _break_other(handle: Handle) -> None:
    handle.put("tried", 1)
    handle.break_("window")


NOT_TWO = always("not two", lambda now: now.get("count", 0) != 2)
BOTH = ends_with("both", lambda now: now.get("count") == 2)
CRASH, LOST, FAILURE, CLOCK, BREAK = Fault.CRASH, Fault.LOST_REPLY, Fault.FAILURE, Fault.CLOCK, Fault.PARTITION


def _toy(programs: dict[str, Callable[[Handle], None]], **budgets: int) -> World:
    return toy_world(
        programs,
        NOT_TWO,
        BOTH,
        budgets={Fault[name]: number for name, number in budgets.items()},
        observed=lambda call: call.args[:1] == ("count",),
    )


TOYS = {
    "race": _toy({"a": increment, "b": increment}),
    "race and crash": _toy({"a": increment, "b": increment}, CRASH=1),
    "private": _toy({name: _alone(name, 4) for name in "abc"}),
    "private and crash": _toy({name: _alone(name, 3) for name in "abc"}, CRASH=1),
    "private and lost": _toy({name: _alone(name, 3) for name in "abc"}, LOST_REPLY=1, FAILURE=1),
    "mixed": _toy({name: _privately(increment, name) for name in "abc"}, CRASH=1),
    "mixed and lost": _toy({name: _privately(increment, name) for name in "ab"}, LOST_REPLY=2),
    "lock": _toy({name: _privately(guarded_increment, name) for name in "ab"}, CRASH=1, CLOCK=1),
    "swap": _toy({name: _privately(swap_increment, name) for name in "ab"}, CRASH=1),
    "waits forever": _toy({"a": _wait, "b": _alone("b", 3)}, CRASH=1),
    "only breaks": _toy({"a": _break, "b": _break_other}, PARTITION=1),
    "only breaks beside others": _toy({"a": _break, "b": _break_other, "c": _alone("c", 2)}, PARTITION=1, CRASH=1),
}


@pytest.mark.parametrize("name", TOYS)
def test_toys(name: str) -> None:
    _same(TOYS[name])


def test_a_waiting_actor_does_not_use_up_the_budget_of_others() -> None:
    """An actor with only faulty steps must not move first: it may never move, and another actor has the fault."""
    _world, ends = with_ends(TOYS["waits forever"])
    explore_world(_world)
    assert {len(dict(cells)) for cells, _lock in ends} == {2, 3, 4}, "the other one died after each of its steps"


def test_private_work_is_reduced_to_one_order() -> None:
    reduced, full = _same(TOYS["private"])
    assert (reduced, full) == (13, 125)


# --- random programs --------------------------------------------------------------------------------------------------
_KEYS = st.sampled_from(["count", "x", "y"])
_CALLS = st.one_of(
    st.tuples(st.just("get"), _KEYS),
    st.tuples(st.just("put"), _KEYS, st.integers(1, 2)),
    st.tuples(st.just("swap"), _KEYS, st.integers(0, 1), st.integers(1, 2)),
    st.tuples(st.just("add"), _KEYS),
    st.tuples(st.just("wait_for"), _KEYS, st.integers(0, 1)),
    st.tuples(st.just("break_"), _KEYS),
    st.tuples(st.just("acquire")),
    st.tuples(st.just("release")),
)
PROGRAMS = st.lists(st.lists(_CALLS, min_size=1, max_size=4), min_size=2, max_size=3)
BUDGETS = st.dictionaries(st.sampled_from([CRASH, LOST, FAILURE, CLOCK, BREAK]), st.just(1), max_size=2)


def _program(own: str, calls: list[tuple[Any, ...]]) -> Callable[[Handle], None]:
    def run(handle: Handle) -> None:
        failures = 0
        for name, *args in calls:
            try:
                if name == "add":
                    handle.put(args[0], handle.get(args[0]) + 1)
                else:
                    getattr(handle, name)(*args)
            except HoldfastError:
                failures += 1
        handle.put(own, failures)

    return run


def random_world(programs: list[list[tuple[Any, ...]]], budgets: dict[Fault, int]) -> World:
    """Build a world from drawn calls."""
    return toy_world(
        {f"actor {number}": _program(f"own {number}", calls) for number, calls in enumerate(programs)},
        NOT_TWO,
        BOTH,
        ends_with("x", lambda now: now.get("x", 0) == now.get("y", 0)),
        budgets=budgets,
        observed=lambda call: call.resource == CELLS and call.args[0] == "count",
    )


@settings(derandomize=True)
@given(PROGRAMS, BUDGETS)
def test_random_programs(programs: list[list[tuple[Any, ...]]], budgets: dict[Fault, int]) -> None:
    _same(random_world(programs, budgets))


def test_random_programs_reach_the_lock() -> None:
    """The drawn calls are calls of the handle."""
    assert {"get", "put", "swap", "wait_for", "break_", "acquire", "release"} <= set(dir(Handle))
    assert {CELLS, LOCK} == set(toy_world({}).resources)


# --- commits ----------------------------------------------------------------------------------------------------------
SCENES = {
    "crash": {"tasks": 1, "attempts": 1, "budgets": {CRASH: 1}},
    "two ask": {"tasks": 1, "attempts": 2, "budgets": {CRASH: 1}, "order": TaskCommitTiming.ASK_FIRST},
    "cut off": {"tasks": 1, "attempts": 2, "budgets": {CRASH: 1, BREAK: 1}},
    "two tasks": {"tasks": 2, "attempts": 1, "budgets": {CRASH: 1}},
    "recovery": {"tasks": 1, "attempts": 1, "budgets": {CRASH: 1, CLOCK: 1}, "recovery": 1},
    "second driver": {"tasks": 1, "attempts": 1, "budgets": {BREAK: 1, CRASH: 1}, "second_driver": True},
    "replies": {"tasks": 1, "attempts": 1, "budgets": {LOST: 1, FAILURE: 1, Fault.STALE_LISTING: 1}},
}
_SMALL = [
    *(("two_phase", name) for name in ("crash", "two ask", "cut off", "two tasks")),
    *(("file-v1", name) for name in ("two ask", "two tasks", "recovery", "second driver")),
    *(("file-v2", name) for name in ("cut off", "recovery", "second driver", "replies")),
    *(("magic", name) for name in ("crash", "second driver")),
    *(("direct", name) for name in SCENES),
]


def _commit_world(committer: str, scene: str) -> World:
    return build_world(COMPARED[committer], CommitterScene(name=scene, summary="", files=1, **SCENES[scene]))  # type: ignore[arg-type]  # keyword arguments


@pytest.mark.parametrize(("committer", "scene"), _SMALL)
def test_commits(committer: str, scene: str) -> None:
    _same(_commit_world(committer, scene))


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("committer", COMPARED)
def test_commits_of_every_committer(committer: str, scene: str) -> None:
    _same(_commit_world(committer, scene))
