"""Run submitted calls in background threads, with a bounded number in flight."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

from holdfast.runtime.garbage import is_collecting


class BackgroundExecutor(Protocol):
    """Runs submitted calls, possibly later and in other threads."""

    def submit(self, work: Callable[[], object]) -> None:
        """Run `work`, and block while too many calls are in flight.

        Once a call has failed, every `submit` raises the first error, so that a caller cannot overlook it.
        """
        ...

    def drain(self) -> None:
        """Wait until every submitted call has ended. Once a call has failed, every `drain` raises the first error."""
        ...

    def close(self) -> None:
        """Wait for running calls, cancel the others, and end the threads. Never raises; safe to call twice.

        Called by a finalizer in a garbage collection, it does not wait: running calls end later, by themselves.
        """
        ...


class InlineExecutor:
    """Runs each call at once in the calling thread: for tests and simulation."""

    def __init__(self) -> None:
        self._error: Exception | None = None

    def submit(self, work: Callable[[], object]) -> None:
        self.drain()
        try:
            work()
        except Exception as error:
            self._error = error
            raise

    def drain(self) -> None:
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Do nothing: there are no threads to end."""


class ThreadExecutor:
    """Runs calls in its own threads, which start on first use.

    Args:
        threads: how many calls run concurrently; the same number of further calls may wait.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._pending: set[Future[object]] = set()
        self._error: BaseException | None = None

    def submit(self, work: Callable[[], object]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="holdfast-background")
        self._reap(2 * self._threads - 1)
        self._pending.add(self._pool.submit(work))

    def drain(self) -> None:
        wait(self._pending)
        self._reap(0)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=not is_collecting(), cancel_futures=True)
            self._pool = None
        self._pending.clear()

    def _reap(self, allowed: int) -> None:
        while True:
            ended = {future for future in self._pending if future.done()}
            self._pending -= ended
            for future in ended:
                self._error = self._error or future.exception()
            if self._error is not None:
                raise self._error
            if len(self._pending) <= allowed:
                return
            wait(self._pending, return_when=FIRST_COMPLETED)
