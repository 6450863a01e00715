"""Run docs/how-to/watch-a-job.md: its commands in a shell, and its Python examples."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.records import open_database
from tests.acceptance.guides import ROOT, run_examples, run_steps
from tests.unit.units.watched_jobs import TABLE, WatchedJob, text

pytestmark = pytest.mark.acceptance

PAGE = "how-to/watch-a-job.md"


def _db(directory: Path) -> str:
    """Make the database of the page, with its finished job."""
    url = f"sqlite://{directory}/shop.db"
    with open_database(f"{url}?synchronous=normal", create=True) as db:
        db.create_table(TABLE)
        job = WatchedJob(db, text(400), group=32)
        job.begin()
        for step in job.steps():
            step()
    return url


@pytest.mark.slow  # five processes; tests/unit/cli/database runs the commands in one
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    programs, place = tmp_path / "bin", tmp_path / "here"
    programs.mkdir()
    place.mkdir()
    (programs / "holdfast").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast.cli "$@"\n')
    (programs / "holdfast").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    _db(place)
    assert run_steps(PAGE, place, environment) == 3, "steps of the page were not found"


def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    run_examples(PAGE, {"url": _db(tmp_path)})
