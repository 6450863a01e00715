"""Exploration of small worlds with known answers, and what ends it early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.errors import HoldfastError
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.counterexample import replay_choices
from holdfast_checker.kernel.explore import Budget, Exploration, explore_world
from holdfast_checker.kernel.world import DIES, Choice, Property, World
from tests.checker.kernel.toys import (
    Handle,
    always,
    ends_with,
    guarded_increment,
    increment,
    racing_world,
    swap_increment,
    toy_world,
    with_ends,
)
from tests.clocks import SimulatedClock

ALL_TWO = ends_with("count", lambda now: now.get("count") == 2)


def ticking() -> SimulatedClock:
    """Return a clock on which a second passes at each look."""
    return SimulatedClock(at_s=0.0, step_s=1.0)


def test_a_lost_update_is_found_and_is_as_short_as_it_gets() -> None:
    found = explore_world(racing_world())
    assert found.complete
    assert found.findings["count"].choices in {
        tuple(map(Choice, names))
        for names in (
            ("first", "second", "first", "second"),
            ("first", "second", "second", "first"),
            ("second", "first", "second", "first"),
            ("second", "first", "first", "second"),
        )
    }
    assert found.findings["count"].broke == "the cells hold {'count': 1}"


@pytest.mark.parametrize("program", [swap_increment, guarded_increment])
def test_counting_that_is_right_is_found_right(program: Callable[[Handle], object]) -> None:
    found = explore_world(toy_world({"first": program, "second": program, "third": program}, _counts(3)))
    assert found.complete
    assert found.findings == {}


def _counts(number: int) -> Property:
    return ends_with("count", lambda now: now.get("count") == number)


def test_a_lease_that_runs_out_early_breaks_a_lock() -> None:
    """The holder is only slow: both believe that they hold the lock."""
    programs = {"first": guarded_increment, "second": guarded_increment}
    found = explore_world(toy_world(programs, ALL_TWO, budgets={Fault.CLOCK: 1}))
    assert set(found.findings) == {"count"}
    choices = found.findings["count"].choices
    assert [choice.label for choice in choices if choice.label] in (
        ["the lease of first runs out"],
        ["the lease of second runs out"],
    )


def test_a_crash_leaves_the_lock_to_others() -> None:
    """An actor that dies before it counted is missing from the count; no actor waits forever."""
    programs = {"first": guarded_increment, "second": guarded_increment}
    world, ends = with_ends(toy_world(programs, budgets={Fault.CRASH: 1}))
    assert explore_world(world).complete
    assert ends == {((("count", 1),), ""), ((("count", 2),), "")}


def test_an_ambiguous_reply_counts_twice() -> None:
    def repeat(handle: Handle) -> None:
        try:
            increment(handle)
        except HoldfastError:  # the mistake: the put may have happened
            increment(handle)

    at_most_one = always("once", lambda now: now.get("count", 0) <= 1)
    assert explore_world(toy_world({"only": repeat}, at_most_one, budgets={Fault.FAILURE: 1})).findings == {}
    found = explore_world(toy_world({"only": repeat}, at_most_one, budgets={Fault.LOST_REPLY: 1}))
    assert [choice.label for choice in found.findings["once"].choices] == ["", "reply lost", "", ""]


def test_code_that_breaks_is_a_finding() -> None:
    def divide(handle: Handle) -> None:
        handle.put("share", 12 // handle.get("count"))

    found = explore_world(toy_world({"divider": divide, "counter": increment}), reduce=False)
    assert "ZeroDivisionError" in found.findings["code"].broke
    assert found.findings["code"].choices == (Choice("divider"),)


def test_what_was_found_replays() -> None:
    world = racing_world({Fault.CRASH: 1})
    for name, finding in explore_world(world).findings.items():
        assert (name, finding.broke) in replay_choices(world, finding.choices).broken


def test_every_fault_with_a_budget_happens_and_no_other() -> None:
    for budgets in ({Fault.CRASH: 1}, {Fault.FAILURE: 2, Fault.LOST_REPLY: 1}, {}):
        assert set(explore_world(racing_world(budgets)).faults) == set(budgets)


def test_nobody_dies_before_having_acted() -> None:
    """An actor that never acted never existed."""
    space = replay_choices(racing_world({Fault.CRASH: 1}), [])
    assert all(step.label != DIES for step in space.space.steps(space.states[0]))


def _many(steps: int) -> World:
    def run(handle: Handle) -> None:
        for number in range(steps):
            handle.put(f"cell {number}", handle.get(f"cell {number}") + 1)

    return toy_world({"first": run, "second": run})


def test_a_budget_of_states_ends_it() -> None:
    found = explore_world(_many(40), budget=Budget(states=1000))
    assert not found.complete
    assert 1000 < found.states < 3000


def test_a_budget_of_seconds_ends_it() -> None:
    told: list[int] = []
    found = explore_world(
        _many(40), budget=Budget(seconds=2.5), clock=ticking(), progress=lambda now: told.append(now.states)
    )
    assert not found.complete
    assert len(told) == 3, "told at each look at the clock"
    assert told == sorted(told)


def test_it_ends_when_it_has_seen_enough() -> None:
    whole = explore_world(racing_world({Fault.CRASH: 1, Fault.LOST_REPLY: 1}))
    part = explore_world(racing_world({Fault.CRASH: 1, Fault.LOST_REPLY: 1}), until=lambda now: bool(now.findings))
    assert not part.complete
    assert part.states < whole.states
    assert set(part.findings) <= set(whole.findings)


def test_exploration_is_the_same_in_every_run() -> None:
    def run() -> Exploration:
        return replace(explore_world(racing_world({Fault.CRASH: 1, Fault.LOST_REPLY: 1})), seconds=0.0)

    assert run() == run()
