"""`check` as a process: Ctrl-C, a closed pipe, no terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.patience import PATIENCE_S

_CHECK = [sys.executable, "-m", "holdfast.cli", "check"]


@contextmanager
def _looking(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command with a terminal as stderr, and return once it is searching and has found C4."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*_CHECK, *arguments], stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    seen = b""
    try:
        while b"C4" not in seen:
            assert select.select([ours], [], [], PATIENCE_S)[0], seen
            seen += os.read(ours, 4096)
        yield process
    finally:
        process.kill()
        process.communicate()
        os.close(ours)


def test_after_ctrl_c_the_results_so_far_are_shown() -> None:
    with _looking("file-v2", "--scene", "crash") as process:
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert len(re.findall(r"^crash +1 +[\d,]+, not all", shown, re.MULTILINE)) == 1
    assert "file-v2/crash breaks C4 hidden" in shown
    assert "Broken: C4 hidden" in shown


@pytest.mark.slow
def test_after_ctrl_c_a_walk_says_how_to_continue() -> None:
    with _looking("file-v2", "--walk", "--seconds", "3600", "--json") as process:
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    document = json.loads(shown)
    assert document["interrupted"] is True
    assert document["walk"]["next"] == document["walk"]["histories"] > 0
    assert "C4" in {one["property"] for one in document["broken"]}


def test_a_closed_pipe_and_no_terminal() -> None:
    command = [*_CHECK, "file-v2", "--scene", "asking", "--details"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (0, 1)
