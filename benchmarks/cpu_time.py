"""Measure the CPU seconds of a Spark application with its Python workers.

Other load on the machine affects CPU seconds less than wall time.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

__all__ = ["CpuMeter"]

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_ROUNDS = 10
_LOOK_S = 0.1


class _Process(NamedTuple):
    parent: int
    used_s: float  # by itself, and by its children that have ended
    started: int  # in ticks; tells a process from a later one with the same number


class CpuMeter:
    """A meter of the CPU time of a process and all its descendants, including those that have ended.

    The kernel drops the time of a child whose parent ignores SIGCHLD, as the daemon of PySpark's workers does. As a
    context manager, the meter looks at such children ten times a second, so it misses only what they use after the last
    look. Its own looks do not count. A process whose parent ends before it does no longer counts.

    Args:
        root: the id of the topmost process; None for this process.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = os.getpid() if root is None else root
        self._dropped_s = 0.0
        self._looks_s = 0.0
        self._watched: dict[int, _Process] = {}  # children of processes that ignore SIGCHLD
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> CpuMeter:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._watcher.join()

    def seconds(self) -> float:
        """Return the CPU seconds so far, user and system. Linux only."""
        with self._lock:
            found = self._look()
            for _ in range(_ROUNDS):
                before, found = found, self._look()
                if found.keys() == before.keys():
                    break  # else one may have ended between the looks at it and at its parent: it would not be counted
            return sum(process.used_s for process in found.values()) + self._dropped_s - self._looks_s

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_S):
            with self._lock:
                started_s = time.thread_time()
                self._look()
                self._looks_s += time.thread_time() - started_s if self._root == os.getpid() else 0.0

    def _look(self) -> dict[int, _Process]:
        found = self._descendants()
        for number, process in self._watched.items():
            if number not in found or found[number].started != process.started:
                self._dropped_s += process.used_s
        ignoring = {parent: _ignores_children(parent) for parent in {process.parent for process in found.values()}}
        self._watched = {number: process for number, process in found.items() if ignoring[process.parent]}
        return found

    def _descendants(self) -> dict[int, _Process]:
        found: dict[int, _Process] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    text = (entry / "stat").read_text()
                except OSError:
                    continue  # the process has just ended
                fields = text.rpartition(")")[2].split()
                used_s = sum(map(int, fields[11:15])) * _TICK_S
                found[int(entry.name)] = _Process(int(fields[1]), used_s, int(fields[19]))
        return {number: process for number, process in found.items() if self._descends(number, found)}

    def _descends(self, number: int, found: dict[int, _Process]) -> bool:
        while number > 1:
            if number == self._root:
                return True
            number = found[number].parent if number in found else 0
        return False


def _ignores_children(number: int) -> bool:
    try:
        text = Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False  # it has ended, or belongs to another user
    ignored = next((int(line.split()[1], 16) for line in text.splitlines() if line.startswith("SigIgn:")), 0)
    return bool(ignored >> (signal.SIGCHLD - 1) & 1)
