"""Shrunk histories have fewer actors, faults, switches and steps, and violate the same property."""

from __future__ import annotations

from itertools import groupby

import pytest

from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.counterexample import Counterexample, replay_choices
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.kernel.shrink import shrink_counterexample
from holdfast_checker.kernel.walk import WalkResults, run_random_histories
from holdfast_checker.kernel.world import Choice, World
from holdfast_checker.specimens import COMPARED
from tests.checker.kernel.toys import Handle, always, cells, ends_with, increment, toy_world

FAULTS = {Fault.CRASH: 2, Fault.LOST_REPLY: 2, Fault.FAILURE: 2}


def _runs(found: Counterexample) -> list[str]:
    return [actor for actor, _run in groupby(found.choices, key=lambda choice: choice.actor)]


def _cost(world: World, found: Counterexample) -> tuple[int, int, int, int]:
    faults = sum(step.fault is not None for step in replay_choices(world, found.choices).steps)
    return len(set(_runs(found))), faults, len(_runs(found)), len(found.choices)


def _busy(handle: Handle) -> None:
    for number in range(4):
        try:
            handle.put(f"noise {number}", handle.get("count"))
        except HoldfastError:
            continue


def _noisy_increment(handle: Handle) -> None:
    _busy(handle)
    increment(handle)
    _busy(handle)


def _found(world: World, name: str) -> Counterexample:
    walks = run_random_histories(
        world, WalkResults(seed=2), budget=Budget(histories=3000), until=lambda now: name in now.findings
    )
    return walks.findings[name]


def test_noise_is_left_out() -> None:
    """One actor records that it counted; no other actor and no fault is needed."""
    programs = {"noise": _busy, "first": _noisy_increment, "more noise": _busy, "second": _noisy_increment}
    world = toy_world(programs, always("seen", lambda now: now.get("noise 3") != 1), budgets=FAULTS)
    found = _found(world, "seen")
    small = shrink_counterexample(world, found)
    assert _cost(world, small) == (1, 0, 1, 18)
    assert dict(replay_choices(world, small.choices).broken)["seen"] == small.broke


def test_a_lost_update_needs_three_runs_and_four_steps() -> None:
    """Of four actors that count, two are needed: one reads, the other counts, the first writes an outdated number."""

    def never_back(handle: Handle) -> None:
        now = handle.get("count")
        handle.put("count", now + 1)
        handle.put(f"{handle.port.name} wrote {now + 1}", 1)

    def same_number_twice(now: dict[str, int]) -> bool:
        return sum(key.endswith("wrote 1") for key in now) < 2

    world = toy_world(dict.fromkeys("abcd", never_back), always("twice", same_number_twice), budgets=FAULTS)
    small = shrink_counterexample(world, _found(world, "twice"))
    assert _cost(world, small) == (2, 0, 3, 6)
    assert set(_runs(small)) == {"a", "b"}, "those that come first in the world, whoever it was"


def test_a_fault_that_is_needed_stays() -> None:
    def repeat(handle: Handle) -> None:
        _busy(handle)
        try:
            increment(handle)
        except HoldfastError:  # the mistake: the put may have happened
            increment(handle)

    world = toy_world(
        {"noise": _busy, "repeats": repeat}, always("once", lambda now: now.get("count", 0) < 2), budgets=FAULTS
    )
    small = shrink_counterexample(world, _found(world, "once"))
    assert _runs(small) == ["repeats"]
    assert [choice.label for choice in small.choices if choice.label] == ["reply lost"]


def test_an_end_is_still_an_end() -> None:
    """For a property of ends, all actors end, one after the other, as far as possible."""
    world = toy_world(
        {"first": _noisy_increment, "second": _noisy_increment},
        ends_with("count", lambda now: now.get("count") == 2),
        budgets=FAULTS,
    )
    found = _found(world, "count")
    small = shrink_counterexample(world, found)
    replayed = replay_choices(world, small.choices)
    assert replayed.space.is_final(replayed.states[-1])
    assert cells(replayed.space.view(replayed.states[-1]))["count"] == 1
    assert _cost(world, small) < _cost(world, found)
    assert len(_runs(small)) <= 3


@pytest.mark.parametrize(
    ("committer", "name", "most"), [("file-v2", "C4", (2, 0, 2, 20)), ("direct", "C4", (2, 0, 2, 12))]
)
def test_early_output_needs_a_driver_and_one_attempt(committer: str, name: str, most: tuple[int, ...]) -> None:
    scene = CommitterScene(name="large", summary="", recovery=1, budgets={Fault.CRASH: 1, Fault.PARTITION: 1})
    world = build_world(COMPARED[committer], scene)
    small = shrink_counterexample(world, _found(world, name))
    assert _cost(world, small) <= most
    assert _runs(small) == ["driver", "task 0 attempt 0"]
    assert dict(replay_choices(world, small.choices).broken)[name] == small.broke


def test_it_is_the_same_in_every_run_and_does_not_get_worse() -> None:
    world = toy_world(
        dict.fromkeys("abc", _noisy_increment), always("two", lambda now: now.get("count", 0) < 2), budgets=FAULTS
    )
    found = _found(world, "two")
    small = shrink_counterexample(world, found)
    assert shrink_counterexample(world, found) == small
    assert shrink_counterexample(world, small) == small
    assert (small.world, small.property, small.seed) == (found.world, found.property, found.seed)


def test_what_it_may_cost_is_bounded() -> None:
    world = toy_world(
        dict.fromkeys("abc", _noisy_increment), always("two", lambda now: now.get("count", 0) < 2), budgets=FAULTS
    )
    found = _found(world, "two")
    assert shrink_counterexample(world, found, replays=0).choices == found.choices
    costs = [_cost(world, shrink_counterexample(world, found, replays=replays)) for replays in (0, 5, 50, 500)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_a_history_in_which_nothing_breaks_is_refused() -> None:
    world = toy_world({"only": increment}, always("two", lambda now: now.get("count", 0) < 2))
    with pytest.raises(InvalidRequestError, match="does not break"):
        shrink_counterexample(
            world, Counterexample("toy", "two", "it was broken once", (Choice("only"), Choice("only")))
        )
