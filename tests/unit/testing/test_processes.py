"""Servers as child processes: they start whatever the parent's libraries do at a fork, with signals as they expect."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.testing.processes import start_server
from tests.patience import PATIENCE_S

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads signals from /proc")


def test_no_code_of_libraries_runs_between_fork_and_exec(tmp_path: Path) -> None:
    """fsspec forgets its file systems at a fork, and with them TLS contexts, whose lock another thread had just then.

    The child waited forever, and so did its parent. The hook of this test ends the child instead.
    """
    program = """
import os, sys
from pathlib import Path
from holdfast.testing.processes import start_server
os.register_at_fork(after_in_child=lambda: os._exit(7))
sys.exit(start_server(["true"], Path("log"), Path(".")).wait())
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=PATIENCE_S)


@needs_proc
def test_a_server_does_not_ignore_the_signals_that_python_ignores(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert start_server(["grep", "SigIgn", "/proc/self/status"], log, tmp_path).wait(PATIENCE_S) == 0
    ignored = int(log.read_text().split()[1], 16)
    assert not [one for one in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> (one - 1) & 1]


def test_the_log_says_that_a_program_does_not_exist(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert start_server([str(tmp_path / "missing")], log, tmp_path).wait(PATIENCE_S) != 0
    assert "No such file" in log.read_text()
