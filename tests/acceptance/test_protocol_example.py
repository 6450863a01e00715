"""Run the example of docs/explanation/two-phase.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.guides import run_examples

pytestmark = [pytest.mark.acceptance]


def test_the_example_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_examples("explanation/two-phase.md", {"url": str(tmp_path / "table")})
    assert "part-00000-" in capsys.readouterr().out
