"""A session that hangs shows its place and leaves no process behind, and Ctrl-C reaches what tests start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import time_limit
from tests.patience import PATIENCE_S, wait_until
from tests.variants import variants

ROOT = Path(__file__).parents[2]

_LIMIT_S = 7200  # another one than the session's: a test ends it

HANGING = """
import signal, subprocess, sys, threading, time
from pathlib import Path

def test_that_hangs():
    frozen = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", "a frozen child"])
    frozen.send_signal(signal.SIGSTOP)
    while Path(f"/proc/{frozen.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    Path("frozen.part").write_text(str(frozen.pid))
    Path("frozen.part").rename("frozen")
    threading.Event().wait(1000)
"""

OVER_WHEN_FROZEN = """
import threading
from pathlib import Path
from tests import time_limit
from tests.patience import wait_until

def wait():
    wait_until(Path("frozen").exists, "the test does not begin")
    time_limit.over.set()

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        threading.Thread(target=wait, daemon=True).start()
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_session_that_hangs_shows_its_place_and_ends(workers: int, tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    (tmp_path / "conftest.py").write_text(OVER_WHEN_FROZEN)
    ended = session(tmp_path, workers)
    assert ended.returncode == pytest.ExitCode.INTERRUPTED, ended.stdout + ended.stderr
    assert f"the tests take longer than {_LIMIT_S:,} s" in ended.stderr
    frozen = (tmp_path / "frozen").read_text()
    assert f"stopped by a signal: process {frozen}: " in ended.stderr and "a frozen child" in ended.stderr
    assert "test_hanging.py" in ended.stderr and "in test_that_hangs" in ended.stderr
    wait_until(lambda: state(frozen) == "Z", "the frozen child lives on")


@pytest.mark.slow
@pytest.mark.parametrize("workers", variants([1, 0]))
def test_ctrl_c_reaches_what_tests_start_also_in_the_background(workers: int, tmp_path: Path) -> None:
    (tmp_path / "test_signals.py").write_text(
        "import signal\ndef test_it():\n    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    ended = session(tmp_path, workers, through=("sh", "-c", "trap '' INT; exec \"$@\"", "sh"))
    assert ended.returncode == 0, ended.stdout + ended.stderr


def session(folder: Path, workers: int, through: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder in a session like that of these tests; `through` is a command that runs it."""
    return subprocess.run(
        [
            *(*through, sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"),
            *("-c", ROOT / "pyproject.toml", "-o", f"{time_limit.SETTING}={_LIMIT_S}"),
            *("--rootdir", folder, "-n", str(workers), folder),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_wait_ends_when_what_it_waits_for_can_no_longer_happen() -> None:
    ends = iter([False, False, True])
    with pytest.raises(AssertionError, match=r"^it did not happen$"):
        wait_until(lambda: False, "it did not happen", over=lambda: next(ends))
    assert next(ends, None) is None
    wait_until(lambda: True, "it happened before the end", over=lambda: True)


def state(pid: str) -> str:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
