"""Let concurrent callers share one run of an expensive function: one of them runs it for all that wait.

Source: "group commit" in databases; the leader-follower form in W. N. Scherer et al. and in LevelDB's writer queue.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

__all__ = ["Combiner"]

Q = TypeVar("Q")
A = TypeVar("A")


class _Entry(Generic[Q, A]):
    """A request in the queue.

    Attributes:
        leads: whether its caller is, or is about to be, a leader: then no other leader answers the request.
        wake: the lock on which the caller sleeps; released with the answer, or with the lead.
    """

    __slots__ = ("answer", "error", "is_done", "leads", "request", "wake")

    def __init__(self, request: Q) -> None:
        self.request = request
        self.answer: A | None = None
        self.error: BaseException | None = None
        self.is_done = False
        self.leads = False
        self.wake = threading.Lock()


class Combiner(Generic[Q, A]):
    """Runs a function over batches of requests that arrive concurrently.

    A caller that finds nobody at work becomes the leader: it takes all that wait, up to the limit, runs the function
    and wakes the others. Then it hands the lead to the first caller who has come in the meantime. There is no thread of
    its own, and a single caller pays one uncontended lock.

    Args:
        run: called with requests, returns their answers in the same order. If it raises, all callers of the batch get
            the error.
        limit: the size of a batch.
        take: returns how many requests, from the start of the list, may form a batch: at least one.
        leaders: how many batches run at the same time.
    """

    def __init__(
        self,
        run: Callable[[list[Q]], Sequence[A]],
        *,
        limit: int,
        take: Callable[[list[Q]], int] = len,
        leaders: int = 1,
    ) -> None:
        self._run = run
        self._limit = limit
        self._take = take
        self._leaders = leaders
        self._reset()

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[_Entry[Q, A]] = deque()
        self._leading = 0
        self._pid = os.getpid()

    def submit(self, request: Q) -> A:
        """Run the function on a batch with this request; return its answer, or raise the error of the run."""
        if self._pid != os.getpid():
            self._reset()  # after a fork: the threads of the parent do not exist here
        entry: _Entry[Q, A] = _Entry(request)
        with self._mutex:
            self._queue.append(entry)
            if self._leading < self._leaders:
                self._leading += 1
                entry.leads = True
            else:
                entry.wake.acquire()
        if not entry.leads:
            entry.wake.acquire()  # until a leader releases it
        if entry.leads:
            self._lead(entry)
        if entry.error is not None:
            raise entry.error
        return entry.answer  # type: ignore[return-value]  # set when the request is done

    def _lead(self, own: _Entry[Q, A]) -> None:
        """Run batches until the own request is done, then hand over the lead."""
        try:
            while not own.is_done:
                with self._mutex:
                    batch = self._cut(own)
                self._answer(batch, own)
        finally:
            with self._mutex:
                successor = next((entry for entry in self._queue if not entry.leads), None)
                if successor is None:
                    self._leading -= 1
                else:
                    successor.leads = True
            if successor is not None:
                successor.wake.release()

    def _cut(self, own: _Entry[Q, A]) -> list[_Entry[Q, A]]:
        """Take a batch off the queue: what other leaders will not answer, the oldest first."""
        waiting = list(islice((entry for entry in self._queue if entry is own or not entry.leads), self._limit))
        batch = waiting[: self._take([entry.request for entry in waiting])]
        taken = set(map(id, batch))
        for _ in range(len(self._queue)):
            entry = self._queue.popleft()
            if id(entry) not in taken:
                self._queue.append(entry)
        return batch

    def _answer(self, batch: list[_Entry[Q, A]], own: _Entry[Q, A]) -> None:
        try:
            answers = self._run([entry.request for entry in batch])
            for entry, answer in zip(batch, answers, strict=True):
                entry.answer = answer
        except BaseException as error:
            for entry in batch:
                entry.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            for entry in batch:
                entry.is_done = True
                if entry is not own:
                    entry.wake.release()
