"""Worlds of a store with transactions: what is judged there, and how a transaction is told."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from holdfast_checker.committers.narration import job_narrator
from holdfast_checker.committers.scenes import SCENES, SMALL, TRANSACTIONAL
from holdfast_checker.kernel.explore import explore_world
from holdfast_checker.narrative.story import tell_story
from tests.checker.committers.mutants import world_of
from tests.checker.committers.transaction_mutants import TRANSACTION_MUTANTS
from tests.checker.committers.verdict import small_verdict


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Silence the code under test, which logs failures in every history."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_every_quick_scene_and_every_small_world_comes_with_transactions_too() -> None:
    assert [name.removeprefix("transactional-") for name in TRANSACTIONAL] == [*SCENES, *SMALL]
    for scene in TRANSACTIONAL.values():
        assert "at-once" in scene.reached and "rolled-forward" not in scene.reached


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TRANSACTIONAL if "small" not in name and "crash" not in name])
def test_every_goal_is_reached(name: str) -> None:
    assert small_verdict(scenes=(TRANSACTIONAL[name],)) == {}


_TOLD = {
    "report-after-the-transaction": "driver decides: commit of job …1.1 (decision 1), files: 2 completed.",
    "replaced-before-the-transaction": "driver changes in one step day=0/old-0.txt and day=01/old-1.txt.",
    "publishes-in-two-transactions": "driver decides: commit of job …1.1 (decision 1).",
}


@pytest.mark.parametrize("name", _TOLD)
def test_a_transaction_is_told_by_its_decision_or_its_changes(name: str) -> None:
    [mutant] = [one for one in TRANSACTION_MUTANTS if one.name == name]
    with mutant.planted():
        world = world_of(mutant)
        broken = explore_world(world, until=lambda now: "plain-reads" in now.findings).findings["plain-reads"]
        story = " ".join("\n".join(tell_story(world, broken, job_narrator(world)).lines()).split())
    assert _TOLD[name] in story
