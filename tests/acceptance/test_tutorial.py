"""Run the tutorial from start to end in a shell, as a reader would type it, and compare the output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from tests.acceptance.guides import ROOT, run_steps

pytestmark = [pytest.mark.acceptance, pytest.mark.spark]


@pytest.mark.slow
def test_the_tutorial_runs_as_it_stands(tmp_path: Path) -> None:
    bin_dir = Path(sys.executable).parent
    hidden = tmp_path / "not installed"  # the install command of the page brings no pandas
    hidden.mkdir()
    (hidden / "pandas.py").write_text("raise ImportError('not installed by the tutorial')")
    environment = {
        **os.environ,
        "PATH": f"{bin_dir}:{os.environ['PATH']}",
        "PYTHONPATH": f"{hidden}:{ROOT / 'src'}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "COLUMNS": "200",
    }
    assert run_steps("tutorial/first-ten-minutes.md", tmp_path, environment) == 7, "steps of the page were not found"
    assert len(list((tmp_path / "flights").glob("month=*/*.parquet"))) == 24
    assert list((tmp_path / "flights/_holdfast/jobs").glob("*/*")) == []
