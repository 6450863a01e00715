"""Run servers as child processes: pick free ports, let children die with their parent, end whole process groups."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["end_group", "free_ports", "start_server"]

_STOP_S = 5.0
_PR_SET_PDEATHSIG = 1


def free_ports(count: int) -> list[int]:
    """Return distinct free loopback ports; each is occupied until the last is chosen, so none is chosen twice."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def start_server(
    command: Sequence[str], log: Path, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process in its own group, with its output in `log`; on Linux it dies with its parent."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=None if environment is None else {**os.environ, **environment},
            start_new_session=True,
            preexec_fn=_die_with_parent_call(),
        )


def _die_with_parent_call() -> Callable[[], None] | None:
    """Return a function that makes the child process that runs it die with its parent; None if this is not Linux."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent died before prctl was called

    return die_with_parent


def end_group(process: subprocess.Popen[bytes], first_signal: signal.Signals = signal.SIGTERM) -> None:
    """End a process and all processes of its group: first with `first_signal`, then with SIGKILL."""
    for each in (first_signal, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, each)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
            return
    process.wait()
