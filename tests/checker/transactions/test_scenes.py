"""The shipped code goes unharmed through all scenes, and reaches their goals; the search leaves nothing out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast_checker.framework.subject import GoalTracker
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.explore import Budget, Exploration, explore_world
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.simulated.database import DATABASE
from holdfast_checker.transactions.properties import GOALS
from holdfast_checker.transactions.scenes import KINDS, SCENES
from holdfast_checker.transactions.worlds import TRANSACTIONS, TransactionScene, build_world
from tests.checker.scene_mutants import JUDGES
from tests.checker.transactions.mutants import MUTANTS

_QUICK = ("write-skew-in-steps", "lock-order", "broken-connection")
"""Scenes with statements as steps that are explored by default, among others of a moment."""


def _is_slow(scene: TransactionScene) -> bool:
    is_small = not scene.stepped and not scene.crashes and not scene.budgets and len(scene.works) < 3
    return scene.name not in _QUICK and not is_small


def _unharmed(scene: TransactionScene) -> Exploration:
    tracker = GoalTracker(scene.reached, GOALS)
    found = explore_world(build_world(scene, tracker), budget=Budget(states=100_000))
    assert found.findings == {}
    assert found.complete
    assert tracker.missing == ()
    assert scene.budgets.keys() == found.faults.keys(), "each fault happens somewhere"
    return found


@pytest.mark.parametrize(
    ("family", "start"),
    [
        ("pairs", "present"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("pairs", "absent"), ("pairs-in-steps", "absent"), ("pairs-in-steps", "present"))
        ),
    ],
)
def test_pairs(family: str, start: str) -> None:
    scenes = [scene for scene in TRANSACTIONS.families[family] if f"/{start}:" in scene.name]
    assert len(scenes) == len(KINDS) * (len(KINDS) + 1) // 2
    for scene in scenes:
        _unharmed(scene)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=JUDGES if _is_slow(scene) else [])
        for name, scene in SCENES.items()
        if scene.family == name
    ],
)
def test_scenes(name: str) -> None:
    _unharmed(SCENES[name])


# --- the search -------------------------------------------------------------------------------------------------------
def _ends(scene: TransactionScene, *, reduce: bool) -> tuple[set[object], set[str]]:
    """Return what the database is at the ends of all histories, and the properties that break."""
    seen: set[object] = set()

    def end(view: View) -> None:
        seen.add(repr(view.states[DATABASE]))

    world = build_world(scene)
    watched = replace(world, properties=(*world.properties, Property(name="ends", title="", meaning="", end=end)))
    found = explore_world(watched, reduce=reduce)
    assert found.complete
    return seen, set(found.findings)


_REDUCED = (
    *("write-skew", "two-ranges-in-steps", "mixed-state", "recreated-in-steps", "unmarked", "unmarked-in-steps"),
    *("empty-directory", "skew-through-absence-in-steps", "pairs-in-steps/present:append+delete", "bounded-group"),
)


@pytest.mark.parametrize("name", _REDUCED)
def test_equivalent_histories_are_left_out_and_no_others(name: str) -> None:
    assert _ends(SCENES[name], reduce=True) == _ends(SCENES[name], reduce=False)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_no_mistake_is_left_out_either(mutant: object) -> None:
    [one] = [each for each in MUTANTS if each is mutant]
    scene = min((SCENES[name] for name in one.scenes), key=lambda scene: len(scene.works) + 9 * len(scene.budgets))
    if len(scene.works) + len(scene.groups) > 2 or Fault.CRASH in scene.budgets:
        return  # every interleaving takes too long
    with one.planted():
        assert _ends(scene, reduce=True) == _ends(scene, reduce=False)
