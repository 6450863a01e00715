"""`check`: its output and exit codes, on scenes that take a moment."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable

import pytest

from holdfast.guarantees import GuaranteeAnswer
from holdfast_checker.specimens import COMPARED
from holdfast_checker.subjects import SUBJECTS, find_subject
from tests.unit.cli.destinations import run

_BROKEN = ("file-v2", "--scene", "asking", "--property", "C4")
"""Breaks C4, and is searched for nothing else."""


# --- what it says -----------------------------------------------------------------------------------------------------
def test_a_violation_is_told_as_a_story_with_exit_code_1() -> None:
    result = run("check", *_BROKEN)
    assert result.exit_code == 1
    assert "file-v2/asking breaks C4 hidden" in result.stdout
    assert re.search(r"^asking +not all|^asking +\d+", result.stdout, re.MULTILINE)
    assert "1. driver starts job" in result.stdout
    assert "Broken: C4 hidden" in result.stdout
    assert "This is declared: files appear with each task commit" in result.stdout
    assert "1 property violated in 1 scene" in result.stdout


def test_a_committer_without_violations_exits_0_with_the_extent_of_the_search() -> None:
    result = run("check", "two_phase", "--scene", "speculation", "--scene", "asking")
    assert result.exit_code == 0
    found = re.search(r"nothing found in 2 scenes, ([\d,]+) states: the search is complete", result.stdout)
    assert found is not None
    assert int(found[1].replace(",", "")) > 100


def test_features_are_combined_to_a_scene_that_is_not_listed() -> None:
    result = run("check", "two_phase", "--scene", "one-task+lost-reply+overwrite+crash")
    assert result.exit_code == 0
    assert re.search(r"^one-task\+overwrite\+crash\+lost-reply +1 +[\d,]+", result.stdout, re.MULTILINE)


def test_the_worst_violation_is_told_and_each_other_has_its_command() -> None:
    result = run("check", "file-v2", "--scene", "speculation")
    assert "file-v2/speculation breaks C1 complete" in result.stdout
    others = re.findall(
        r"^  (.+) \((?:as declared|NOT DECLARED|nothing declared)\): holdfast (check .*)$", result.stdout, re.MULTILINE
    )
    assert {"C4 hidden", "C6 continuity"} <= {heading for heading, _command in others}
    for heading, command in others:
        again = run(*command.split())
        assert again.exit_code == 1
        assert f"breaks {heading}\n" in again.stdout
        assert "1 property violated" in again.stdout


def test_an_undeclared_violation_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMPARED["file-v2"].guarantees, "C4", GuaranteeAnswer(holds=True, why=""))  # type: ignore[arg-type]  # a dict
    assert "This is NOT DECLARED" in run("check", *_BROKEN).stdout
    monkeypatch.delitem(COMPARED["file-v2"].guarantees, "C4")  # type: ignore[arg-type]  # a dict
    assert "There is no declaration about this property" in run("check", *_BROKEN).stdout


def test_a_limited_search_is_reported_as_incomplete() -> None:
    result = run("check", "two_phase", "--scene", "crash", "--states", "600")
    assert result.exit_code == 0
    assert "the search is not complete" in result.stdout
    assert re.search(r"crash +1 +[\d,]+, not all", result.stdout)
    result = run("check", "two_phase", "--scene", "crash", "--seconds", "0.001")
    assert "the search is not complete" in result.stdout


@pytest.mark.parametrize("name", ["FILE-V2", "file_v2", " file-v2 "])
def test_names_match_in_any_spelling(name: str) -> None:
    result = run("check", name, "--scene", "ASKING", "--property", "c4")
    assert "file-v2/asking breaks C4" in result.stdout


def test_a_name_like_no_other_leads_to_the_list() -> None:
    assert "unknown committer: holdfast check --list shows the" in run("check", "nosuch").stderr
    assert "did you mean namespace" in run("check", "namespce").stderr


def test_details_show_every_call() -> None:
    short, full = run("check", *_BROKEN).stdout, run("check", *_BROKEN, "--details").stdout
    assert "destination.rename(" in full
    assert "destination.rename(" not in short


def test_an_error_in_the_code_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("holdfast_checker.committers.actors.commit_or_abort_job", fail)
    result = run("check", "two_phase", "--scene", "other-job")
    assert result.exit_code == 1
    assert "ended with an unexpected exception: ZeroDivisionError: a mistake" in " ".join(result.stdout.split())


def test_the_list_names_everything() -> None:
    document = json.loads(run("check", "--list", "--json").stdout)
    shown = run("check", "--list").stdout
    assert [one["name"] for one in document["committers"]["names"]] == list(COMPARED)
    for kind, name in (("committers", "two_phase"), *((kind, kind) for kind in SUBJECTS)):
        subject, listed = find_subject(name), document[kind]
        assert [scene["name"] for scene in listed["scenes"]] == list(subject.families)
        assert {one["name"] for one in listed["properties"]} == set(subject.rules)
        assert all(f"\n{one} " in shown for one in (*subject.families, *subject.rules))


@pytest.mark.parametrize(("name", "kind"), [("magic", "committers"), ("units", "units")])
def test_the_list_of_one_subject_has_only_its_own(name: str, kind: str) -> None:
    document = json.loads(run("check", name, "--list", "--json").stdout)
    assert list(document) == [kind]
    assert [scene["name"] for scene in document[kind]["scenes"]] == list(find_subject(name).families)
    shown = run("check", name, "--list").stdout
    assert f"scene of {kind}" in shown and "what it does" not in shown


def test_warnings_of_the_code_under_test_are_silenced(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLogger("holdfast").level
    run("check", "magic", "--scene", "second-driver", "--states", "3000")
    assert caplog.records == []
    assert logging.getLogger("holdfast").level == before


# --- for programs -----------------------------------------------------------------------------------------------------
def test_as_json() -> None:
    result = run("check", "file-v2", "--scene", "speculation", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["checked"] == "file-v2"
    assert document["interrupted"] is False
    (scene,) = document["scenes"]
    assert scene["family"] == "speculation"
    assert scene["complete"] is True
    assert {one["property"] for one in document["broken"]} == set(scene["broken"])
    first = document["broken"][0]
    assert first["property"] == "C1"
    assert first["declared"] is True
    assert first["counterexample"]["world"] == "file-v2/speculation"
    assert first["story"]["verdict"] == first["counterexample"]["broke"]


def test_the_same_command_gives_the_same_output() -> None:
    one, other = (json.loads(run("check", *_BROKEN, "--json").stdout) for _ in range(2))
    for document in (one, other):
        del document["scenes"][0]["seconds"]
    assert one == other


# --- random walks -----------------------------------------------------------------------------------------------------
def test_a_walk_says_how_to_continue_and_its_halves_add_up() -> None:
    walk = ("check", "file-v2", "--walk", "--scene", "speculation", "--seed", "5", "--json")
    whole = json.loads(run(*walk, "--histories", "10").stdout)
    assert (whole["walk"]["first"], whole["walk"]["next"]) == (0, 10)
    halves = [json.loads(run(*walk, "--histories", "5", "--first", first).stdout)["walk"] for first in ("0", "5")]
    assert [half["next"] for half in halves] == [5, 10]
    assert sum(half["steps"] for half in halves) == whole["walk"]["steps"]
    assert set(whole["walk"]["broken"]) == {name for half in halves for name in half["broken"]}
    shown = run(*walk[:-1], "--histories", "10")
    assert shown.exit_code == 1
    assert "holdfast check file-v2 --walk --scene speculation --seed 5 --first 10" in " ".join(shown.stdout.split())


def test_the_command_for_a_walks_violation_tells_its_story() -> None:
    shown = run("check", "direct", "--walk", "--seed", "3", "--histories", "4").stdout
    commands = re.findall(r"\): holdfast (check direct --walk .*)$", shown, re.MULTILINE)
    assert commands
    again = run(*commands[-1].split())
    assert again.exit_code == 1
    assert "in 1 random history\n" in again.stdout


def test_a_walk_that_finds_nothing() -> None:
    """Two recoveries run the same program in it: their histories must be kept apart."""
    result = run("check", "two_phase", "--walk", "--histories", "3")
    assert result.exit_code == 0
    assert "nothing found in 3 random histories: the search is not complete" in result.stdout
    assert "--seed 0 --first 3" in result.stdout


# --- wrong usage ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("two_fase", "did you mean two_phase"),
        ("magic --scene spekulation", "did you mean speculation"),
        ("magic --property D4", "did you mean C4"),
        ("", "give one of: the NAME"),
        ("magic --list --all", "give one of: the NAME"),
        ("magick --list", "did you mean magic"),
        ("--all --list", "give one of: the NAME"),
        ("--replay x magic", "give one of: the NAME"),
        ("--list --walk", "need the NAME"),
        ("--all --details", "shows one story"),
        ("--replay x --states 3", "limit a search"),
        ("magic --seed 3", "need --walk"),
        ("magic --walk --states 3", "--walk takes no"),
        ("magic --small --scene crash", "--small has its own scenes"),
        ("magic --seconds 0", "--seconds"),
        ("magic --states nine", "--states"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments: str, said: str) -> None:
    result = run("check", *arguments.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in result.stderr
    assert result.stderr.startswith("error: ")


def test_help_documents_the_exit_codes() -> None:
    shown = run("check", "--help").stdout
    for words in ("Exit codes:", "a property was violated", "130  interrupted"):
        assert words in shown


# --- nothing is needed ------------------------------------------------------------------------------------------------
def test_a_check_uses_no_network_and_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, no disk: the only stores are simulated."""
    opened: list[object] = []

    def refuse(name: str) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            opened.append((name, args))
            raise AssertionError(name)

        return call

    monkeypatch.setattr("socket.socket.connect", refuse("connect"))
    monkeypatch.setattr("subprocess.Popen.__init__", refuse("process"))
    assert run("check", "two_phase", "--scene", "asking").exit_code == 0
    assert opened == []


def test_every_committer_has_worlds() -> None:
    for name in COMPARED:
        result = run("check", name, "--scene", "overwrite", "--states", "1")
        assert result.exit_code in (0, 1), (name, result.stderr)
        assert f"{name}: " in result.stdout
