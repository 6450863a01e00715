"""Checks of the namespace: random walks, saved histories and stories."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.namespace.drawing import ANY, draw, drawn
from holdfast_checker.namespace.names import find_property, find_scenes
from holdfast_checker.namespace.properties import PROPERTIES
from holdfast_checker.namespace.scenes.catalog import SCENES
from holdfast_checker.namespace.subject import NAMESPACE
from holdfast_checker.transactions.check_run import TransactionCheck, replay_again
from tests.checker.namespace.mutants import MUTANTS
from tests.checker.scene_mutants import SceneMutant


def _mutant(name: str) -> SceneMutant:
    [found] = [one for one in MUTANTS if one.name == name]
    return found


def _check(*properties: str) -> TransactionCheck:
    return TransactionCheck(properties, subject=NAMESPACE)


@pytest.mark.parametrize("name", ["delete-without-count", "tree-forgotten", "no-bound", "inserts-are-puts"])
def test_a_violation_is_told_as_a_story_and_replayed(name: str) -> None:
    mutant, check = _mutant(name), _check()
    with mutant.planted():
        check.explore(find_scenes(mutant.scenes[0]))
        violation = check.shrink(check.violations[mutant.breaks])
        story = "\n".join(check.story(violation).lines(details=True))
        assert f"namespace/{mutant.scenes[0]} breaks {mutant.breaks}" in story
        assert "is asked to" in story and "commits" in story
        assert replay_again(violation.counterexample, NAMESPACE) is not None
    assert not _happens(violation.counterexample), "the shipped code goes another way"


def _happens(counterexample: Counterexample) -> bool:
    """Check whether a history is possible, and violates its property."""
    try:
        return replay_again(counterexample, NAMESPACE) is not None
    except InvalidRequestError:
        return False


def test_a_walk_finds_a_mistake_again() -> None:
    check, again = _check("N1"), _check("N1")
    with _mutant("tree-forgotten").planted():
        check.walk(ANY, 3, budget=Budget(histories=500))
        violation = check.violations["N1"]
        assert violation.history is not None
        again.walk(ANY, 3, first=violation.history, budget=Budget(histories=1))
        assert again.violations["N1"].counterexample == violation.counterexample


def test_a_walk_over_the_shipped_code_finds_nothing() -> None:
    check = _check()
    report = check.walk(ANY, 5, budget=Budget(histories=100))
    assert (report.histories, report.next, report.scenes, report.broken) == (100, 100, 5, set())
    assert check.violations == {}


def test_scenes_are_drawn_from_the_seed() -> None:
    assert draw(7, 3) == draw(7, 3) == drawn("drawn-7-3")
    assert draw(7, 3) != draw(7, 4)
    assert drawn("same-name") is None
    assert find_scenes("drawn-7-3") == (draw(7, 3),)


def test_names() -> None:
    assert find_scenes("same-name") == (SCENES["same-name"],)
    assert [find_property(name.lower()) for name in PROPERTIES] == list(PROPERTIES)
    with pytest.raises(InvalidRequestError, match="same-name"):
        find_scenes("same-nam")
    with pytest.raises(InvalidRequestError, match="unknown property"):
        find_property("N9")
