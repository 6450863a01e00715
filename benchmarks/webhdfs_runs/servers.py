"""Start servers of a namespace for a benchmark."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["started_servers"]

_ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def started_servers(url: str, count: int, workers: int = 1, mode: str = "grouped") -> Iterator[list[str]]:
    """Start servers on the database of a namespace, in a mode of the benchmark; yield their addresses as host:port."""
    environment = {**os.environ, "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}", "HOLDFAST_NAMESPACE_BENCH": url}
    command = [sys.executable, "-m", "benchmarks.webhdfs_runs.serve_in_mode", mode]
    command += ["serve", "bench", "--port", "0", "--json"]
    with contextlib.ExitStack() as stack:
        addresses = []
        for _ in range(count):
            process = subprocess.Popen(
                [*command, "--workers", str(workers)], env=environment, stdout=subprocess.PIPE, text=True
            )
            stack.callback(_end, process)
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("a server did not start: see above")
            addresses.append(json.loads(line)["address"].removeprefix("http://"))
        yield addresses


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
