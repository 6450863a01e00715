"""Run the example of docs/how-to/run-the-checker.md, and compare the stories and counts that the page shows."""

from __future__ import annotations

import os
import re

import pytest

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
    assert re.fullmatch(r"True \{\} \d+", right)


def test_the_story_is_what_the_command_tells() -> None:
    told = on_screen("check", "file-v2", "--property", "C1")
    story = told[told.index("file-v2/speculation breaks") : told.index("This is declared")]
    if os.environ.get("HOLDFAST_WRITE_DOCS"):
        before, _, rest = GUIDE.partition("file-v2/speculation breaks")
        GUIDE_FILE.write_text(before + story + rest[rest.index("This is declared") :], encoding="utf-8")
    assert story in GUIDE_FILE.read_text(encoding="utf-8"), "run with HOLDFAST_WRITE_DOCS=1, check the page"
