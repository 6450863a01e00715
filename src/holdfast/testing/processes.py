"""Run servers as child processes: pick free ports, let children die with their parent, end whole process groups."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.testing import launch

_STOP_S = 5.0
_POLL_S = 0.01


def free_ports(count: int) -> list[int]:
    """Return distinct free loopback ports; each is occupied until the last is chosen, so none is chosen twice."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@dataclass(frozen=True)
class Account:
    """A user of this machine, and the user's group."""

    name: str
    uid: int
    gid: int


def unprivileged_account() -> Account | None:
    """Return the account for servers that refuse to run as root; None if this process is not root's."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_name, nobody.pw_uid, nobody.pw_gid)


def start_server(
    command: Sequence[str],
    log: Path,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    account: Account | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in its own group, with its output in `log`; on Linux it dies with its parent.

    Args:
        account: who runs the process; None for the user of this process.
    """
    owner = ("", "") if account is None else (str(account.uid), str(account.gid))
    launcher = (sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *owner)
    with log.open("ab") as output:
        return subprocess.Popen(
            [*launcher, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=None if environment is None else {**os.environ, **environment},
            start_new_session=True,
        )


def end_group(
    process: subprocess.Popen[bytes], first_signal: signal.Signals = signal.SIGTERM, patience_s: float = _STOP_S
) -> None:
    """End a process and all processes of its group: first with `first_signal`, then with SIGKILL."""
    for each in (first_signal, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, each)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return
    process.wait()


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its descendants at once, also those in groups of their own, like a power failure.

    Guarantee: on Linux, all of them are gone. Elsewhere only the process is; its children have to notice by themselves.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGSTOP)  # it starts no more children
    doomed = _descendants(process.pid)
    for pid in (process.pid, *doomed):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    deadline_s = time.monotonic() + _STOP_S
    while doomed & _parents().keys() and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)


def _descendants(root: int) -> set[int]:
    parents = _parents()
    found: set[int] = set()
    level = {root}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level} - found
        found |= level
    return found


def _parents() -> dict[int, int]:
    """Return the parent of each live process; nothing if this is not Linux."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has exited in the meantime
            state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    return parents
