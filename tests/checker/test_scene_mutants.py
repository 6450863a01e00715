"""The checker finds every planted mistake in transactions, the namespace and units, in each scene that it names."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast_checker.framework.check import Check, replay_with_current_code
from holdfast_checker.framework.subject import Subject
from holdfast_checker.subjects import SUBJECTS
from tests.checker.namespace.mutants import MUTANTS as OF_NAMESPACE
from tests.checker.scene_mutants import SceneMutant, breaks, check_that_it_is_found
from tests.checker.transactions.mutants import MUTANTS as OF_TRANSACTIONS
from tests.checker.units.mutants import MUTANTS as OF_UNITS

MUTANTS = {"transactions": OF_TRANSACTIONS, "namespace": OF_NAMESPACE, "units": OF_UNITS}

_TOLD = {
    *("validates-nothing", "version-reuse", "no-lock-order", "counts-first", "blind-repeat", "own-adds-are-hidden"),
    *("delete-without-count", "tree-forgotten", "no-bound", "inserts-are-puts"),
    *("emit-outside", "plain-counter", "no-fence"),
}
"""Mistakes whose stories are told by default."""


def _marks(kind: str, scene: str, number: int) -> list[pytest.MarkDecorator]:
    """By default, a mistake is looked for in its first scene, unless that is one of the largest."""
    return [pytest.mark.slow] if number or scene in SUBJECTS[kind].others else []


@pytest.mark.parametrize(
    ("mutant", "subject", "scene"),
    [
        pytest.param(one, SUBJECTS[kind], scene, id=f"{one.name}-{scene}", marks=_marks(kind, scene, number))
        for kind, mutants in MUTANTS.items()
        for one in mutants
        for number, scene in enumerate(one.scenes)
    ],
)
def test_it_is_found(mutant: SceneMutant, subject: Subject[Any], scene: str) -> None:
    check_that_it_is_found(mutant, subject, scene)


@pytest.mark.parametrize(
    ("mutant", "subject"),
    [
        pytest.param(one, SUBJECTS[kind], id=one.name, marks=[] if one.name in _TOLD else [pytest.mark.slow])
        for kind, mutants in MUTANTS.items()
        for one in mutants
    ],
)
def test_it_is_told_as_a_story_and_replayed(mutant: SceneMutant, subject: Subject[Any]) -> None:
    check, scenes = Check(subject, [mutant.breaks]), subject.find_scenes(mutant.scenes[0])
    with mutant.planted():
        check.explore(scenes)
        violation = check.shrink(check.violations[mutant.breaks])
        story = check.tell_story(violation)
        lines = story.lines(details=True)
        assert lines[0].startswith(f"{subject.name}/{mutant.scenes[0]} breaks {mutant.breaks}")
        assert "Broken: " in "\n".join(lines)
        assert story.to_json_value()
        assert replay_with_current_code(violation.counterexample, subject) == story
    assert not breaks(subject.build(scenes[0], None), violation.counterexample), "the shipped code goes another way"


def test_each_has_a_name_and_a_sentence() -> None:
    for mutants, least in ((OF_TRANSACTIONS, 20), (OF_NAMESPACE, 25), (OF_UNITS, 18)):
        assert len({mutant.name for mutant in mutants}) == len(mutants) >= least
        assert all(mutant.slip.endswith(".") and mutant.scenes for mutant in mutants)
