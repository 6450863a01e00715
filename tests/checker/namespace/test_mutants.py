"""The checker finds every planted mistake of `mutants`, in each scene that is named for it."""

from __future__ import annotations

import pytest

from holdfast_checker.namespace.scenes.catalog import SCENES
from holdfast_checker.namespace.worlds import build_world
from tests.checker.namespace.mutants import MUTANTS
from tests.checker.scene_mutants import SceneMutant, check_that_it_is_found

_STATES = 40_000


@pytest.mark.parametrize(
    ("mutant", "scene"), [pytest.param(one, scene, id=f"{one.name}-{scene}") for one in MUTANTS for scene in one.scenes]
)
def test_it_is_found(mutant: SceneMutant, scene: str) -> None:
    check_that_it_is_found(mutant, lambda: build_world(SCENES[scene]), _STATES)


def test_each_has_a_name_and_a_sentence() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20
    assert all(mutant.slip.endswith(".") and mutant.scenes for mutant in MUTANTS)
