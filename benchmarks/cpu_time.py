"""CPU seconds of a Spark application with its Python workers: what other work on the machine disturbs little."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CpuMeter"]

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """Adds up what this process and all that descend from it have used, those that have ended included.

    Args:
        root: the process id to start from; None for this process.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = os.getpid() if root is None else root

    def seconds(self) -> float:
        """CPU seconds so far, user's and system's. Linux only."""
        used: dict[int, float] = {}
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    text = (entry / "stat").read_text()
                except OSError:
                    continue  # it has just ended; its parent counts it
                fields = text.rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                used[int(entry.name)] = sum(map(int, fields[11:15])) * _TICK_S  # its own, then its ended children's
        return sum(seconds for process, seconds in used.items() if self._descends(process, parents))

    def _descends(self, process: int, parents: dict[int, int]) -> bool:
        while process > 1:
            if process == self._root:
                return True
            process = parents.get(process, 0)
        return False
