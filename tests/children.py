"""Run functions in forked child processes, which are cheap: nothing has to be imported again."""

from __future__ import annotations

import os
import pickle
import select
import signal
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from tests.patience import PATIENCE_S

__all__ = ["Child", "open_files", "run_in_children"]

T = TypeVar("T")


class Child(Generic[T]):
    """A child process that runs a function. It never returns to the test; `result` waits for it.

    Args:
        work: its result must be picklable.
        waits: whether the child waits for `go` before it begins.
    """

    def __init__(self, work: Callable[[], T], *, waits: bool = False) -> None:
        self._results, results = os.pipe()
        go, self._go = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forks in processes with threads are the subject here
            self.pid = os.fork()
        if self.pid == 0:
            self._run(work, results, go if waits else None)
        os.close(results)
        os.close(go)
        self._is_over = False

    def _run(self, work: Callable[[], T], results: int, go: int | None) -> None:
        status = 1
        try:
            os.close(self._go)
            if go is not None:
                os.read(go, 1)
            try:
                found: tuple[str, object] = ("returned", work())
            except Exception:  # noqa: BLE001  # the parent raises it
                found = ("raised", traceback.format_exc())
            with os.fdopen(results, "wb") as stream:
                pickle.dump(found, stream)
            status = 0
        finally:
            os._exit(status)

    def go(self) -> None:
        """Let a waiting child begin."""
        os.write(self._go, b"!")
        os.close(self._go)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the child."""
        os.kill(self.pid, number)

    def result(self) -> T:
        """Wait until the child ends; return its result, or fail if it died or hangs."""
        data, status = self.wait()
        assert data, f"the child died with status {status}"
        kind, value = pickle.loads(data)
        assert kind == "returned", value
        result: T = value
        return result

    def wait(self) -> tuple[bytes, int]:
        """Wait until the child ends; return its pickled result, if any, and its exit status (negative: a signal)."""
        found = bytearray()
        while True:
            ready, _, _ = select.select([self._results], [], [], PATIENCE_S)
            if not ready:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError("a child process hangs")
            piece = os.read(self._results, 1 << 20)
            if not piece:
                break
            found += piece
        os.close(self._results)
        return bytes(found), os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def run_in_children(count: int, work: Callable[[int], T]) -> list[T]:
    """Run a function in child processes that begin at the same time; return their results."""
    children: list[Child[Any]] = []
    for number in range(count):
        children.append(Child(lambda number=number: work(number), waits=True))  # type: ignore[misc]  # bound now
    for child in children:
        child.go()
    return [child.result() for child in children]


def open_files(part: str) -> list[str]:
    """Return the files that this process has opened, and whose path contains a text. Linux only."""
    links = Path("/proc/self/fd").iterdir()
    return [path for link in links if part in (path := str(link.resolve()))]
