"""Keep processors busy, as other work on a shared machine does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

__all__ = ["busy_processes"]

_WORK = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(1_000_000))
"""


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Let so many processes compute while the block runs; they end with this process, however it ends."""
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", _WORK]))
            stack.callback(process.kill)
        yield
