"""Carry out equal requests of one moment together: they share a thread, and a read of the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from holdfast.runtime import LoopThreads

T = TypeVar("T")
R = TypeVar("R")

_MOST = 64
_AT_ONCE = 2
"""How many batches are carried out at the same time: meanwhile, requests gather for the next one."""


class Batches(Generic[T, R]):
    """Collects what is asked in the loop, and answers it in batches. Under load, batches grow by themselves.

    Args:
        answer: answers a batch, in a thread: with the result or the error of each. If it raises, each is asked again,
            alone.
    """

    def __init__(self, threads: LoopThreads, answer: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._threads = threads
        self._answer = answer
        self._waiting: list[tuple[asyncio.Future[R], T]] = []
        self._running = 0
        self._will_start = False

    def ask(self, asked: T) -> asyncio.Future[R]:
        """Return the future of an answer; call this in the loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append((future, asked))
        if not self._will_start and self._running < _AT_ONCE:
            self._will_start = True
            loop.call_soon(self._start)
        return future

    def _start(self) -> None:
        self._will_start = False
        batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        if batch:
            self._carry_out(batch)

    def _carry_out(self, batch: Sequence[tuple[asyncio.Future[R], T]]) -> None:
        self._running += 1
        running = self._threads.run(lambda: self._answer([asked for _, asked in batch]))
        running.add_done_callback(lambda done: self._finish(batch, done))

    def _finish(
        self, batch: Sequence[tuple[asyncio.Future[R], T]], done: asyncio.Future[Sequence[R | Exception]]
    ) -> None:
        self._running -= 1
        error = done.exception()
        if error is not None and len(batch) > 1:  # an unexpected one: let it be that of one request only
            for one in batch:
                self._carry_out([one])
            return
        found: Sequence[R | BaseException] = [error] * len(batch) if error is not None else done.result()
        for (future, _), answer in zip(batch, found, strict=True):
            if future.done():  # cancelled
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        if self._waiting and self._running < _AT_ONCE:
            self._start()
