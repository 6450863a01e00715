"""Random histories: drawn only from seeds, ended by budgets, with every fault that is possible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel import walk as walking
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.counterexample import replay_choices
from holdfast_checker.kernel.explore import Budget, explore_world
from holdfast_checker.kernel.walk import WalkResults, run_random_histories
from holdfast_checker.kernel.world import DIES, World
from holdfast_checker.specimens import COMPARED
from tests.checker.kernel.test_explore import ticking
from tests.checker.kernel.toys import (
    draw_history,
    ends_with,
    guarded_increment,
    increment,
    racing_world,
    toy_world,
    with_ends,
)

ALL = dict.fromkeys(Fault, 1)


def _commit_world(committer: str = "two_phase", crashes: int = 1) -> World:
    budgets = {**ALL, Fault.CRASH: crashes}
    scene = CommitterScene(name="large", summary="", recovery=1, second_driver=True, budgets=budgets)
    return build_world(COMPARED[committer], scene)


def test_what_is_rare_is_found() -> None:
    """Both have to read before either writes, and a third actor must not come between."""
    world = toy_world(dict.fromkeys("abc", increment), ends_with("lost two", lambda now: now["count"] > 1))
    found = run_random_histories(world, WalkResults(seed=1), budget=Budget(histories=100)).findings["lost two"]
    assert dict(replay_choices(world, found.choices).broken)["lost two"] == found.broke


def test_counting_that_is_right_is_found_right() -> None:
    world = toy_world(dict.fromkeys("abc", guarded_increment), ends_with("three", lambda now: now["count"] == 3))
    found = run_random_histories(world, WalkResults(seed=1), budget=Budget(histories=200))
    assert found.findings == {}
    assert (found.histories, len(found.ends)) == (200, 1)


def test_all_ends_are_reached() -> None:
    world, ends = with_ends(racing_world({Fault.CRASH: 1, Fault.LOST_REPLY: 1, Fault.FAILURE: 1}))
    explore_world(world)
    assert len(run_random_histories(world, WalkResults(seed=3), budget=Budget(histories=300)).ends) == len(ends) > 2


def test_a_history_comes_from_its_seed_alone() -> None:
    world = racing_world({Fault.CRASH: 1})
    found = run_random_histories(world, WalkResults(seed=5, next=17), budget=Budget(histories=40)).findings["count"]
    assert found.seed is not None
    assert draw_history(world, found.seed)[: len(found.choices)] == found.choices


def test_a_walk_goes_on_where_it_was_left() -> None:
    world = _commit_world("file-v2")
    whole = run_random_histories(world, WalkResults(seed=9), budget=Budget(histories=12))
    begun = run_random_histories(world, WalkResults(seed=9), budget=Budget(histories=5))
    rest = run_random_histories(world, WalkResults(seed=9, next=begun.next), budget=Budget(histories=7))
    assert (begun.next, rest.next) == (5, whole.next)
    assert begun.steps + rest.steps == whole.steps
    assert {**rest.findings, **begun.findings} == whole.findings
    assert {fault: begun.faults.get(fault, 0) + rest.faults.get(fault, 0) for fault in whole.faults} == whole.faults


@pytest.mark.slow
def test_walks_are_the_same_in_every_run() -> None:
    def run(seed: int) -> WalkResults:
        return replace(
            run_random_histories(_commit_world(), WalkResults(seed=seed), budget=Budget(histories=6)), seconds=0.0
        )

    assert run(1) == run(1)
    assert run(1).steps != run(2).steps


def test_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learned about a world is dropped if it becomes too much; the histories stay the same."""
    world = _commit_world("file-v1")
    kept = run_random_histories(world, WalkResults(seed=4), budget=Budget(histories=8))
    monkeypatch.setattr(walking, "_PLACES_LIMIT", 100)
    forgot = run_random_histories(world, WalkResults(seed=4), budget=Budget(histories=8))
    assert replace(kept, seconds=0.0) == replace(forgot, seconds=0.0)


def test_a_budget_of_seconds_ends_it() -> None:
    found = run_random_histories(racing_world(), WalkResults(seed=1), budget=Budget(seconds=9.5), clock=ticking())
    assert (found.histories, found.seconds) == (10, 10.0)


def test_it_ends_when_it_has_seen_enough() -> None:
    found = run_random_histories(racing_world(), WalkResults(seed=1), until=lambda now: bool(now.findings))
    assert set(found.findings) == {"count"}
    assert found.numbers == {"count": found.histories - 1}


def test_an_end_is_judged_although_something_could_still_go_wrong() -> None:
    world = toy_world(
        {"waits": lambda handle: handle.break_("glass")},
        ends_with("broken glass", lambda now: now.get("glass") == 1),
        budgets={Fault.PARTITION: 1},
    )
    found = run_random_histories(world, WalkResults(seed=1), budget=Budget(histories=50))
    assert found.findings["broken glass"].choices == ()
    assert 0 < found.faults[Fault.PARTITION] < 50


def test_every_fault_happens_in_a_commit() -> None:
    found = run_random_histories(_commit_world(), WalkResults(seed=1), budget=Budget(histories=20))
    assert set(found.faults) == set(Fault)


@pytest.mark.slow
def test_everybody_dies_and_everybody_acts_after_a_death() -> None:
    world = _commit_world("file-v2", crashes=2)
    dead, after = set[str](), set[str]()
    for seed in range(120):
        choices = draw_history(world, seed)
        for at, choice in enumerate(choices):
            if choice.label == DIES:
                dead.add(choice.actor)
                after |= {one.actor for one in choices[at + 1 :]}
    assert dead == {actor.name for actor in world.actors if actor.mortal}
    assert after >= {actor.name for actor in world.actors if actor.mortal}
