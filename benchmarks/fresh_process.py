"""Run a measurement in a new process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["run_module"]

_ROOT = Path(__file__).resolve().parents[1]


def run_module(module: str, *arguments: object) -> Any:
    """Run a module with arguments in a new process and return the JSON on the last line that it prints.

    Raises:
        RuntimeError: the module fails; the message ends with the last part of its standard error.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
