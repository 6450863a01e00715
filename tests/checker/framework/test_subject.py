"""Subjects: their scenes and properties have names that lead to them, and sentences; scenes are drawn from seeds."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidRequestError
from holdfast_checker.subjects import SUBJECTS, find_subject

ALL = (*SUBJECTS, "two_phase", "file-v2")


@pytest.mark.parametrize("name", ALL)
def test_every_scene_has_a_name_a_sentence_and_known_goals(name: str) -> None:
    subject = find_subject(name)
    count = sum(map(len, (subject.scenes, subject.small, subject.others)))
    every = [scene for members in subject.families.values() for scene in members]
    assert len(every) == len({scene.name for scene in every}) == count
    goals = find_subject("two_phase").goals if subject.declared is not None else subject.goals
    for scene in every:
        assert scene.summary and not scene.summary.endswith(".")
        assert set(scene.reached) <= set(goals)
        assert subject.find_scenes(scene.name) == (scene,)


@pytest.mark.parametrize("name", ALL)
def test_every_property_has_a_name_a_title_and_a_meaning(name: str) -> None:
    subject = find_subject(name)
    assert all(one.title and one.meaning for one in subject.rules.values())
    assert [subject.find_property(f" {each.lower()} ") for each in subject.rules] == list(subject.rules)
    with pytest.raises(InvalidRequestError, match="unknown property"):
        subject.find_property("Z9")


@pytest.mark.parametrize("kind", SUBJECTS)
def test_scenes_are_drawn_from_the_seed(kind: str) -> None:
    subject = SUBJECTS[kind]
    assert subject.random_scene(7, 3) == subject.random_scene(7, 3) != subject.random_scene(7, 4)
    assert subject.find_scenes("drawn-7-3") == (subject.random_scene(7, 3),)
    assert len({subject.random_scene(1, number).summary for number in range(50)}) > 5


def test_names() -> None:
    transactions = SUBJECTS["transactions"]
    assert transactions.find_scenes("Pairs") == transactions.families["pairs"]
    for name, said in (("write-skw", "did you mean write-skew"), ("pairs/absent:read+red", "pairs/absent:read\\+read")):
        with pytest.raises(InvalidRequestError, match=said):
            transactions.find_scenes(name)
    assert find_subject(" TWO-PHASE ").name == "two_phase"
    with pytest.raises(InvalidRequestError, match="did you mean namespace"):
        find_subject("namespce")
