"""Threads as a value: run one function over many items with a bounded number in flight."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from holdfast.runtime.background_executor import BackgroundExecutor, InlineExecutor, ThreadExecutor

__all__ = ["Runner", "SerialRunner", "ThreadRunner"]

T = TypeVar("T")
R = TypeVar("R")


class Runner(Protocol):
    """Runs a function over items and yields the results in the order of the items."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item, lazily.

        Guarantee: items are drawn only as results are consumed (bounded memory). The first error ends the run:
        no further item is started, those in flight are waited for, the error is raised. No thread outlives the
        iterator, also when it is abandoned.
        """
        ...

    def background(self) -> BackgroundExecutor:
        """A new executor for work that is pushed as it comes; the caller closes it."""
        ...


@dataclass(frozen=True, slots=True)
class SerialRunner:
    """Everything in the calling thread, one after the other: for tests, simulation and tiny work."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        # A generator, not the builtin map: that one goes on with the next item after an error.
        for item in items:
            yield function(item)

    def background(self) -> BackgroundExecutor:
        return InlineExecutor()


@dataclass(frozen=True, slots=True)
class ThreadRunner:
    """A thread pool per run, closed at its end: long-lived drivers must not collect threads (HADOOP-16570).

    Args:
        threads: how many items may be in flight; twice as many are drawn ahead at most.
        background_threads: threads of a background executor. Few: each waiting call may hold a part of an upload.
    """

    threads: int = 32
    background_threads: int = 4

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        first_error: list[BaseException] = []  # in time, whichever item it belongs to

        def run(item: T) -> R:
            if first_error:  # this item waited in the pool; nobody reads its result any more
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
            # Reached by the end, an error and the closing of an abandoned iterator alike.
            pool.shutdown(wait=True, cancel_futures=True)

    def background(self) -> BackgroundExecutor:
        return ThreadExecutor(self.background_threads)
