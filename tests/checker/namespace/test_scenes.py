"""The shipped namespace violates nothing in any quick scene, and each scene reaches what it is for."""

from __future__ import annotations

import pytest

from holdfast.checker.kernel.explore import Budget, explore
from holdfast.checker.namespace.goals import GOALS
from holdfast.checker.namespace.scenes.catalog import FAMILIES, SCENES, SMALL
from holdfast.checker.namespace.worlds import build_world
from holdfast.checker.transactions.goals import GoalTracker

_LARGE = {"two-leaders", "election", "lease-theft", "quota-expired", "lost-deletion"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in _LARGE else []) for name in SCENES]
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
    assert explore(build_world(SMALL[name]), budget=Budget(states=60_000)).findings == {}


@pytest.mark.parametrize("name", ["delete-directory", "quota-rename", "ids", "pessimistic-renames", "quota-reclaim"])
def test_fewer_orders_mean_the_same(name: str) -> None:
    """The reduction leaves out histories that differ only in the order of independent calls."""
    reduced, full = explore(build_world(SCENES[name])), explore(build_world(SCENES[name]), reduce=False)
    assert reduced.histories == full.histories
    assert reduced.states <= full.states
    assert full.findings == {}


def test_every_scene_has_a_summary() -> None:
    assert all(scene.summary and scene.reached for scene in SCENES.values())
    assert len(SCENES) >= 30 and len(FAMILIES) == len(SCENES) + len(SMALL)
