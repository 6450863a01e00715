"""Share the planted mistakes of the worlds that are made of scenes, and the check that they are found."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast_checker.framework.subject import Subject
from holdfast_checker.kernel.counterexample import (
    Counterexample,
    decode_counterexample,
    encode_counterexample,
    replay_choices,
)
from holdfast_checker.kernel.explore import Budget, explore_world
from holdfast_checker.kernel.world import World
from tests.checker.committers.planting import Swap, planted

__all__ = ["JUDGES", "SceneMutant", "breaks", "check_that_it_is_found"]

JUDGES = [pytest.mark.slow, pytest.mark.judge]
"""Marks of what is too slow to run by default, and judges the mutants of `make mutants`."""

_STATES = 100_000
"""Every mistake is found long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneMutant:
    """A mistake.

    Attributes:
        slip: what a developer might have done, in one sentence.
        swap: a shipped function, and the one that runs in its place.
        scenes: scenes in which the mistake does harm, and the shipped code does none; the first one is explored by
            default, and should be the cheapest.
        breaks: the property that the checker must report.
    """

    name: str
    slip: str
    swap: Swap
    scenes: tuple[str, ...]
    breaks: str

    def planted(self) -> AbstractContextManager[None]:
        """Run the mistake instead of the shipped code."""
        return planted(self.swap)


def check_that_it_is_found(mutant: SceneMutant, subject: Subject[Any], scene: str) -> None:
    """Check that the checker finds a mistake in the world of a scene, and that its history shows it again."""

    def build() -> World:
        return subject.build(subject.find_scenes(scene)[0], None)

    with mutant.planted():
        found = explore_world(build(), budget=Budget(states=_STATES), until=lambda now: mutant.breaks in now.findings)
        assert mutant.breaks in found.findings, f"{mutant.slip} The checker reports {found.findings}"
        saved = decode_counterexample(encode_counterexample(found.findings[mutant.breaks]))
        assert breaks(build(), saved), "it replays where it was found"
    assert not breaks(build(), saved), "the shipped code goes another way"


def breaks(world: World, found: Counterexample) -> bool:
    """Check whether the history is possible, and violates its property."""
    try:
        return found.property in dict(replay_choices(world, found.choices).broken)
    except InvalidRequestError:
        return False
