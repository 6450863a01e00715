"""Follow docs/how-to/serve-a-namespace.md as a reader would, up to a Spark job on the server."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.guides import ROOT, run_steps

pytestmark = [pytest.mark.acceptance, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return a directory; what still runs in it is ended."""
    place = tmp_path / "here"
    place.mkdir()
    yield place
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if Path(os.readlink(process / "cwd")) == place:
                os.kill(int(process.name), signal.SIGTERM)


def test_the_guide_to_a_server(tmp_path: Path, place: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "holdfast").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast.cli "$@"\n')
    (programs / "holdfast").chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_NAMESPACE")},
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PYSPARK_PYTHON": sys.executable,
    }
    assert run_steps("how-to/serve-a-namespace.md", place, environment) == 2, "steps of the page were not found"
