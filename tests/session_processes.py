"""Find the processes that a test session has started: they carry its mark, or descend from one of its processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SESSION_MARK", "Process", "session_processes"]

SESSION_MARK = "HOLDFAST_TEST_SESSION"
"""A variable in the environment of a session's processes: the session's process id, and ``/`` and that of a worker."""


@dataclass(frozen=True, slots=True, order=True)
class Process:
    """A process, as it was a moment ago.

    Attributes:
        state: a letter; ``T`` is stopped by a signal.
    """

    pid: int
    state: str
    command: str

    def catches(self, number: signal.Signals) -> bool:
        """Return whether the process handles a signal."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return False
        caught = int(status.partition("SigCgt:")[2].split()[0], 16)
        return bool(caught >> (number - 1) & 1)

    def __str__(self) -> str:
        return f"process {self.pid}: {self.command}"


def session_processes() -> list[Process]:
    """List the live processes of this session or worker, without its own (a fork shows its parent's mark only)."""
    own = os.getpid()
    mark = f"{SESSION_MARK}={os.environ[SESSION_MARK]}".encode()
    parents: dict[int, int] = {}
    states: dict[int, str] = {}
    marked: set[int] = set()
    for pid, state, parent, environment in _all_processes():
        parents[pid], states[pid] = parent, state
        if any(value == mark or value.startswith(mark + b"/") for value in environment):
            marked.add(pid)
    found = (pid for pid in parents if pid != own and (pid in marked or _descends(pid, own, parents)))
    return [Process(pid, states[pid], _command(pid)) for pid in sorted(found)]


def _all_processes() -> Iterator[tuple[int, str, int, list[bytes]]]:
    """Yield the id, the state, the parent and the environment of all processes but zombies."""
    for entry in Path("/proc").glob("[0-9]*"):  # empty where there is no /proc: the checks are for Linux
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                yield int(entry.name), state, int(parent), (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # the process has exited meanwhile, or belongs to another user
            continue


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "(exited just now)"
