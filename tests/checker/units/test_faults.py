"""Faults of the shipped code that the checker has found: their histories, which must stay harmless."""

from __future__ import annotations

import pytest

from holdfast.checker.kernel.explore import explore
from holdfast.checker.units.scenes import SCENES
from holdfast.checker.units.worlds import build_world


@pytest.mark.parametrize(
    "scene",
    [
        # A driver lost the reply to the begin or the end of its job, and gave up, although both can be repeated.
        "lost-replies-of-a-driver",
    ],
)
def test_it_is_gone(scene: str) -> None:
    found = explore(build_world(SCENES[scene]))
    assert found.complete
    assert found.findings == {}
