"""Measure the CPU seconds of a Spark application with its Python workers.

Other load on the machine affects CPU seconds less than wall time.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CpuMeter"]

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """A meter of the CPU time of a process and all its descendants, including those that have ended.

    Args:
        root: the id of the topmost process; None for this process.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = os.getpid() if root is None else root

    def seconds(self) -> float:
        """Return the CPU seconds so far, user and system. Linux only."""
        used: dict[int, float] = {}
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    text = (entry / "stat").read_text()
                except OSError:
                    continue  # the process has just ended: its parent's counter includes it
                fields = text.rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                used[int(entry.name)] = sum(map(int, fields[11:15])) * _TICK_S  # own time, then that of ended children
        return sum(seconds for process, seconds in used.items() if self._descends(process, parents))

    def _descends(self, process: int, parents: dict[int, int]) -> bool:
        while process > 1:
            if process == self._root:
                return True
            process = parents.get(process, 0)
        return False
