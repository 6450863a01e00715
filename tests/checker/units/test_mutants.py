"""The checker finds every planted mistake of `mutants`, in each scene that is named for it."""

from __future__ import annotations

import pytest

from holdfast_checker.units.scenes import LARGEST, SCENES
from holdfast_checker.units.worlds import build_world
from tests.checker.scene_mutants import SceneMutant, check_that_it_is_found
from tests.checker.units.mutants import MUTANTS

_STATES = 40_000
_MOST_STATES = 100_000
"""In the largest scenes."""


@pytest.mark.parametrize(
    ("mutant", "scene"),
    [
        pytest.param(
            one, scene, id=f"{one.name}-{scene}", marks=[pytest.mark.slow] if number or scene in LARGEST else []
        )
        for one in MUTANTS
        for number, scene in enumerate(one.scenes)
    ],
)
def test_it_is_found(mutant: SceneMutant, scene: str) -> None:
    states = _MOST_STATES if scene in LARGEST else _STATES
    check_that_it_is_found(mutant, lambda: build_world({**SCENES, **LARGEST}[scene]), states)


def test_each_has_a_name_and_a_sentence() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 18
    assert all(mutant.slip.endswith(".") and mutant.scenes for mutant in MUTANTS)
