"""Faults of the shipped code that the checker has found: their histories, which must stay harmless."""

from __future__ import annotations

import pytest

from holdfast_checker.kernel.explore import explore
from holdfast_checker.units.scenes import SCENES
from holdfast_checker.units.worlds import build_world


@pytest.mark.parametrize(
    "scene",
    [
        # A driver lost the reply to the begin or the end of its job, and gave up, although both can be repeated.
        "lost-replies-of-a-driver",
        # The database lost the end of a task after a crash, and another attempt recorded it anew: the first one took
        # that for its own durable record, and a second crash undid what it had reported.
        pytest.param("two-database-crashes", marks=pytest.mark.slow),
    ],
)
def test_it_is_gone(scene: str) -> None:
    found = explore(build_world(SCENES[scene]))
    assert found.complete
    assert found.findings == {}
