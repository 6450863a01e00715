"""Threads as a value: run one function over many items with a bounded number in flight."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

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


@dataclass(frozen=True, slots=True)
class SerialRunner:
    """Everything in the calling thread, one after the other: for tests, simulation and tiny work."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return map(function, items)


@dataclass(frozen=True, slots=True)
class ThreadRunner:
    """A thread pool per run, closed at its end: long-lived drivers must not collect threads (HADOOP-16570).

    Args:
        threads: how many items may be in flight; twice as many are drawn ahead at most.
    """

    threads: int = 32

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="holdfast")
        pending: collections.deque[Future[R]] = collections.deque()
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) >= 2 * self.threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
