"""Worlds of a store with transactions: what is judged there, and how a transaction is told."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from holdfast_checker.committers.features import combine, features_of
from holdfast_checker.committers.narration import job_narrator
from holdfast_checker.committers.scenes import SCENES, SMALL, TRANSACTIONAL, small_verdict
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import explore
from holdfast_checker.narrative.story import tell
from holdfast_checker.specimens import COMPARED
from tests.checker.committers.mutants import world_of
from tests.checker.committers.transaction_mutants import TRANSACTION_MUTANTS


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Silence the code under test, which logs failures in every history."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_plain_readers_are_promised_something_only_on_a_store_with_transactions() -> None:
    for name, judged in (("one-task", False), ("one-task+renames", False), ("one-task+transactions", True)):
        world = build_world(COMPARED["two_phase"], combine(features_of(name) or ()))
        [found] = [one for one in world.properties if one.name == "plain-reads"]
        assert (found.step is not None) is judged
    magic = build_world(COMPARED["magic"], combine(features_of("one-task+transactions") or ()))
    assert all(one.step is None for one in magic.properties if one.name == "plain-reads")


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
        found = explore(world, until=lambda now: "plain-reads" in now.findings).findings["plain-reads"]
        broken = Counterexample(world.name, found.property, found.broke, found.choices)
        story = " ".join("\n".join(tell(world, broken, job_narrator(world)).lines()).split())
    assert _TOLD[name] in story
