"""Threads as a value, the other way round: work that is pushed as it comes, with a bounded amount under way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

__all__ = ["BackgroundExecutor", "InlineExecutor", "ThreadExecutor"]


class BackgroundExecutor(Protocol):
    """Runs submitted calls, perhaps later and elsewhere."""

    def submit(self, work: Callable[[], object]) -> None:
        """Run `work`; blocks while too much is under way. Raises the first error of earlier work."""
        ...

    def drain(self) -> None:
        """Wait until all submitted work has ended. Raises its first error, once."""
        ...

    def close(self) -> None:
        """Wait for what runs, drop what has not started, end the threads. Never raises; safe to call twice."""
        ...


class InlineExecutor:
    """Runs everything at once in the calling thread: for tests and simulation."""

    def submit(self, work: Callable[[], object]) -> None:
        work()

    def drain(self) -> None:
        """Nothing is ever under way."""

    def close(self) -> None:
        """No thread to end."""


class ThreadExecutor:
    """A few threads of its own, started on first use.

    Args:
        threads: calls that run side by side; as many more may wait.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._pending: set[Future[object]] = set()

    def submit(self, work: Callable[[], object]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="holdfast-background")
        self._reap(2 * self._threads - 1)
        self._pending.add(self._pool.submit(work))

    def drain(self) -> None:
        self._reap(0)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._pending.clear()

    def _reap(self, allowed: int) -> None:
        while True:
            ended = {future for future in self._pending if future.done()}
            self._pending -= ended
            for future in ended:
                future.result()
            if len(self._pending) <= allowed:
                return
            wait(self._pending, return_when=FIRST_COMPLETED)
