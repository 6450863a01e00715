"""The checker finds every planted mistake of `mutants`, and nothing in the shipped code."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest

from holdfast.commit.two_phase.decision_log import read_entry
from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.counterexample import (
    Counterexample,
    decode_counterexample,
    encode_counterexample,
    replay_choices,
)
from holdfast_checker.kernel.explore import Budget, explore_world
from holdfast_checker.kernel.world import World
from tests.checker.committers.mutants import MUTANTS, REDUNDANT, Mutant, world_of
from tests.checker.committers.planting import planted, swap
from tests.checker.committers.transaction_mutants import REDUNDANT_IN_TRANSACTIONS, TRANSACTION_MUTANTS

_STATES = 30_000
"""Seconds; every mutant is found long before."""

_FOUND = (*MUTANTS, *TRANSACTION_MUTANTS)
_SPARED = (*REDUNDANT, *REDUNDANT_IN_TRANSACTIONS)
_ALL = (*_FOUND, *_SPARED)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Silence the code under test, which logs failures in every history."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def _named(mutant: Mutant) -> str:
    return mutant.name


def _scene(mutant: Mutant) -> str:
    return mutant.scene.name


@pytest.mark.parametrize("mutant", _FOUND, ids=_named)
def test_it_is_found(mutant: Mutant) -> None:
    """Includes scenario 26 (bare-prefix) and Iceberg issue 4686 (abort-without-looking)."""
    wanted = set(mutant.breaks)
    with mutant.planted():
        world = world_of(mutant)
        found = explore_world(world, budget=Budget(states=_STATES), until=lambda now: wanted <= now.findings.keys())
        assert wanted <= found.findings.keys(), f"{mutant.slip} The checker reports {found.findings}"
        saved = [encode_counterexample(found.findings[name]) for name in mutant.breaks]
        assert all(_breaks(world_of(mutant), decode_counterexample(data)) for data in saved), (
            "it replays where it was found"
        )
    assert not any(_breaks(world_of(mutant), decode_counterexample(data)) for data in saved), (
        "the shipped code goes another way"
    )


def _breaks(world: World, found: Counterexample) -> bool:
    """Check whether the history is possible and its last step violates its property."""
    try:
        return found.property in dict(replay_choices(world, found.choices).broken)
    except InvalidRequestError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("mutant", _SPARED, ids=_named)
def test_a_second_precaution_stands_behind_the_first(mutant: Mutant) -> None:
    assert mutant.reason
    shipped = explore_world(world_of(mutant), budget=Budget(states=_STATES))
    with mutant.planted():
        found = explore_world(world_of(mutant), budget=Budget(states=_STATES))
    assert found.complete
    assert found.findings == {}
    assert (found.states, found.steps) != (shipped.states, shipped.steps), "the mistake makes no difference at all"


@pytest.mark.slow
@pytest.mark.parametrize("mutant", {(one.scene.name, one.change): one for one in _ALL}.values(), ids=_scene)
def test_the_shipped_code_goes_unharmed_through_the_same_worlds(mutant: Mutant) -> None:
    found = explore_world(world_of(mutant))
    assert found.complete
    assert found.findings == {}


# --- the list ---------------------------------------------------------------------------------------------------------
def test_each_has_a_name_and_a_sentence() -> None:
    names = [mutant.name for mutant in _ALL]
    assert len(set(names)) == len(names)
    assert len(MUTANTS) >= 14
    assert all(mutant.slip.endswith(".") and mutant.breaks for mutant in _FOUND)
    scenes = {mutant.scene.name: mutant.scene for mutant in _ALL}
    assert all(scenes[mutant.scene.name] == mutant.scene for mutant in _ALL), "two scenes have one name"


def _codes(mutant: Mutant) -> list[CodeType]:
    return [one.shipped.__code__ for one in mutant.swaps]


@pytest.mark.parametrize("mutant", _ALL, ids=_named)
def test_planting_is_undone(mutant: Mutant) -> None:
    before = _codes(mutant)
    with mutant.planted():
        assert not set(before) & set(_codes(mutant))
    assert _codes(mutant) == before


def _without_number(shipped: object, ctx: object) -> None: ...


def _with_other_names(shipped: object, ctx: object, number: object) -> None: ...


def _with_default(shipped: object, ctx: object, seq: object = 0) -> None: ...


@pytest.mark.parametrize("mistake", [_without_number, _with_other_names, _with_default])
def test_a_mistake_that_does_not_fit_is_refused(mistake: Any) -> None:
    with pytest.raises(AssertionError, match=r"read_entry takes .*, its mistake \['positional or keyword ctx'"):
        swap(read_entry, mistake)


def test_a_mistake_can_call_the_shipped_function_with_its_defaults() -> None:
    def shipped(one: int, two: int = 2, *, three: int = 3) -> list[int]:
        return [one, two, three]

    def mistake(shipped: Callable[..., list[int]], one: int, two: int = 2, *, three: int = 3) -> list[int]:
        return [*shipped(one), *shipped(one, two, three=three)]

    with planted(swap(shipped, mistake)):
        assert shipped(0, three=5) == [0, 2, 3, 0, 2, 5]
    assert shipped(0) == [0, 2, 3]
