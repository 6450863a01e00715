"""Run docs/how-to/use-a-namespace.md in a shell, as a reader would type it, and compare the output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.acceptance.guides import ROOT, run_steps

pytestmark = pytest.mark.acceptance


def test_the_guide_runs_as_it_stands(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "holdfast").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast.cli "$@"\n')
    (programs / "holdfast").chmod(0o755)
    place = tmp_path / "here"
    place.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_NAMESPACE")},
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
    }
    assert run_steps("how-to/use-a-namespace.md", place, environment) == 10, "steps of the page were not found"
    assert (place / "january.csv").read_text() == "UA,2\n"
    assert (tmp_path / "config/holdfast/namespaces.json").stat().st_mode & 0o777 == 0o600
