"""Run calls in threads: over many items, in the background, or again and again; with a bounded number in flight."""

from __future__ import annotations

import asyncio
import collections
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from holdfast.runtime.process import is_in_garbage_collection


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
        self._wait_for_pending_calls(2 * self._threads - 1)
        self._pending.add(self._pool.submit(work))

    def drain(self) -> None:
        wait(self._pending)
        self._wait_for_pending_calls(0)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=not is_in_garbage_collection(), cancel_futures=True)
            self._pool = None
        self._pending.clear()

    def _wait_for_pending_calls(self, allowed: int) -> None:
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


T = TypeVar("T")
R = TypeVar("R")


class Runner(Protocol):
    """Runs a function over items, and yields the results in the order of the items."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item, lazily.

        Guarantee: items are taken only as results are consumed, so memory is bounded. The first error ends the run: no
        further item is started, items in flight are waited for, and the error is raised. No thread outlives the
        iterator, even if the iterator is abandoned, as by an error in the body of a ``for`` statement. One exception:
        if the garbage collector has to find the iterator, because a reference cycle contains it, no further item is
        started, but items in flight are not waited for. So leave no iterator in a variable.
        """
        ...

    def background(self) -> BackgroundExecutor:
        """Return a new executor for background calls; the caller closes it."""
        ...


@dataclass(frozen=True, slots=True)
class SerialRunner:
    """Runs items one after another in the calling thread: for tests, simulations and small amounts of work."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        # Not the built-in map: after an error, it would continue with the next item.
        for item in items:
            yield function(item)

    def background(self) -> BackgroundExecutor:
        return InlineExecutor()


@dataclass(frozen=True, slots=True)
class ThreadRunner:
    """Runs items in a new thread pool each time, so that long-lived drivers do not accumulate threads (HADOOP-16570).

    Args:
        threads: how many items run at the same time; at most twice as many are taken from the iterable in advance.
        background_threads: number of threads of a background executor; small, because each waiting call may hold an
            upload part in memory.
    """

    threads: int = 32
    background_threads: int = 4

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        first_error: list[BaseException] = []  # the first in time, of any item

        def run_item(item: T) -> R:
            if first_error:  # this item was queued when another failed; its result is not needed
                raise CancelledError
            try:
                return function(item)
            except BaseException as error:
                first_error.append(error)
                raise

        def await_result(future: Future[R]) -> R:
            future.exception()  # waits
            if first_error:
                raise first_error[0]
            return future.result()

        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="holdfast")
        pending: collections.deque[Future[R]] = collections.deque()
        try:
            for item in items:
                pending.append(pool.submit(run_item, item))
                if len(pending) >= 2 * self.threads:
                    yield await_result(pending.popleft())
            while pending:
                yield await_result(pending.popleft())
        finally:
            # Runs at the end, after an error, and when an abandoned iterator is closed.
            pool.shutdown(wait=not is_in_garbage_collection(), cancel_futures=True)

    def background(self) -> BackgroundExecutor:
        return ThreadExecutor(self.background_threads)


_SHARE = 8
_MORE_S = 0.001

_Call = tuple["asyncio.Future[Any]", Callable[[], Any]]


class LoopThreads:
    """Threads that carry out calls for the loop of `asyncio` in whose thread `run` is called.

    Like ``run_in_executor``, but cheaper for short calls: each thread that wakes, and each time that the loop wakes,
    costs a switch. So a few threads wake for the calls of one turn of the loop, and take one after the other; if calls
    still wait a millisecond later, because those before them take long, more threads wake.

    Args:
        threads: how many calls run at the same time; others wait.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._calls: collections.deque[_Call] = collections.deque()
        self._results: collections.deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = collections.deque()
        self._idle: list[threading.Lock] = []  # each held by its thread, and released to wake it
        self._is_closed = self._wakes_soon = self._wakes_later = self._is_told = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [
            threading.Thread(target=self._work, name=f"holdfast-{name}-{number}", daemon=True)
            for number in range(threads)
        ]

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Return the future of what a call returns or raises; call this in the loop."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            for thread in self._threads:
                thread.start()
        future: asyncio.Future[T] = self._loop.create_future()
        self._calls.append((future, call))
        if not self._wakes_soon:
            self._wakes_soon = True
            self._loop.call_soon(self._wake_for_new_calls)
        return future

    def _wake_for_new_calls(self) -> None:
        self._wakes_soon = False
        self._wake()

    def _wake_for_waiting_calls(self) -> None:
        self._wakes_later = False
        self._wake()

    def _wake(self) -> None:
        for _ in range(-(-len(self._calls) // _SHARE)):
            if not self._idle:
                return
            self._idle.pop().release()
        if self._calls and not self._wakes_later and self._loop is not None:
            self._wakes_later = True
            self._loop.call_later(_MORE_S, self._wake_for_waiting_calls)

    # --- in the threads -----------------------------------------------------------------------------------------------
    def _work(self) -> None:
        own = threading.Lock()
        own.acquire()
        while True:
            try:
                future, call = self._calls.popleft()
            except IndexError:
                if self._is_closed:
                    return
                self._sleep(own)
                continue
            try:
                self._tell(future, call(), None)
            except BaseException as error:  # noqa: BLE001  # `run` raises it
                self._tell(future, None, error)
            del future, call  # a thread that sleeps must not keep what it has used

    def _sleep(self, own: threading.Lock) -> None:
        self._idle.append(own)
        if self._calls or self._is_closed:  # since the last look: nobody may wake this thread for that
            try:
                self._idle.remove(own)
            except ValueError:
                pass  # it is being woken
            else:
                return
        own.acquire()

    def _tell(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        self._results.append((future, value, error))
        if not self._is_told and self._loop is not None:
            self._is_told = True
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._take_results)

    # --- in the loop --------------------------------------------------------------------------------------------------
    def _take_results(self) -> None:
        self._is_told = False  # first: whoever adds a result from now on tells again
        while self._results:
            future, value, error = self._results.popleft()
            if future.done():  # cancelled
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

    def close(self) -> None:
        """Let the calls that have been accepted end, and then the threads."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().release()
        for thread in self._threads if self._loop is not None else ():
            thread.join(_JOIN_S)


_JOIN_S = 30.0


Repeat = Callable[[Callable[[], object], float], AbstractContextManager[None]]
"""Calls a function every so many seconds while a block runs. The function may not raise."""


@contextmanager
def repeat_in_thread(work: Callable[[], object], interval_s: float) -> Iterator[None]:
    """Call `work` every `interval_s` seconds during a ``with`` block, in a thread of its own. `work` must not raise."""
    is_over = threading.Event()

    def call_until_over() -> None:
        while not is_over.wait(interval_s):
            work()

    thread = threading.Thread(target=call_until_over, name="holdfast-periodic", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_JOIN_S)
