"""`check transactions`, `check namespace`, `check units`: output and exit codes, on scenes that take a moment."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast_checker.subjects import SUBJECTS
from tests.checker.scene_mutants import SceneMutant
from tests.checker.test_scene_mutants import MUTANTS
from tests.unit.cli.destinations import run


def _mutant(kind: str, name: str) -> SceneMutant:
    [found] = [one for one in MUTANTS[kind] if one.name == name]
    return found


def _broken(kind: str) -> tuple[SceneMutant, str, str]:
    """Return a mistake, a scene that finds it, and the title of the property that it breaks."""
    name, title = {
        "transactions": ("reads-are-not-locked", "T1 strictly serializable"),
        "namespace": ("delete-without-count", "N1 a tree"),
        "units": ("plain-counter", "U3 reported is done"),
    }[kind]
    mutant = _mutant(kind, name)
    return mutant, mutant.scenes[0], title


def test_scenes_without_violations_exit_0_with_the_extent_of_the_search() -> None:
    result = run("check", "transactions", "--scene", "write-skew", "--scene", "errors")
    assert result.exit_code == 0
    assert re.search(r"^write-skew +1 +66 ", result.stdout, re.MULTILINE)
    assert "nothing found in 2 scenes, 128 states: the search is complete" in result.stdout


def test_a_family_of_scenes_is_one_line() -> None:
    result = run("check", "transactions", "--scene", "pairs/absent:add+bounded", "--scene", "pairs/absent:put+put")
    assert re.search(r"^pairs +2 ", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_violation_is_told_as_a_story_saved_and_replayed(kind: str, tmp_path: Path) -> None:
    mutant, scene, title = _broken(kind)
    with mutant.planted():
        result = run("check", kind, "--scene", scene, "--property", mutant.breaks, "--save", str(tmp_path))
        assert result.exit_code == 1
        assert f"{kind}/{scene} breaks {title}" in result.stdout
        assert "1 property violated in 1 scene" in result.stdout
        assert f"Broken: {title} - " in result.stdout
        [file] = tmp_path.iterdir()
        assert file.name == f"{kind}-{scene.replace('/', '-')}-{mutant.breaks}.json"
        still = run("check", "--replay", str(file))
        assert still.exit_code == 1 and f"breaks {title}" in still.stdout
    assert run("check", "--replay", str(file)).exit_code in (0, 2), "the shipped code does not do this"


def test_other_violations_have_their_command() -> None:
    with _mutant("transactions", "inserts-are-puts").planted():
        result = run("check", "transactions", "--scene", "twins-in-steps")
        [command] = re.findall(r"^  T3 exactly once: holdfast (check transactions .*)$", result.stdout, re.MULTILINE)
        again = run(*command.split())
        assert "breaks T3 exactly once" in again.stdout


@pytest.mark.parametrize("kind", SUBJECTS)
def test_as_json(kind: str) -> None:
    mutant, scene, _title = _broken(kind)
    with mutant.planted():
        document = json.loads(run("check", kind, "--scene", scene, "--property", mutant.breaks, "--json").stdout)
    assert document["checked"] == kind and document["walk"] is None
    [family] = document["scenes"]
    assert family["family"] == scene.partition("/")[0] and family["broken"] == [mutant.breaks]
    [broken] = document["broken"]
    assert broken["counterexample"]["world"] == f"{kind}/{scene}"
    assert broken["story"]["verdict"] == broken["counterexample"]["broke"]


@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_walk_says_how_to_continue(kind: str) -> None:
    result = run("check", kind, "--walk", "--seed", "4", "--histories", "5")
    assert result.exit_code == 0
    assert "nothing found in 5 random histories: the search is not complete" in result.stdout
    assert f"holdfast check {kind} --walk --seed 4 --first 5" in result.stdout


def test_a_walk_through_one_scene() -> None:
    document = json.loads(run("check", "transactions", "--walk", "--histories", "3", "--first", "5", "--json").stdout)
    assert (document["walk"]["first"], document["walk"]["next"]) == (5, 8)
    one = run("check", "transactions", "--walk", "--scene", "lost", "--histories", "3")
    assert "--walk --scene lost --seed 0 --first 3" in one.stdout


def test_the_command_for_a_walks_violation_tells_its_story() -> None:
    with _mutant("transactions", "validates-nothing").planted():
        result = run("check", "transactions", "--walk", "--histories", "500", "--property", "T1", "--json")
        broken = json.loads(result.stdout)["broken"]
        assert result.exit_code == 1 and broken[0]["property"] == "T1"
        first = str(broken[0]["history"])
        again = run("check", "transactions", "--walk", "--first", first, "--histories", "1", "--property", "t1")
    assert "breaks T1" in again.stdout


def test_a_goal_that_is_never_reached_exits_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no history gets anywhere, the check proves nothing."""
    scene = replace(SUBJECTS["transactions"].scenes["write-skew"], reached=("all", "error"))
    changed = replace(SUBJECTS["transactions"], scenes={scene.name: scene})
    monkeypatch.setitem(SUBJECTS, "transactions", changed)
    result = run("check", "transactions", "--scene", "write-skew")
    assert result.exit_code == 1
    assert "NEVER REACHED in write-skew: error (the error of a function reaches its caller)" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("transactions --scene write-skw", "did you mean write-skew"),
        ("transactions --property C4", "use one of T1"),
        ("transactions --walk --scene pairs", "at most one scene"),
        ("transactions --small --scene pairs", "--small has its own scenes"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments: str, said: str) -> None:
    result = run("check", *arguments.split())
    assert result.exit_code == 2
    assert said in result.stderr
