"""The threads of a process's runner: what runs side by side there is interleaved call by call, as the scheduler likes.

A process is a plain function that is run again and again (`holdfast.checker.kernel.process`); so is each item that its
runner works on: it is run from its start over the replies that it had, and left at its next call. Of the items that
wait with a call the world chooses one (the call ``turn``), that call is made, and the item goes on to its next one. So
threads are no actors: they die with their process. But all the orders of their calls are gone through.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar, cast

from holdfast.checker.committers.cluster import CLUSTER
from holdfast.checker.kernel.calls import Call, Reply
from holdfast.checker.kernel.process import Port
from holdfast.errors import HoldfastError
from holdfast.runtime import BackgroundExecutor, InlineExecutor

__all__ = ["ScheduledRunner", "ThreadedPort"]

T = TypeVar("T")
R = TypeVar("R")


class _Paused(BaseException):
    """The item has come to a call that it has no reply to. No `Exception`: nothing in it may run on."""


@dataclass(slots=True)
class _Thread(Generic[T, R]):
    """An item that a thread works on.

    Attributes:
        call: what it does next; None when it is over.
        at: how many of its calls were made again in the present run.
    """

    item: T
    replies: list[Reply] = field(default_factory=list)
    call: Call | None = None
    at: int = 0
    results: list[R] = field(default_factory=list)


class ThreadedPort(Port):
    """A process's door to the world, through which its threads go, too."""

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
        assert self.thread is None, "what threads make has no names of its own"
        return self._port.token()


@dataclass(frozen=True, slots=True)
class ScheduledRunner:
    """A runner with so many threads, whose calls are interleaved as the world's scheduler likes."""

    port: ThreadedPort
    threads: int

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item; after an error those under way go on, and no other starts."""
        if self.port.thread is not None:  # a thread's own runner: one after the other
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
        except Exception as error:  # noqa: BLE001  # whatever it is, the runner raises it
            errors.append(error)
        finally:
            self.port.thread = None
