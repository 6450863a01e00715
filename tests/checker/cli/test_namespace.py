"""`check namespace`: its output and exit codes, on scenes that take a moment."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from holdfast.transactions.base import Commit, Outcome
from holdfast_checker.namespace.handles import SimulatedHandle
from holdfast_checker.namespace.scenes.catalog import SCENES
from tests.checker.committers.planting import planted, swap
from tests.unit.cli.destinations import run


def _forget_reads(
    shipped: Callable[..., list[Outcome]], self: SimulatedHandle, commits: Sequence[Commit]
) -> list[Outcome]:
    """Validate nothing. What the coverage watches runs as it was shipped, so the mistake is in the simulation."""
    return shipped(self, [replace(commit, reads={}) for commit in commits])


_FORGETTING = swap(SimulatedHandle.commit_group, _forget_reads)


def test_scenes_without_violations_exit_0_with_the_extent_of_the_search() -> None:
    result = run("check", "namespace", "--scene", "delete-directory", "--scene", "quota")
    assert result.exit_code == 0
    assert re.search(
        r"^nothing found in 2 scenes, \d+ states, \d+ histories: the search is complete", result.stdout, re.M
    )
    assert re.search(r"^namespace/: [\d,]+ of [\d,]+ statements ran", result.stdout, re.M)


def test_a_violation_is_told_as_a_story_saved_and_replayed(tmp_path: Path) -> None:
    with planted(_FORGETTING):
        result = run("check", "namespace", "--scene", "below-a-rename", "--property", "N2", "--save", str(tmp_path))
        assert result.exit_code == 1
        assert "namespace/below-a-rename breaks N2 linearizable" in result.stdout
        [saved] = tmp_path.iterdir()
        assert run("check", "--replay", str(saved)).exit_code == 1
    assert run("check", "--replay", str(saved)).exit_code in (0, 2), "the shipped code does not do this"


def test_as_json() -> None:
    document = json.loads(run("check", "namespace", "--scene", "delete-directory", "--json").stdout)
    assert document["checked"] == "namespace" and document["broken"] == []
    assert document["scenes"][0]["family"] == "delete-directory" and document["scenes"][0]["complete"]


def test_a_walk_says_how_to_continue() -> None:
    result = run("check", "namespace", "--walk", "--seed", "4", "--histories", "5")
    assert result.exit_code == 0
    assert "holdfast check namespace --walk --seed 4 --first 5" in result.stdout


def test_the_list_has_scenes_and_properties() -> None:
    listed = json.loads(run("check", "--list", "--json").stdout)["namespace"]
    assert [one["name"] for one in listed["scenes"]] == list(SCENES)
    assert {"N1", "N2", "N3", "N5"} <= {one["name"] for one in listed["properties"]}
