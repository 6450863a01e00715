"""The checker finds every planted mistake of `mutants`, in each scene that is named for it."""

from __future__ import annotations

import pytest

from holdfast.checker.kernel.counterexample import Counterexample, decode, encode
from holdfast.checker.kernel.explore import Budget, explore
from holdfast.checker.kernel.replay import replay
from holdfast.checker.namespace.scenes.catalog import SCENES
from holdfast.checker.namespace.worlds import build_world
from holdfast.errors import InvalidRequestError
from tests.checker.namespace.mutants import MUTANTS, Mutant

_STATES = 40_000


@pytest.mark.parametrize(
    ("mutant", "scene"), [pytest.param(one, scene, id=f"{one.name}-{scene}") for one in MUTANTS for scene in one.scenes]
)
def test_it_is_found(mutant: Mutant, scene: str) -> None:
    with mutant.planted():
        found = explore(
            build_world(SCENES[scene]), budget=Budget(states=_STATES), until=lambda now: mutant.breaks in now.findings
        )
        assert mutant.breaks in found.findings, f"{mutant.slip} The checker reports {found.findings}"
        breaks = found.findings[mutant.breaks]
        saved = encode(Counterexample(found.world, breaks.property, breaks.broke, breaks.choices))
        assert _breaks(scene, decode(saved)), "it replays where it was found"
    assert not _breaks(scene, decode(saved)), "the shipped code goes another way"


def _breaks(scene: str, found: Counterexample) -> bool:
    """Check whether the history is possible, and violates its property."""
    try:
        return found.property in dict(replay(build_world(SCENES[scene]), found.choices).broken)
    except InvalidRequestError:
        return False


def test_each_has_a_name_and_a_sentence() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20
    assert all(mutant.slip.endswith(".") and mutant.scenes for mutant in MUTANTS)
