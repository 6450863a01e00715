"""Run docs/how-to/use-tables.md: its commands in a shell, and its Python examples."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.acceptance.guides import ROOT, python_examples, run_examples, run_steps

pytestmark = pytest.mark.acceptance

PAGE = "how-to/use-tables.md"


@pytest.mark.slow  # twenty processes; tests/unit/cli/database runs the commands in one
def test_the_commands_do_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, place = tmp_path / "bin", tmp_path / "here"
    programs.mkdir()
    place.mkdir()
    (programs / "holdfast").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast.cli "$@"\n')
    (programs / "holdfast").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    assert run_steps(PAGE, place, environment) == 6, "steps of the page were not found"
    assert (place / "stock.jsonl").read_text().count("\n") == 2
    monkeypatch.chdir(place)
    run_examples(PAGE, {})  # on the store that the commands have made, as a reader would


def test_the_examples_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(python_examples(PAGE)) == 4
    run_examples(PAGE, {})
