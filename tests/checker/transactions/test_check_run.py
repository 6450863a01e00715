"""Checks of transactions: what they report, random walks, saved histories and stories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.transactions.base import Commit, Conflict, Judgment, Record, Step, judge
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.transactions.check_run import TransactionCheck, replay_again
from holdfast_checker.transactions.drawing import ANY, draw, drawn
from holdfast_checker.transactions.names import find_property, find_scenes
from holdfast_checker.transactions.properties import PROPERTIES
from holdfast_checker.transactions.scenes import FAMILIES, SCENES
from tests.checker.committers.planting import planted, swap
from tests.checker.scene_mutants import SceneMutant
from tests.checker.transactions.mutants import MUTANTS


def _mutant(name: str) -> SceneMutant:
    [found] = [one for one in MUTANTS if one.name == name]
    return found


def test_families_are_reported_together() -> None:
    report = TransactionCheck().explore([SCENES["write-skew"], SCENES["write-skew"]])
    assert (report.family, report.scenes, report.complete) == ("write-skew", 2, True)
    assert (report.reached, report.goals, report.missing) == (4, 4, [])
    assert report.histories == 16


def test_the_first_violation_of_each_property_is_kept() -> None:
    check = TransactionCheck()
    with _mutant("progress-not-checked").planted():
        check.explore([SCENES["second-attempt"]])
        assert {"T1", "T3"} <= check.violations.keys()
        assert [one.name for one in check.ranked()][:2] == ["T1", "T3"]


def test_only_some_properties() -> None:
    check = TransactionCheck(["T3"])
    with _mutant("progress-not-checked").planted():
        check.explore([SCENES["second-attempt"], SCENES["twins"]])
    assert check.violations.keys() == {"T3"}
    assert check.is_over


def test_a_goal_that_is_not_reached_is_reported() -> None:
    """A database on which nothing ever takes effect violates no property."""

    def refuse(
        shipped: Callable[..., Judgment],
        commits: Sequence[Commit],
        steps: Sequence[Step],
        seen: Mapping[bytes, Record],
        counts: Mapping[tuple[int, int], int],
        base: int,
    ) -> Judgment:
        return Judgment([Conflict((b"x",)) for _ in commits], [])

    check = TransactionCheck()
    with planted(swap(judge, refuse)):
        report = check.explore([SCENES["write-skew"]])
    assert check.violations == {}
    assert report.missing == [("write-skew", "all"), ("write-skew", "conflict")]


def test_a_check_that_is_stopped() -> None:
    report = TransactionCheck(until=lambda: True).explore([SCENES["errors"]])
    assert not report.complete and report.scenes == 0


# --- random walks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["validates-nothing", "reads-are-not-locked", "scans-are-not-counted", "last-add-of-group-wins"]
)
def test_a_walk_finds_mistakes(name: str) -> None:
    check, again = TransactionCheck(["T1"]), TransactionCheck(["T1"])
    with _mutant(name).planted():
        check.walk(ANY, 3, budget=Budget(histories=3000))
        violation = check.violations["T1"]
        assert violation.history is not None
        again.walk(ANY, 3, first=violation.history, budget=Budget(histories=1))
        assert again.violations["T1"].counterexample == violation.counterexample
        assert replay_again(check.shrink(violation).counterexample) is not None


def test_a_walk_over_the_shipped_code_finds_nothing() -> None:
    check = TransactionCheck()
    report = check.walk(ANY, 5, budget=Budget(histories=200))
    assert (report.histories, report.next, report.scenes, report.broken) == (200, 200, 10, set())
    assert check.violations == {}
    halves = [TransactionCheck().walk(ANY, 5, first=first, budget=Budget(histories=100)) for first in (0, 100)]
    assert sum(one.steps for one in halves) == report.steps, "two halves are the same histories"
    one = TransactionCheck().walk(SCENES["lost"], 5, budget=Budget(histories=30))
    assert (one.histories, one.scenes) == (30, 1)


def test_scenes_are_drawn_from_the_seed() -> None:
    assert draw(7, 3) == draw(7, 3) == drawn("drawn-7-3")
    assert draw(7, 3) != draw(7, 4)
    assert drawn("increments") is None
    scenes = [draw(1, number) for number in range(200)]
    assert {scene.stepped for scene in scenes} == {True, False}
    assert any(scene.groups for scene in scenes) and any("twin 0" in scene.works for scene in scenes)


# --- saved histories, names -------------------------------------------------------------------------------------------
_QUICK = ("validates-nothing", "version-reuse", "no-lock-order", "counts-first", "blind-repeat", "own-adds-are-hidden")


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(one, id=one.name, marks=[] if one.name in _QUICK else [pytest.mark.slow]) for one in MUTANTS],
)
def test_a_violation_is_told_as_a_story(mutant: SceneMutant) -> None:
    check = TransactionCheck()
    with mutant.planted():
        check.explore(find_scenes(mutant.scenes[0]))
        violation = check.shrink(check.violations[mutant.breaks])
        story = check.story(violation)
        assert replay_again(violation.counterexample) == story
    lines = story.lines(details=True)
    assert lines[0] == f"transactions/{mutant.scenes[0]} breaks {_heading(mutant.breaks)}"
    assert "Broken: " in "\n".join(lines)
    assert story.document()


def _heading(name: str) -> str:
    title = PROPERTIES[name](()).title
    return name if title.replace(" ", "-") == name else f"{name} {title}"


def test_a_history_that_no_longer_breaks() -> None:
    check = TransactionCheck()
    with _mutant("mixed-states-are-real").planted():
        check.explore([SCENES["mixed-state"]])
        found = check.shrink(check.violations["T1"]).counterexample
        assert replay_again(found) is not None
    assert replay_again(found) is None


def test_names() -> None:
    assert find_property("t1") == "T1" and find_property(" Progress-is-a-Set ") == "progress-is-a-set"
    assert find_scenes("pairs") == FAMILIES["pairs"]
    with pytest.raises(InvalidRequestError, match="did you mean write-skew"):
        find_scenes("write-skw")
    with pytest.raises(InvalidRequestError, match="did you mean pairs/absent:read\\+read"):
        find_scenes("pairs/absent:read+red")
    with pytest.raises(InvalidRequestError, match="T1"):
        find_property("T9")
