"""A checker that misses a planted mistake fails here: each mutant of `mutants` is found, and only the mutant is."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from dataclasses import replace
from types import CodeType, FunctionType
from typing import cast

import pytest

from holdfast.checker.kernel.counterexample import Counterexample, decode, encode
from holdfast.checker.kernel.explore import Budget, explore
from holdfast.checker.kernel.replay import replay
from holdfast.checker.kernel.world import World
from holdfast.commit.two_phase import job
from holdfast.errors import InvalidRequestError
from tests.checker.committers.mutants import MUTANTS, REDUNDANT, Edit, Mutant, world_of

_STATES = 30_000
"""Seconds; every mutant is found long before."""

_ALL = (*MUTANTS, *REDUNDANT)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What goes wrong is logged by the code under test, in every history anew."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def _named(mutant: Mutant) -> str:
    return mutant.name


def _scene(mutant: Mutant) -> str:
    return mutant.scene.name


@pytest.mark.parametrize("mutant", MUTANTS, ids=_named)
def test_it_is_found(mutant: Mutant) -> None:
    """Among them scenario 26 (bare-prefix) and Iceberg issue 4686 (abort-without-looking)."""
    wanted = set(mutant.breaks)
    with mutant.planted():
        world = world_of(mutant)
        found = explore(world, budget=Budget(states=_STATES), until=lambda now: wanted <= now.findings.keys())
        assert wanted <= found.findings.keys(), f"{mutant.slip} The checker reports {found.findings}"
        breaking = [found.findings[name] for name in mutant.breaks]
        saved = [encode(Counterexample(world.name, one.property, one.broke, one.choices)) for one in breaking]
        assert all(_breaks(world_of(mutant), decode(data)) for data in saved), "it replays where it was found"
    assert not any(_breaks(world_of(mutant), decode(data)) for data in saved), "the shipped code goes another way"
    depth = max(len(one.choices) for one in breaking)
    assert explore(world_of(mutant), budget=Budget(states=_STATES, depth=depth)).findings == {}


def _breaks(world: World, found: Counterexample) -> bool:
    """Whether the history is possible and its last step breaks its property."""
    try:
        return found.property in dict(replay(world, found.choices).broken)
    except InvalidRequestError:
        return False


@pytest.mark.parametrize("mutant", REDUNDANT, ids=_named)
def test_a_second_precaution_stands_behind_the_first(mutant: Mutant) -> None:
    assert mutant.reason
    shipped = explore(world_of(mutant), budget=Budget(states=_STATES))
    with mutant.planted():
        found = explore(world_of(mutant), budget=Budget(states=_STATES))
    assert found.complete
    assert found.findings == {}
    assert (found.states, found.steps) != (shipped.states, shipped.steps), "the mistake makes no difference at all"


@pytest.mark.slow
@pytest.mark.parametrize("mutant", {(one.scene.name, one.change): one for one in _ALL}.values(), ids=_scene)
def test_the_shipped_code_goes_unharmed_through_the_same_worlds(mutant: Mutant) -> None:
    found = explore(world_of(mutant))
    assert found.complete
    assert found.findings == {}


# --- the list ---------------------------------------------------------------------------------------------------------
def test_each_has_a_name_and_a_sentence() -> None:
    names = [mutant.name for mutant in _ALL]
    assert len(set(names)) == len(names)
    assert len(MUTANTS) >= 14
    assert all(mutant.slip.endswith(".") and mutant.breaks for mutant in MUTANTS)
    scenes = {mutant.scene.name: mutant.scene for mutant in _ALL}
    assert all(scenes[mutant.scene.name] == mutant.scene for mutant in _ALL), "two scenes have one name"


def _codes(mutant: Mutant) -> list[CodeType]:
    return [cast("FunctionType", edit.function).__code__ for edit in mutant.edits]


@pytest.mark.parametrize("mutant", _ALL, ids=_named)
def test_planting_is_undone(mutant: Mutant) -> None:
    before = _codes(mutant)
    with mutant.planted():
        assert not set(before) & set(_codes(mutant))
    assert _codes(mutant) == before


@pytest.mark.parametrize(("before", "times"), [("no such line", 0), ("entry", None)])
def test_an_edit_that_does_not_fit_is_refused(before: str, times: int | None) -> None:
    times = inspect.getsource(job.commit_job).count(before) if times is None else times
    edits = (Edit(job.commit_job, before, "pass"),)
    with (
        pytest.raises(AssertionError, match=f"is {times} times in commit_job"),
        replace(MUTANTS[0], edits=edits).planted(),
    ):
        pytest.fail("it was planted")
