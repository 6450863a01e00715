"""Interleave the threads of a process call by call, in every order that the scheduler chooses.

A process is a plain function that is rerun from its start (`holdfast_checker.kernel.world`). The process's runner
works on items, one thread for each. An item is rerun in the same way: with the replies that it got before, until its
next call suspends it. The world chooses one of the suspended items (the call ``turn``), makes the call of that item,
and the item continues to its next call. So threads are not actors: they die with their process. But every order of
their calls is explored.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar, cast

from holdfast.errors import HoldfastError
from holdfast.runtime import BackgroundExecutor, InlineExecutor
from holdfast_checker.committers.cluster import CLUSTER
from holdfast_checker.kernel.calls import Call, Reply
from holdfast_checker.kernel.world import Port

T = TypeVar("T")
R = TypeVar("R")


class _Paused(BaseException):
    """Raised if an item needs a reply that it does not have. Not an `Exception`: the item's code cannot catch it."""


@dataclass(slots=True)
class _Thread(Generic[T, R]):
    """An item that a thread works on.

    Attributes:
        call: the item's next call; None if the item has ended.
        at: how many of the item's earlier calls the current run has repeated so far.
    """

    item: T
    replies: list[Reply] = field(default_factory=list)
    call: Call | None = None
    at: int = 0
    results: list[R] = field(default_factory=list)


class ThreadedPort(Port):
    """A process's port, shared with its threads."""

    def __init__(self, port: Port) -> None:
        super().__init__(port.name, 0, lambda index, call: None)
        self._port = port
        self.thread: _Thread[object, object] | None = None

    def call(self, call: Call) -> object:
        thread = self.thread
        if thread is None:
            return self._port.call(call)
        if thread.call is not None or thread.at == len(thread.replies):
            thread.call = thread.call or call
            raise _Paused
        reply = thread.replies[thread.at]
        thread.at += 1
        if reply.error is not None:
            raise copy.copy(reply.error)
        return reply.value

    def token(self) -> str:
        assert self.thread is None, "threads create no ids"
        return self._port.token()


@dataclass(frozen=True, slots=True)
class ScheduledRunner:
    """A runner with several threads, whose calls the world's scheduler interleaves."""

    port: ThreadedPort
    threads: int

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item; after an error, running items finish, and no other item starts."""
        if self.port.thread is not None:  # a runner inside of a thread: one item after the other
            for item in items:
                yield function(item)
            return
        left = iter(items)
        while batch := [_Thread[T, R](item) for item in islice(left, self.threads)]:
            self._run(function, batch)
            for thread in batch:
                yield thread.results[0]

    def background(self) -> BackgroundExecutor:
        return InlineExecutor()

    def _run(self, function: Callable[[T], R], batch: list[_Thread[T, R]]) -> None:
        errors: list[Exception] = []
        for thread in batch:
            self._go_on(function, thread, errors)
        while waiting := [thread for thread in batch if thread.call is not None]:
            turn = 0
            if len(waiting) > 1:
                numbers = tuple(batch.index(thread) for thread in waiting)
                turn = cast("int", self.port.call(Call(CLUSTER, "turn", numbers)))
            thread = waiting[turn]
            assert thread.call is not None
            try:
                thread.replies.append(Reply(self.port.call(thread.call)))
            except HoldfastError as error:
                thread.replies.append(Reply(error=error.with_traceback(None)))
            self._go_on(function, thread, errors)
        if errors:
            raise errors[0]

    def _go_on(self, function: Callable[[T], R], thread: _Thread[T, R], errors: list[Exception]) -> None:
        thread.call, thread.at = None, 0
        self.port.thread = cast("_Thread[object, object]", thread)
        try:
            thread.results.append(function(thread.item))
        except _Paused:
            pass
        except Exception as error:  # noqa: BLE001  # the runner raises it
            errors.append(error)
        finally:
            self.port.thread = None
