"""The shipped namespace violates nothing in any quick scene, and each scene reaches what it is for."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from holdfast_checker.framework.subject import GoalTracker
from holdfast_checker.kernel.explore import Budget, Exploration, explore_world
from holdfast_checker.kernel.world import World
from holdfast_checker.namespace.properties import GOALS
from holdfast_checker.namespace.scenes import REPEATED, SCENES, SMALL, NamespaceScene
from holdfast_checker.namespace.worlds import build_world
from tests.checker.kernel.toys import with_ends
from tests.checker.scene_mutants import JUDGES

_MANY = 300_000


def _is_slow(scene: NamespaceScene) -> bool:
    """Check whether a scene takes more than a moment: `make check` explores it."""
    return bool(scene.collectors or scene.budgets or scene.crashes or scene.later or len(scene.scripts) > 2)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=JUDGES if _is_slow(one) else []) for name, one in SCENES.items()]
)
def test_nothing_is_found(name: str) -> None:
    scene = SCENES[name]
    tracker = GoalTracker(scene.reached, goals=GOALS)
    found = explore_world(build_world(scene, tracker))
    assert found.complete
    assert found.findings == {}
    assert tracker.missing == ()


@pytest.mark.parametrize("name", [pytest.param(name, marks=JUDGES) for name in REPEATED])
def test_requests_that_come_again_have_one_effect(name: str) -> None:
    """N6. ``holdfast check namespace --scene repeated-delete --states 3000000`` explores all 2.3 million states."""
    found = explore_world(build_world(REPEATED[name]), budget=Budget(states=_MANY))
    assert found.findings == {}
    assert found.complete or found.states >= _MANY


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_nothing_is_found_with_faults(name: str) -> None:
    found = explore_world(build_world(SMALL[name]))
    assert found.complete
    assert found.findings == {}


def _ends(world: World, *, reduce: bool = True) -> tuple[set[tuple[Hashable, ...]], Exploration]:
    watched, ends = with_ends(world)
    found = explore_world(watched, reduce=reduce)
    assert found.complete
    assert found.findings == {}
    return ends, found


@pytest.mark.parametrize("name", ["delete-directory", "quota-rename", "pessimistic-renames", "quota-reclaim"])
def test_fewer_orders_mean_the_same(name: str) -> None:
    """The reduction leaves out histories that differ only in the order of independent calls."""
    (reduced, few), (full, many) = _ends(build_world(SCENES[name])), _ends(build_world(SCENES[name]), reduce=False)
    assert reduced == full
    assert few.states <= many.states
