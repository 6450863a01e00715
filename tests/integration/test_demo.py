"""Run `holdfast demo` as a user does, and end it by Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.acceptance]


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli", "demo", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )


@pytest.mark.slow
def test_a_driver_killed_in_mid_commit_is_recovered(tmp_path: Path) -> None:
    """C4, C9: before recovery a Holdfast reader sees no row of the job; afterwards every reader sees each row once."""
    process = start(tmp_path, "--json")
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    report = json.loads(stdout)
    assert (report["verified"], report["problems"]) == (True, [])
    assert report["listings_before"] > 0
    assert report["seen_before"] == 0
    assert report["rows"] == report["source_rows"] == 336_776
    assert any("then showed 30 of" in event and "a reader through Holdfast 0" in event for event in report["events"])
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    """The end of the session checks for leftover processes; this test checks files and the exit code."""
    process = start(tmp_path)
    begun = "holdfast-demo-*/driver.log"
    wait_until(lambda: any(tmp_path.glob(begun)), "the demo starts no task", over=lambda: process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stderr.split()[-1]) == (130, "interrupted")
    assert "Traceback" not in stderr
    assert [path for path in tmp_path.iterdir() if path.name.startswith("holdfast-")] == []
