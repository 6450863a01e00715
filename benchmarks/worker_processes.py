"""Keep processes that wait for orders as JSON lines on their standard input, and answer each with one JSON line."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["WorkerProcesses"]

_ROOT = Path(__file__).resolve().parents[1]
_ANSWER_S = 180.0
"""How long a process may take to answer, beside the time for which it was told to work."""


class WorkerProcesses:
    """Processes that run a module.

    Args:
        module: answers orders until its standard input ends.
        count: how many there are; an order may go to fewer.
    """

    def __init__(self, module: str, count: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "src")])}
        command = [sys.executable, "-m", module]
        self._processes = [
            subprocess.Popen(command, cwd=_ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(count)
        ]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._processes)

    def ask(self, orders: Sequence[Mapping[str, object]], limit_s: float = 0.0) -> list[dict[str, Any]]:
        """Give each of the first processes an order, and return their answers.

        Args:
            limit_s: how long the work takes.

        Raises:
            RuntimeError: a process failed, or did not answer.
        """
        used = self._processes[: len(orders)]
        for process, order in zip(used, orders, strict=True):
            _tell(process, order)
        return [_answer(process, limit_s) for process in used]

    def __enter__(self) -> WorkerProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _tell(process: subprocess.Popen[bytes], order: Mapping[str, object]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(order).encode() + b"\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[bytes], limit_s: float) -> dict[str, Any]:
    assert process.stdout is not None
    deadline_s = time.monotonic() + limit_s + _ANSWER_S
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline_s - time.monotonic()))
        piece = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        if not piece:
            raise RuntimeError(f"a worker process {'failed: see above' if ready else 'does not answer'}")
        pieces.append(piece)
    return dict(json.loads(b"".join(pieces)))
