"""`check transactions`: its output and exit codes, on scenes that take a moment."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast_checker.transactions.properties import PROPERTIES
from holdfast_checker.transactions.scenes import FAMILIES, MANY, SCENES
from tests.checker.scene_mutants import SceneMutant
from tests.checker.transactions.mutants import MUTANTS
from tests.unit.cli.destinations import run


def _mutant(name: str) -> SceneMutant:
    [found] = [one for one in MUTANTS if one.name == name]
    return found


# What the coverage watches runs as it was shipped, so the mistakes are planted in the simulated database.
_SKEW = _mutant("reads-are-not-locked")


def test_scenes_without_violations_exit_0_with_the_extent_of_the_search() -> None:
    result = run("check", "transactions", "--scene", "write-skew", "--scene", "errors")
    assert result.exit_code == 0
    assert re.search(r"^write-skew +1 +8 +66 ", result.stdout, re.MULTILINE)
    assert "nothing found in 2 scenes, 128 states, 14 histories: the search is complete" in result.stdout
    assert re.search(
        r"^transactions/: \d+ of \d+ statements ran \(\d+%\) in 5 modules, none in 1 others$",
        result.stdout,
        re.MULTILINE,
    )


def test_a_family_of_scenes_is_one_line() -> None:
    result = run("check", "transactions", "--scene", "pairs/absent:add+bounded", "--scene", "pairs/absent:put+put")
    assert re.search(r"^pairs +2 ", result.stdout, re.MULTILINE)


def test_a_violation_is_told_as_a_story_with_exit_code_1() -> None:
    with _SKEW.planted():
        result = run("check", "transactions", "--scene", "write-skew-in-steps", "--scene", "errors")
    assert result.exit_code == 1
    assert "transactions/write-skew-in-steps breaks T1 strictly serializable" in result.stdout
    assert "1 property violated in 2 scenes" in result.stdout
    assert "Broken: T1 strictly serializable - " in result.stdout


def test_other_violations_have_their_command() -> None:
    with _mutant("reads-before-the-lock").planted():
        result = run("check", "transactions", "--scene", "twins-in-steps")
        [command] = re.findall(r"^  T3: holdfast (check transactions .*)$", result.stdout, re.MULTILINE)
        again = run(*command.split())
        assert "breaks T3 exactly once" in again.stdout


def test_as_json() -> None:
    with _SKEW.planted():
        document = json.loads(run("check", "transactions", "--scene", "write-skew-in-steps", "--json").stdout)
    assert document["checked"] == "transactions" and document["walk"] is None
    [family] = document["scenes"]
    assert family["family"] == "write-skew-in-steps" and family["broken"] == ["T1"]
    [broken] = document["broken"]
    assert broken["counterexample"]["world"] == "transactions/write-skew-in-steps"
    assert broken["story"]["verdict"] == broken["counterexample"]["broke"]
    assert document["coverage"]["ran"] > 50


def test_a_walk_says_how_to_continue() -> None:
    result = run("check", "transactions", "--walk", "--seed", "4", "--histories", "30")
    assert result.exit_code == 0
    assert "nothing found in 30 random histories: the search is not complete" in result.stdout
    assert "holdfast check transactions --walk --seed 4 --first 30" in result.stdout
    document = json.loads(run("check", "transactions", "--walk", "--histories", "3", "--first", "5", "--json").stdout)
    assert (document["walk"]["first"], document["walk"]["next"]) == (5, 8)
    one = run("check", "transactions", "--walk", "--scene", "lost", "--histories", "3")
    assert "--walk --scene lost --seed 0 --first 3" in one.stdout


def test_the_command_for_a_walks_violation_tells_its_story() -> None:
    with _SKEW.planted():
        result = run("check", "transactions", "--walk", "--histories", "500", "--property", "T1", "--json")
        broken = json.loads(result.stdout)["broken"]
        assert result.exit_code == 1 and broken[0]["property"] == "T1"
        first = str(broken[0]["history"])
        again = run("check", "transactions", "--walk", "--first", first, "--histories", "1", "--property", "t1")
    assert "breaks T1" in again.stdout


def test_a_saved_history_is_replayed(tmp_path: Path) -> None:
    with _SKEW.planted():
        run("check", "transactions", "--scene", "write-skew-in-steps", "--save", str(tmp_path))
        file = tmp_path / "transactions-write-skew-in-steps-T1.json"
        still = run("check", "--replay", str(file))
    assert still.exit_code == 1
    assert "transactions/write-skew-in-steps breaks T1" in still.stdout
    now = run("check", "--replay", str(file))
    assert now.exit_code == 2
    assert "does not fit this world and this version of the code" in now.stderr


def test_a_goal_that_is_never_reached_exits_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no history gets anywhere, the check proves nothing."""
    scene = replace(SCENES["write-skew"], reached=("all", "error"))
    monkeypatch.setattr("holdfast_checker.transactions.names.SCENES", {scene.name: scene})
    result = run("check", "transactions", "--scene", "write-skew")
    assert result.exit_code == 1
    assert "NEVER REACHED in write-skew: error (the error of a function reaches its caller)" in result.stdout


def test_the_list_names_everything() -> None:
    result = run("check", "--list")
    document = json.loads(run("check", "--list", "--json").stdout)["transactions"]
    assert [scene["name"] for scene in document["scenes"]] == list(FAMILIES)
    assert [one["name"] for one in document["properties"]] == list(PROPERTIES)
    for name in (*FAMILIES, *PROPERTIES):
        assert f"\n{name} " in result.stdout
    assert MANY.keys() == {name for name, scenes in FAMILIES.items() if len(scenes) > 1}


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
