"""Checks: what they report, random walks, saved histories and stories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from holdfast.transactions.base import Commit, Conflict, Record
from holdfast.transactions.validation import Step, ValidationResult, validate_group
from holdfast_checker.framework.check import Check, replay_with_current_code
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.subjects import SUBJECTS
from tests.checker.committers.planting import planted, swap
from tests.checker.scene_mutants import SceneMutant
from tests.checker.test_scene_mutants import MUTANTS

TRANSACTIONS = SUBJECTS["transactions"]
SCENES = TRANSACTIONS.scenes


def _mutant(name: str, kind: str = "transactions") -> SceneMutant:
    [found] = [one for one in MUTANTS[kind] if one.name == name]
    return found


def test_families_are_reported_together() -> None:
    report = Check(TRANSACTIONS).explore([SCENES["write-skew"], SCENES["write-skew"]])
    assert (report.family, report.scenes, report.complete) == ("write-skew", 2, True)
    assert (report.goals, report.missing) == (4, [])


def test_the_first_violation_of_each_property_is_kept() -> None:
    check = Check(TRANSACTIONS)
    with _mutant("inserts-are-puts").planted():
        check.explore([SCENES["second-attempt"]])
        assert {"T1", "T3"} <= check.violations.keys()
        assert [one.name for one in check.violations_by_harm()][:2] == ["T1", "T3"]


def test_only_some_properties() -> None:
    check = Check(TRANSACTIONS, ["T3"])
    with _mutant("inserts-are-puts").planted():
        check.explore([SCENES["second-attempt"], SCENES["twins"]])
    assert check.violations.keys() == {"T3"}
    assert check.may_stop


def test_a_goal_that_is_not_reached_is_reported() -> None:
    """A database on which nothing ever takes effect violates no property."""

    def refuse(
        shipped: Callable[..., ValidationResult],
        commits: Sequence[Commit],
        steps: Sequence[Step],
        seen: Mapping[bytes, Record],
        counts: Mapping[tuple[int, int], int],
        base: int,
    ) -> ValidationResult:
        return ValidationResult([Conflict((b"x",)) for _ in commits], [])

    check = Check(TRANSACTIONS)
    with planted(swap(validate_group, refuse)):
        report = check.explore([SCENES["write-skew"]])
    assert check.violations == {}
    assert report.missing == [("write-skew", "all"), ("write-skew", "conflict")]


def test_a_check_that_is_stopped() -> None:
    report = Check(TRANSACTIONS, until=lambda: True).explore([SCENES["errors"]])
    assert not report.complete and report.scenes == 0


def test_a_history_that_no_longer_breaks() -> None:
    check = Check(TRANSACTIONS)
    with _mutant("mixed-states-are-real").planted():
        check.explore([SCENES["mixed-state"]])
        found = check.shrink(check.violations["T1"]).counterexample
        assert replay_with_current_code(found, TRANSACTIONS) is not None
    assert replay_with_current_code(found, TRANSACTIONS) is None


def test_the_plain_counter_of_the_paper_loses_a_unit() -> None:
    """Paper 003 records only the last unit of a task: a unit that was deferred is then lost."""
    check = Check(SUBJECTS["units"], ["U3"])
    with _mutant("plain-counter", "units").planted():
        check.explore(SUBJECTS["units"].find_scenes("second-attempt"))
        story = "\n".join(check.tell_story(check.shrink(check.violations["U3"])).lines(width=200))
    assert "attempt 0: died" in story
    assert "attempt 1 reports success, and these units have not taken effect: a" in story


# --- random walks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "name", "breaks"),
    [
        ("transactions", "validates-nothing", "T1"),
        *(
            pytest.param("transactions", name, "T1", marks=pytest.mark.slow)
            for name in ("reads-are-not-locked", "scans-are-not-counted", "last-add-of-group-wins")
        ),
        ("namespace", "tree-forgotten", "N1"),
        pytest.param("units", "no-fence", "U1", marks=pytest.mark.slow),
    ],
)
def test_a_walk_finds_mistakes(kind: str, name: str, breaks: str) -> None:
    check, again = Check(SUBJECTS[kind], [breaks]), Check(SUBJECTS[kind], [breaks])
    with _mutant(name, kind).planted():
        check.walk(None, 3, budget=Budget(histories=6000))
        violation = check.violations[breaks]
        assert violation.history is not None
        again.walk(None, 3, first=violation.history, budget=Budget(histories=1))
        assert again.violations[breaks].counterexample == violation.counterexample
        assert replay_with_current_code(check.shrink(violation).counterexample, SUBJECTS[kind]) is not None


@pytest.mark.parametrize(
    ("kind", "histories"),
    [
        ("transactions", 60),
        ("namespace", 40),
        ("units", 20),
        pytest.param("units", 1000, marks=pytest.mark.slow),
        pytest.param("namespace", 400, marks=pytest.mark.slow),
        pytest.param("transactions", 400, marks=pytest.mark.slow),
    ],
)
def test_a_walk_over_the_shipped_code_finds_nothing(kind: str, histories: int) -> None:
    check = Check(SUBJECTS[kind])
    report = check.walk(None, 5, budget=Budget(histories=histories))
    assert (report.walks.histories, report.walks.next) == (histories, histories)
    assert report.walks.worlds == histories // 20 and check.violations == {}


def test_two_halves_of_a_walk_are_the_same_histories() -> None:
    whole, *halves = (
        Check(TRANSACTIONS).walk(None, 5, first=first, budget=Budget(histories=count))
        for first, count in ((0, 60), (0, 30), (30, 30))
    )
    assert sum(one.walks.steps for one in halves) == whole.walks.steps
    one = Check(TRANSACTIONS).walk(SCENES["lost"], 5, budget=Budget(histories=30))
    assert (one.walks.histories, one.walks.worlds) == (30, 1)
