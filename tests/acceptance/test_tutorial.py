"""Run the tutorial from start to end in a shell, as a reader would type it, and compare the output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from tests.acceptance.guides import ROOT, page
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.acceptance, pytest.mark.spark]

_STEP = re.compile(
    r"(?P<skip><!-- not run: .+? -->\n)?```(?P<kind>sh|python|text)\n(?P<body>.*?)```|Save this as `(?P<file>[a-z.]+)`",
    re.DOTALL,
)


def _pattern(line: str) -> str:
    """Return a pattern for a line, in which ``…`` stands for any text and columns may have other widths."""
    return ".*".join(r"\s+".join(map(re.escape, part.split(" "))) for part in re.sub(" +", " ", line).split("…"))


def _assert_shown(shown: str, printed: str) -> None:
    """Check that each line of the page was printed, in this order, perhaps with other lines in between."""
    lines = iter(printed.splitlines())
    for line in shown.splitlines():
        pattern = re.compile(_pattern(line.strip()))
        assert any(pattern.search(one) for one in lines), f"the page shows {line!r}, printed was:\n{printed}"


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
    file_name, printed, ran = "", "", 0
    for step in _STEP.finditer(page("tutorial/first-ten-minutes.md")):
        if step["file"]:
            file_name = step["file"]
        elif step["kind"] == "python":
            (tmp_path / file_name).write_text(step["body"])
        elif step["kind"] == "text":
            _assert_shown(step["body"], printed)
        elif not step["skip"]:
            run = subprocess.run(
                ["bash", "-e", "-c", step["body"]],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
            printed = run.stdout
            assert run.returncode == 0, run.stderr
            ran += 1
    assert ran == 7, "steps of the page were not found"
    assert len(list((tmp_path / "flights").glob("month=*/*.parquet"))) == 24
    assert list((tmp_path / "flights/_holdfast/jobs").glob("*/*")) == []
