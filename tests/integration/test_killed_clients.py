"""Kill clients of a namespace with SIGKILL while they work: nothing acknowledged is lost, and no lock is left.

A new client takes the place of each that was killed. It compares the namespace with what the dead one had noted, so a
lock that was left would stop it, and half an operation would be seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.shared_namespace import SharedNamespace, shared, shared_on

__all__ = ["shared"]

_WORKERS = 3
_SLOW = pytest.mark.slow


class _Client:
    """A place for one worker after the other."""

    def __init__(self, shared: SharedNamespace, folder: Path, number: int) -> None:
        self.stop, self.report = folder / "stop", folder / f"report-{number}"
        self.journal = Path(f"{self.report}.journal")
        arguments = (
            shared.url,
            f"/w{number}",
            str(number),
            str(self.stop),
            str(self.report),
            "locks" if shared.locks else "",
        )
        self.command = [sys.executable, "-m", "tests.integration.namespace_worker", *arguments]
        self.process = subprocess.Popen(self.command)

    def notes(self) -> int:
        """Return how much the workers have noted so far."""
        return self.journal.stat().st_size if self.journal.exists() else 0

    def kill_at_work(self, more_notes: int) -> None:
        """Kill the worker after some more notes, and start another one."""
        before = self.notes()
        wait_until(lambda: self.notes() > before + more_notes or self.process.poll() is not None, "the worker works")
        assert self.process.poll() is None, "the worker has found a wrong state: see its error"
        self.process.kill()
        self.process.wait()
        self.process = subprocess.Popen(self.command)

    def end(self) -> dict[str, dict[str, int]]:
        """Stop the worker; return its report."""
        self.stop.touch()
        assert self.process.wait(PATIENCE_S * 4) == 0, "the worker has found a wrong state: see its error"
        return dict(json.loads(self.report.read_text()))


@pytest.mark.parametrize(
    ("shared", "kills"),
    [
        pytest.param(shared_on("sqlite"), 3, id="sqlite"),
        pytest.param(shared_on("sqlite"), 50, id="sqlite-long", marks=_SLOW),
        pytest.param(shared_on("postgresql"), 50, id="postgresql", marks=_SLOW),
        pytest.param(shared_on("postgresql", locks=True), 50, id="postgresql-pessimistic", marks=_SLOW),
        pytest.param(shared_on("mysql"), 50, id="mysql", marks=_SLOW),
    ],
    indirect=["shared"],
)
def test_killed_clients_lose_nothing_and_leave_no_lock(shared: SharedNamespace, kills: int, tmp_path: Path) -> None:
    clients = [_Client(shared, tmp_path, number) for number in range(_WORKERS)]
    try:
        for number in range(kills):
            clients[number % _WORKERS].kill_at_work(more_notes=number * 997 % 6000)
        found = [client.end() for client in clients]
    finally:
        for client in clients:
            client.process.kill()
            client.process.wait()
    outcomes = sum((Counter(one["outcomes"]) for one in found), Counter[str]())
    assert all(outcomes[one] > 0 for one in ("create", "overwrite", "append", "rename", "move", "delete")), outcomes
    with shared.open() as namespace:
        files = {entry.path for entry in namespace.walk("/") if not entry.is_directory}
        assert files == {path for one in found for path in one["files"]}
    shared.is_whole_after_collection(strays=True)
