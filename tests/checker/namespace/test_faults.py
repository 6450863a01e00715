"""Faults of the shipped code that the checker has found: their histories, which must stay harmless."""

from __future__ import annotations

import pytest

from holdfast_checker.kernel.explore import explore
from holdfast_checker.namespace.scenes.catalog import SCENES
from holdfast_checker.namespace.worlds import build_world


@pytest.mark.parametrize(
    "scene",
    [
        # A rename into a quota took effect, then the request that removes the mark failed: its caller was told that
        # nothing had happened.
        "lost-quota-rename",
        # A creation found its quota exceeded by a deleted tree, which another process collected before this one looked
        # for it: the creation was refused, in an empty directory.
        "quota-reclaim",
    ],
)
def test_it_is_gone(scene: str) -> None:
    found = explore(build_world(SCENES[scene]))
    assert found.complete
    assert found.findings == {}
