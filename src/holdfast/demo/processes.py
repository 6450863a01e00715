"""Run drivers as child processes, and kill them together with every process that they started."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from holdfast.demo.task import DriverTask
from holdfast.errors import UnavailableError

_REAP_S = 120.0


class DriverProcess:
    """A Spark driver with its JVM and its Python workers, in one session of processes.

    Guarantee: after `kill`, or at the end of the with-block, none of these processes is left.

    Args:
        task: the task that the driver runs.
        folder: directory for the task's file and the log.
        environment: environment variables of the driver.
    """

    def __init__(self, task: DriverTask, folder: Path, environment: Mapping[str, str]) -> None:
        self._events = Path(task.events)
        self._log = folder / "driver.log"
        self._read_to = 0
        described = folder / "task.json"
        described.write_text(json.dumps(dataclasses.asdict(task)), encoding="utf-8")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "holdfast.demo.driver", str(described)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,  # Ctrl-C reaches only the demo, which then ends the driver
            )

    def __enter__(self) -> DriverProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def running(self) -> bool:
        """Check whether the driver process itself is running."""
        return self._process.poll() is None

    def events(self) -> list[dict[str, object]]:
        """Return the events that the driver has reported since the last call."""
        if not self._events.exists():
            return []
        text = self._events.read_text(encoding="utf-8")
        whole = text.rfind("\n") + 1  # the last line may be incomplete
        fresh, self._read_to = text[self._read_to : whole], max(whole, self._read_to)
        return [json.loads(line) for line in fresh.splitlines()]

    def require_success(self) -> None:
        """Wait for the driver, and raise an error if it failed.

        Raises:
            UnavailableError: the driver failed; the message contains the last line of its log.
        """
        code = self._process.wait()
        if code:
            lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
            raise UnavailableError(
                "the demo's Spark driver failed: run the demo with --keep and see driver.log",
                log=str(self._log),
                last=lines[-1] if lines else "",
            )

    def kill(self) -> Counter[str]:
        """Send SIGKILL to every process of the driver's session at once, like a power failure.

        Returns:
            The number of killed processes by name.
        """
        killed = dict(_session_members(self._process.pid))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the driver and its JVM
        while members := _session_members(self._process.pid):  # repeat: a process may have forked during the search
            killed.update(members)
            for pid, _ in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait(_REAP_S)
        return Counter(killed.values())


def _session_members(session: int) -> list[tuple[int, str]]:
    """List the processes of a session with their names, from /proc; nothing on systems without /proc.

    Spark's Python workers create their own process group, so killing the driver's group is not enough.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process ended during the search
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            state, _, _, its_session = rest.split()[:4]
            if int(its_session) == session and state != "Z":
                found.append((int(entry.name), name))
    return found
