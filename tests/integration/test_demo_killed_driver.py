"""Run `holdfast demo` as a user does: the scenario that kills a driver, Ctrl-C, and (slow) all three scenarios."""

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


def test_a_driver_killed_in_mid_commit_is_recovered(tmp_path: Path) -> None:
    """C4, C9: before recovery a Holdfast reader sees no row of the job; afterwards every reader sees each row once."""
    process = start(tmp_path, "--scenario", "c", "--json")
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    report = json.loads(stdout)
    assert report["verified"] is True
    (killed,) = report["scenarios"]
    assert killed["looks_before"] > 0
    assert (killed["seen_before"], killed["pending_uploads"], killed["difference"]) == (0, 0, "")
    assert killed["rows"] == report["source_rows"] == 336_776
    assert any("SIGKILL to" in event and "30 files visible" in event for event in killed["events"])
    assert any("a reader through Holdfast 0" in event for event in killed["events"])
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    """The end of the session checks for leftover processes; this test checks files and the exit code."""
    process = start(tmp_path)
    begun = "holdfast-demo-*/a/task.json"
    wait_until(lambda: any(tmp_path.glob(begun)), "the demo starts no task", over=lambda: process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stderr.split()[-1]) == (130, "interrupted")
    assert "Traceback" not in stderr
    assert [path for path in tmp_path.iterdir() if path.name.startswith("holdfast-")] == []


@pytest.mark.slow
def test_the_whole_demo(tmp_path: Path) -> None:
    process = start(tmp_path)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    assert stdout.rstrip().splitlines()[-1] == "verified"
    assert "Spark counted 2 failed attempts" in stdout
