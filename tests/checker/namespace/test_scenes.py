"""The shipped namespace violates nothing in any quick scene, and each scene reaches what it is for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast_checker.framework.subject import GoalTracker
from holdfast_checker.kernel.explore import explore
from holdfast_checker.namespace.properties import GOALS
from holdfast_checker.namespace.scenes import SCENES, SMALL, Scene
from holdfast_checker.namespace.worlds import build_world
from tests.checker.scene_mutants import JUDGES


def _is_slow(scene: Scene) -> bool:
    """Check whether a scene takes more than a moment: `make check` explores it."""
    return bool(scene.collectors or scene.budgets or scene.crashes or scene.later or len(scene.scripts) > 2)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=JUDGES if _is_slow(one) else []) for name, one in SCENES.items()]
)
def test_nothing_is_found(name: str) -> None:
    scene = SCENES[name]
    tracker = GoalTracker(scene.reached, goals=GOALS)
    found = explore(build_world(scene, tracker))
    assert found.complete
    assert found.findings == {}
    assert tracker.missing == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_nothing_is_found_with_faults(name: str) -> None:
    found = explore(build_world(SMALL[name]))
    assert found.complete
    assert found.findings == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two-leaders", "election"])
def test_what_processes_forget_does_not_matter(name: str) -> None:
    """Merging what processes no longer need leaves all histories, and fewer states."""
    world = build_world(SCENES[name])
    merged, whole = explore(world), explore(replace(world, remembers=None))
    assert merged.histories == whole.histories
    assert merged.states < whole.states
    assert merged.findings == whole.findings == {}


def test_merged_histories_are_those_of_full_exploration() -> None:
    world = build_world(SCENES["quota-reclaim"])
    merged, whole = explore(world), explore(replace(world, remembers=None))
    assert merged.histories == whole.histories
    assert merged.states < whole.states


@pytest.mark.parametrize("name", ["delete-directory", "quota-rename", "pessimistic-renames", "quota-reclaim"])
def test_fewer_orders_mean_the_same(name: str) -> None:
    """The reduction leaves out histories that differ only in the order of independent calls."""
    reduced, full = explore(build_world(SCENES[name])), explore(build_world(SCENES[name]), reduce=False)
    assert reduced.histories == full.histories
    assert reduced.states <= full.states
    assert full.findings == {}
