"""`two_phase` holds: in every scene, on other stores, in the small worlds, on random walks."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.features import combine_features, parse_features
from holdfast_checker.committers.scenes import COMBINED, LARGE, SCENES, SMALL, STORES, TRANSACTIONAL
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.framework.check import Check
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.explore import Budget, explore_world
from holdfast_checker.kernel.walk import WalkResults, run_random_histories
from holdfast_checker.specimens import COMPARED
from holdfast_checker.subjects import build_committer_subject
from tests.checker.committers.verdict import VERDICT, small_verdict
from tests.checker.scene_mutants import JUDGES

_TRANSACTIONS = TRANSACTIONAL["transactional-crash"].store
_QUICK = ("speculation", "partition", "overwrite", "namespace-store", "transactional-failure")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Silence the code under test, which logs failures in every history."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def _scenes() -> list[object]:
    every = {**SCENES, **STORES, **{name: one for name, one in TRANSACTIONAL.items() if "small" not in name}}
    return [pytest.param(scene, id=name, marks=[] if name in _QUICK else JUDGES) for name, scene in every.items()]


def _small_worlds() -> list[object]:
    every = (*SMALL.values(), *(one for name, one in TRANSACTIONAL.items() if name.startswith("transactional-small")))
    return [pytest.param(one, id=one.name) for one in every]


@pytest.mark.parametrize("scene", _scenes())
def test_nothing_is_found(scene: CommitterScene) -> None:
    found = explore_world(build_world(COMPARED["two_phase"], scene))
    assert found.complete
    assert found.states > 1
    assert found.findings == {}
    assert found.faults.keys() == scene.budgets.keys(), "each kind of fault that may happen did happen"


@pytest.mark.slow
@pytest.mark.parametrize("scene", [pytest.param(one, id=one.name) for one in COMBINED.values()])
def test_nothing_is_found_in_combinations_and_everything_is_reached(scene: CommitterScene) -> None:
    found = Check(build_committer_subject(COMPARED["two_phase"])).explore([scene])
    assert found.complete
    assert found.broken == ()
    assert found.missing == []


def test_nothing_is_found_in_the_quickest_combinations() -> None:
    assert small_verdict(scenes=VERDICT[:12], first=False) == {}


def test_no_decision_is_made_in_the_trimmed_past() -> None:
    scene = combine_features(parse_features("one-task+short-log+busy+at-once") or ())
    assert small_verdict(scenes=(scene,)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("scene", _small_worlds())
def test_nothing_is_found_in_the_small_worlds_as_far_as_a_minute_goes(scene: CommitterScene) -> None:
    """`holdfast check two_phase --small` explores them completely."""
    found = explore_world(build_world(COMPARED["two_phase"], scene), budget=Budget(seconds=60))
    assert found.findings == {}
    assert found.states > 10_000 or found.complete


@pytest.mark.slow
@pytest.mark.parametrize("store", [LARGE.store, {**_TRANSACTIONS}, {**_TRANSACTIONS, "rename": True}])
def test_nothing_is_found_on_random_walks(store: Mapping[str, object]) -> None:
    scene = replace(LARGE, store=store)
    found = run_random_histories(
        build_world(COMPARED["two_phase"], scene), WalkResults(seed=1), budget=Budget(seconds=60)
    )
    assert found.findings == {}
    assert found.faults.keys() >= {Fault.CRASH, Fault.LOST_REPLY, Fault.FAILURE}


@pytest.mark.parametrize("committer", ["staging-directory", "file-v1"])
def test_who_goes_by_listings_loses_files_where_they_lag(committer: str) -> None:
    """This is why `staging-*` and `file-v1` require a store with consistent listings; a job of `magic` fails there."""
    world = build_world(COMPARED[committer], STORES["stale-listing"])
    assert "C1" in explore_world(world, until=lambda now: "C1" in now.findings).findings
