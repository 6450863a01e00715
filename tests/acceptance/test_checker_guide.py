"""Run the example of docs/how-to/run-the-checker.md, and compare the stories and counts that the page shows."""

from __future__ import annotations

import os
import re

import pytest

from holdfast_checker.committers.scenes import COMBINED, SCENES
from holdfast_checker.transactions.scenes import SCENES as TRANSACTION_SCENES
from tests.acceptance.guides import ROOT, page, python_examples
from tests.unit.cli.destinations import on_screen

pytestmark = pytest.mark.acceptance

GUIDE_FILE = ROOT / "docs/how-to/run-the-checker.md"
GUIDE = page("how-to/run-the-checker.md")


def test_the_example_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = python_examples("how-to/run-the-checker.md")
    exec(compile(example, "docs/how-to/run-the-checker.md", "exec"), {})
    *way, broke, right = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in way[:3]] == [["a", "get"], ["b", "get"], ["a", "put"]]
    assert broke.startswith("both lead: ")
    assert re.fullmatch(r"True \{\} \d+ \d+", right)


def test_the_story_is_what_the_command_tells() -> None:
    told = on_screen("check", "file-v2", "--property", "C1")
    story = told[told.index("file-v2/speculation breaks") : told.index("This is declared")]
    if os.environ.get("HOLDFAST_WRITE_DOCS"):
        before, _, rest = GUIDE.partition("file-v2/speculation breaks")
        GUIDE_FILE.write_text(before + story + rest[rest.index("This is declared") :], encoding="utf-8")
    assert story in GUIDE_FILE.read_text(encoding="utf-8"), "run with HOLDFAST_WRITE_DOCS=1, check the page"


def test_the_table_has_every_scene() -> None:
    """The figures change whenever the code makes more or fewer calls: the page shows those of one day."""
    table = GUIDE[GUIDE.index("two_phase: hidden files") : GUIDE.index("nothing found in")]
    row = r"^ ([a-z+-]+) +[\d.,e+]+ +[\d,]+ +(?:[\d,]+ +)?[\d.]+ (?:m?s|min) +\d+ of \d+$"
    shown = re.findall(row, table, re.MULTILINE)
    assert shown == [*SCENES, *COMBINED]
    assert f"nothing found in {len(shown)} scenes" in GUIDE


def test_the_table_of_transactions_has_every_scene() -> None:
    table = GUIDE[GUIDE.index("transactions: what their callers run") :]
    row = r"^ ([a-z-]+) +[\d,]+ +[\d,]+ +[\d,]+ +\d+ of \d+$"
    shown = re.findall(row, table[: table.index("nothing found in")], re.MULTILINE)
    assert shown == list(dict.fromkeys(scene.family for scene in TRANSACTION_SCENES.values()))
    assert f"nothing found in {len(TRANSACTION_SCENES)} scenes" in GUIDE
