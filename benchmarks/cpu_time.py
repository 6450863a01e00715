"""Measure the CPU seconds of a Spark application with its Python workers.

Other load on the machine affects CPU seconds less than wall time.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["CpuMeter"]

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_ROUNDS = 10


class _Process(NamedTuple):
    parent: int
    used_s: float  # by itself, and by its children that have ended


class CpuMeter:
    """A meter of the CPU time of a process and all its descendants, including those that have ended.

    A process whose parent ends before it does no longer counts.

    Args:
        root: the id of the topmost process; None for this process.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = os.getpid() if root is None else root

    def seconds(self) -> float:
        """Return the CPU seconds so far, user and system. Linux only."""
        found = self._descendants()
        for _ in range(_ROUNDS):
            before, found = found, self._descendants()
            if found.keys() == before.keys():
                break  # else one may have ended between the looks at it and at its parent: it would not be counted
        return sum(process.used_s for process in found.values())

    def _descendants(self) -> dict[int, _Process]:
        found: dict[int, _Process] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    text = (entry / "stat").read_text()
                except OSError:
                    continue  # the process has just ended
                fields = text.rpartition(")")[2].split()
                found[int(entry.name)] = _Process(int(fields[1]), sum(map(int, fields[11:15])) * _TICK_S)
        return {number: process for number, process in found.items() if self._descends(number, found)}

    def _descends(self, number: int, found: dict[int, _Process]) -> bool:
        while number > 1:
            if number == self._root:
                return True
            number = found[number].parent if number in found else 0
        return False
