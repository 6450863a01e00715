"""Run servers as child processes: as a user without rights, and killed with all of their children."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.s3_server import start_server
from tests.patience import wait_until
from tests.servers import become_user


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


def start_server_as(
    account: Account | None,
    command: Sequence[str],
    log: Path,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a server as another user, like `start_server`; None for the user of this process."""
    if account is not None:
        become = (sys.executable, "-I", "-S", become_user.__file__, str(account.uid), str(account.gid))
        command = [*become, *command]
    return start_server(command, log, cwd, environment)


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
    wait_until(lambda: not doomed & _parents().keys(), "a child of the process is still there")


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
