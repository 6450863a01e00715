"""Checks of units: random walks, saved histories and stories."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.transactions.check_run import TransactionCheck, replay_again
from holdfast_checker.units.drawing import ANY, draw, drawn
from holdfast_checker.units.names import find_property, find_scenes
from holdfast_checker.units.properties import PROPERTIES
from holdfast_checker.units.scenes import LARGEST, SCENES
from holdfast_checker.units.subject import UNITS
from tests.checker.scene_mutants import SceneMutant
from tests.checker.units.mutants import MUTANTS


def _mutant(name: str) -> SceneMutant:
    [found] = [one for one in MUTANTS if one.name == name]
    return found


def _check(*properties: str) -> TransactionCheck:
    return TransactionCheck(properties, subject=UNITS)


_STATES = 20_000
_QUICK = ("no-flush", "absence-is-trusted", "no-table-guard", "emit-outside")


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(one, id=one.name, marks=[] if one.name in _QUICK else [pytest.mark.slow]) for one in MUTANTS],
)
def test_a_violation_is_told_as_a_story_and_replayed(mutant: SceneMutant) -> None:
    check = _check(mutant.breaks)
    with mutant.planted():
        check.explore(find_scenes(mutant.scenes[0]), Budget(states=100_000 if mutant.scenes[0] in LARGEST else _STATES))
        violation = check.shrink(check.violations[mutant.breaks])
        story = "\n".join(check.story(violation).lines(details=True))
        assert f"units/{mutant.scenes[0]} breaks {mutant.breaks}" in story
        assert "commits" in story and "Broken: " in story
        assert check.story(violation).document()
        assert replay_again(violation.counterexample, UNITS) is not None
    assert not _happens(violation.counterexample), "the shipped code goes another way"


def _happens(counterexample: Counterexample) -> bool:
    """Check whether a history is possible, and violates its property."""
    try:
        return replay_again(counterexample, UNITS) is not None
    except InvalidRequestError:
        return False


def test_the_plain_counter_of_the_paper_loses_a_unit() -> None:
    """The story in docs/explanation/checker.md."""
    check = _check("U3")
    with _mutant("plain-counter").planted():
        check.explore([SCENES["second-attempt"]])
        story = "\n".join(check.story(check.shrink(check.violations["U3"])).lines(width=200))
    assert "attempt 0: died" in story
    assert "attempt 1 reports success, and these units have not taken effect: a" in story


def test_a_walk_finds_a_mistake_again() -> None:
    check, again = _check("U1"), _check("U1")
    with _mutant("no-fence").planted():
        check.walk(ANY, 3, budget=Budget(histories=300))
        violation = check.violations["U1"]
        assert violation.history is not None
        again.walk(ANY, 3, first=violation.history, budget=Budget(histories=1))
        assert again.violations["U1"].counterexample == violation.counterexample


@pytest.mark.parametrize("histories", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_walk_over_the_shipped_code_finds_nothing(histories: int) -> None:
    check = _check()
    report = check.walk(ANY, 5, budget=Budget(histories=histories))
    assert (report.histories, report.broken) == (histories, set())
    assert check.violations == {}


def test_scenes_are_drawn_from_the_seed() -> None:
    assert draw(7, 3) == draw(7, 3) == drawn("drawn-7-3")
    assert draw(7, 3) != draw(7, 4)
    assert drawn("twins") is None
    assert find_scenes("drawn-7-3") == (draw(7, 3),)
    scenes = [draw(1, number) for number in range(100)]
    assert any(scene.work for scene in scenes) and any("twin" in scene.runs for scene in scenes)


def test_names() -> None:
    assert find_scenes("twins") == (SCENES["twins"],)
    assert [find_property(name.lower()) for name in PROPERTIES] == list(PROPERTIES)
    with pytest.raises(InvalidRequestError, match="write-skew"):
        find_scenes("write-skw")
    with pytest.raises(InvalidRequestError, match="unknown property"):
        find_property("U9")
