"""Run the guides to a namespace's commands in a shell, as a reader would type them, and compare the output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.acceptance.guides import ROOT, run_steps

pytestmark = pytest.mark.acceptance


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "here"
    place.mkdir()
    return place


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "holdfast").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast.cli "$@"\n')
    (programs / "holdfast").chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_NAMESPACE")},
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
    }


@pytest.mark.slow
def test_the_guide_to_its_use(tmp_path: Path, place: Path, environment: dict[str, str]) -> None:
    assert run_steps("how-to/use-a-namespace.md", place, environment) == 10, "steps of the page were not found"
    assert (place / "january.csv").read_text() == "UA,2\n"
    assert (tmp_path / "config/holdfast/namespaces.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_the_guide_to_its_operation(place: Path, environment: dict[str, str]) -> None:
    assert run_steps("how-to/operate-a-namespace.md", place, environment) == 5, "steps of the page were not found"
    assert not [path for path in (place / "prod-data" / "blobs").rglob("*") if path.is_file()]
