"""Run a function over many items concurrently, with a bounded number in flight."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from holdfast.runtime.background_executor import BackgroundExecutor, InlineExecutor, ThreadExecutor
from holdfast.runtime.garbage import is_collecting

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
        started, but nobody waits for items in flight. So leave no iterator in a variable.
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

        def run(item: T) -> R:
            if first_error:  # this item was queued when another failed; its result is not needed
                raise CancelledError
            try:
                return function(item)
            except BaseException as error:
                first_error.append(error)
                raise

        def result(future: Future[R]) -> R:
            future.exception()  # waits
            if first_error:
                raise first_error[0]
            return future.result()

        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="holdfast")
        pending: collections.deque[Future[R]] = collections.deque()
        try:
            for item in items:
                pending.append(pool.submit(run, item))
                if len(pending) >= 2 * self.threads:
                    yield result(pending.popleft())
            while pending:
                yield result(pending.popleft())
        finally:
            # Runs at the end, after an error, and when an abandoned iterator is closed.
            pool.shutdown(wait=not is_collecting(), cancel_futures=True)

    def background(self) -> BackgroundExecutor:
        return ThreadExecutor(self.background_threads)
