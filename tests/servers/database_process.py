"""Run a database server as a child process with a directory of its own: the part that is the same for all servers."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.s3_server import end_group, find_free_ports
from tests.servers.processes import kill_tree, start_server_as, unprivileged_account

_POLL_S = 0.02
_STOP_S = 60.0
_LOG_TAIL_BYTES = 2000


class DatabaseProcess:
    """A server with its data in a directory, for clients on this machine.

    Guarantee: after `stop`, or after the thread that started the server has died, the server is gone. Its port and the
    directory of its socket stay the same over restarts.

    Args:
        name: what the server is called in errors.
        directory: directory for the data; None for a temporary one that `stop` removes.
        secrets: words that never appear in an error.
        timeout_s: how long set-up and start may take, each.

    Attributes:
        account: the user who runs the server: not root, because some servers refuse that; None for this process's user.
    """

    def __init__(self, name: str, directory: Path | str | None, secrets: Sequence[str], timeout_s: float) -> None:
        self._name = name
        self._given_directory = None if directory is None else Path(directory).absolute()
        self._secrets = secrets
        self._timeout_s = timeout_s
        self._home: Path | None = None
        self._sockets: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.account = unprivileged_account()
        self.port = 0

    @property
    def home(self) -> Path:
        """Return the directory for the data and the log. It exists after `make_directories`."""
        assert self._home is not None
        return self._home

    @property
    def sockets(self) -> Path:
        """Return the directory of the Unix socket, a short path: the system limits that of a socket to 107 bytes."""
        assert self._sockets is not None
        return self._sockets

    @property
    def pid(self) -> int | None:
        """Return the server's process id; None if the server is not running."""
        return None if self._process is None else self._process.pid

    # --- set-up -------------------------------------------------------------------------------------------------------
    def make_directories(self) -> None:
        """Create the directories unless they exist, and choose the port at the first call.

        Raises:
            InvalidRequestError: the server's user cannot reach the directory.
        """
        if self._home is None:
            prefix = f"holdfast-{self._name.lower()}-"
            self._home = self._given_directory or Path(tempfile.mkdtemp(prefix=prefix))
            self._home.mkdir(parents=True, exist_ok=True)
            self.give(self._home)
            self.port = find_free_ports(1)[0]
        if self.account is not None and any(not one.stat().st_mode & stat.S_IXOTH for one in self._home.parents):
            raise InvalidRequestError(
                f"root's {self._name} server runs as {self.account.name}, who cannot reach its directory: choose one"
                " that every user may enter",
                directory=str(self._home),
            )
        if self._sockets is None:
            self._sockets = Path(tempfile.mkdtemp(prefix="holdfast-", dir="/tmp"))
            self.give(self._sockets)

    def give(self, path: Path) -> None:
        """Let the server's user own a file or an empty directory."""
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)

    def write_secret(self, name: str, content: str) -> Path:
        """Write a file in the home that only the server's user can read."""
        path = self.home / name
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(content, encoding="utf-8")
        self.give(path)
        return path

    def run(self, command: Sequence[str]) -> None:
        """Run a program that sets up the data, to its end.

        Raises:
            UnavailableError: it failed or took too long; the message contains the end of its log.
        """
        process = start_server_as(self.account, command, self._new_log(), self.home)
        try:
            status: int | None = process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_group(process, signal.SIGKILL)
        if status != 0:
            raise UnavailableError(
                f"the set-up of the embedded {self._name} server failed: see its log", log=self.log()
            )

    # --- life ---------------------------------------------------------------------------------------------------------
    def start(
        self, command: Sequence[str], is_ready: Callable[[], bool], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start the server and wait until it is ready.

        Raises:
            UnavailableError: the server ended or was not ready in time; the message contains the end of its log.
        """
        self._process = process = start_server_as(self.account, command, self._new_log(), self.home, environment)
        deadline_s = time.monotonic() + self._timeout_s
        try:
            while not is_ready():
                if process.poll() is not None:
                    raise UnavailableError(f"the embedded {self._name} server exited: see its log", log=self.log())
                if time.monotonic() > deadline_s:
                    raise UnavailableError(
                        f"the embedded {self._name} server does not answer: see its log", log=self.log()
                    )
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
        except BaseException:
            self.stop()
            raise

    def _new_log(self) -> Path:
        log = self.home / "server.log"
        log.write_bytes(b"")
        return log

    def log(self) -> str:
        """Return the end of the server's log, without secrets."""
        tail = (self.home / "server.log").read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
        for secret in self._secrets:
            tail = tail.replace(secret, "…")
        return tail

    def kill(self) -> None:
        """Kill the server with all of its processes at once, like a power failure; the data stay for the next start."""
        process, self._process = self._process, None
        if process is not None:
            kill_tree(process)

    def stop(self, first_signal: signal.Signals = signal.SIGTERM) -> None:
        """Stop the server and remove temporary directories. Safe to call twice."""
        process, self._process = self._process, None
        try:
            if process is not None:
                end_group(process, first_signal, _STOP_S)
        finally:
            if self._sockets is not None:
                shutil.rmtree(self._sockets, ignore_errors=True)
                self._sockets = None
            if self._home is not None and self._given_directory is None:
                shutil.rmtree(self._home, ignore_errors=True)
                self._home = None
