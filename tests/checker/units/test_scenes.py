"""The shipped code goes unharmed through all scenes, and reaches their goals; the search leaves nothing out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast_checker.framework.subject import GoalTracker
from holdfast_checker.kernel.explore import Budget, Exploration, explore_world
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.units.contents import units_image_of
from holdfast_checker.units.properties import GOALS
from holdfast_checker.units.scenes import SCENES, UnitsScene
from holdfast_checker.units.worlds import build_world
from tests.checker.scene_mutants import JUDGES
from tests.checker.units.mutants import MUTANTS

_QUICK = (
    *("groups", "write-skew", "adds", "come-and-go", "stale-group", "failing-unit", "changed-input"),
    *("database-crash", "dropped-table", "worker-again", "locks", "absent-rows", "emitted-by-a-task", "read-ahead"),
)
"""Scenes of a moment; the others are slow."""


def _unharmed(scene: UnitsScene) -> Exploration:
    tracker = GoalTracker(scene.reached, goals=GOALS)
    found = explore_world(build_world(scene, tracker), budget=Budget(states=100_000))
    assert found.findings == {}
    assert found.complete
    assert tracker.missing == ()
    assert scene.budgets.keys() == found.faults.keys(), "each fault happens somewhere"
    return found


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in _QUICK else JUDGES) for name in SCENES])
def test_scenes(name: str) -> None:
    _unharmed(SCENES[name])


# --- the search -------------------------------------------------------------------------------------------------------
def _ends(scene: UnitsScene, *, reduce: bool) -> tuple[set[object], set[str]]:
    """Return what the database is at the ends of all histories, and the properties that break."""
    seen: set[object] = set()

    def end(view: View) -> None:
        image = units_image_of(view)
        seen.add(repr((image.records, image.ends)))

    world = build_world(scene)
    watched = replace(world, properties=(*world.properties, Property(name="ends", title="", meaning="", end=end)))
    found = explore_world(watched, reduce=reduce)
    assert found.complete
    return seen, set(found.findings)


@pytest.mark.parametrize(
    "name",
    [
        *("write-skew", "database-crash", "absent-rows"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("stale-reads", "second-attempt", "dropped-table", "forgotten", "locks", "worker-again")
        ),
    ],
)
def test_equivalent_histories_are_left_out_and_no_others(name: str) -> None:
    assert _ends(SCENES[name], reduce=True) == _ends(SCENES[name], reduce=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["plain-counter-lies", "adds-are-not-validated", "no-table-guard", "stale-errors", "absence-is-trusted"]
)
def test_no_mistake_is_left_out_either(name: str) -> None:
    [mutant] = [one for one in MUTANTS if one.name == name]
    scene = SCENES[mutant.scenes[0]]
    with mutant.planted():
        assert _ends(scene, reduce=True)[1] == _ends(scene, reduce=False)[1]
