"""Let concurrent callers share one run of an expensive function: one of them runs it for all that wait.

A caller may be interrupted at any point, by Ctrl-C for example. What a leader leaves behind then, is given to the
others, so that nobody waits for somebody who has gone.

Source: "group commit" in databases; the leader-follower form in W. N. Scherer et al. and in LevelDB's writer queue.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

from holdfast.errors import HoldfastError, OutcomeUnknownError
from holdfast.runtime import Clock
from holdfast.runtime.forks import Fork, watch_forks

Q = TypeVar("Q")
A = TypeVar("A")
E = TypeVar("E", bound=Exception)

_LONGEST_GATHERING_S = 0.005


class _Entry(Generic[Q, A]):
    """A request, and its caller.

    Attributes:
        wake: the lock on which the caller sleeps; released with the answer, or with the lead.
        batch: what the caller, as a leader, has taken off the queue and not answered yet.
        successor: who gets the lead when the caller leaves.
    """

    __slots__ = ("answer", "batch", "error", "is_done", "request", "successor", "wake")

    def __init__(self, request: Q) -> None:
        self.request = request
        self.answer: A | None = None
        self.error: BaseException | None = None
        self.is_done = False
        self.wake = threading.Lock()
        self.wake.acquire()
        self.batch: Sequence[_Entry[Q, A]] = ()
        self.successor: _Entry[Q, A] | None = None


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
        repeats: whether requests may be run again. If a leader is interrupted, others then take over its batch; if not,
            the callers of the batch get `OutcomeUnknownError`.
        clock: if given, a leader gathers: it waits until as many callers are there as in the last batch, at most as
            long as that took. Else the first caller who comes back from a batch would go alone, and all others would
            have to wait for it: every second batch would be a batch of one.
    """

    def __init__(
        self,
        run: Callable[[list[Q]], Sequence[A]],
        *,
        limit: int,
        take: Callable[[list[Q]], int] = len,
        leaders: int = 1,
        repeats: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._run = run
        self._limit = limit
        self._take = take
        self._leaders = leaders
        self._repeats = repeats
        self._clock = clock
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._queue: list[_Entry[Q, A]] = []
        self._leading: set[_Entry[Q, A]] = set()
        self._gathering: _Entry[Q, A] | None = None
        self._last_size = 1
        self._last_s = 0.0

    def before_fork(self, fork: Fork) -> bool:
        """Do nothing."""
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Start anew in a child: the callers in the parent's threads do not exist there."""
        self._reset()

    def submit(self, request: Q) -> A:
        """Run the function on a batch with this request; return its answer, or raise the error of the run."""
        entry: _Entry[Q, A] = _Entry(request)
        try:
            try:
                self._take_part(entry)
            finally:
                self._leave(entry)
        except BaseException:
            self._leave(entry)  # the first call may have been interrupted
            raise
        if entry.error is not None:
            raise entry.error
        return entry.answer  # type: ignore[return-value]  # set when the request is done

    def _take_part(self, own: _Entry[Q, A]) -> None:
        """Wait for the answer; or lead, until the own request is done."""
        with self._mutex:
            if len(self._leading) < self._leaders:
                self._leading.add(own)
            self._queue.append(own)
            gathering = self._gathering if len(self._queue) >= self._last_size else None
        if gathering is not None:
            _wake(gathering)
        while not own.is_done and own not in self._leading:
            own.wake.acquire()
        while not own.is_done:
            if self._clock is not None and len(self._queue) < self._last_size:
                self._gather(own)
            with self._mutex:
                self._cut(own)
            self._answer(own)

    def _gather(self, own: _Entry[Q, A]) -> None:
        """Wait for the callers of the last batch. Whoever completes them wakes this one."""
        with self._mutex:
            if len(self._queue) >= self._last_size:
                return
            self._gathering = own
        own.wake.acquire(timeout=min(self._last_s, _LONGEST_GATHERING_S))
        self._gathering = None

    def _cut(self, own: _Entry[Q, A]) -> None:
        """Take a batch off the queue: what other leaders will not answer, the oldest first."""
        if self._queue == [own]:
            own.batch, self._queue = self._queue, []
            return
        waiting = list(islice((one for one in self._queue if one is own or one not in self._leading), self._limit))
        batch = waiting[: self._take([one.request for one in waiting])]
        taken = set(map(id, batch))
        rest = [one for one in self._queue if id(one) not in taken]
        own.batch = batch
        self._queue = rest

    def _answer(self, own: _Entry[Q, A]) -> None:
        batch = own.batch
        begun_s = 0.0 if self._clock is None else self._clock.elapsed_s()
        try:
            answers = self._run([one.request for one in batch])
            for one, answer in zip(batch, answers, strict=True):
                one.answer = answer
        except Exception as error:  # noqa: BLE001  # it is raised to each caller
            for one in batch:
                one.error = error if one is own else copy_of(error)
        if self._clock is not None:
            self._last_size, self._last_s = len(batch), self._clock.elapsed_s() - begun_s
        for one in batch:
            one.is_done = True
            if one is not own:
                _wake(one)
        own.batch = ()

    def _leave(self, own: _Entry[Q, A]) -> None:
        """Hand over the lead, and what is not answered. Every step may be repeated if an interrupt comes in between."""
        if own.is_done and own not in self._leading:
            return
        with self._mutex:
            lost = [one for one in own.batch if one is not own and not one.is_done]
            gone = {id(own), *map(id, lost)}
            self._queue = [*(lost if self._repeats else ()), *(one for one in self._queue if id(one) not in gone)]
            for one in own.batch:
                if not self._repeats and not one.is_done:
                    one.error = OutcomeUnknownError("a thread was interrupted during the commit: read before repeating")
                    one.is_done = True
                if one.is_done:
                    _wake(one)
            if self._gathering is own:
                self._gathering = None
            if own in self._leading:
                if own.successor is None:
                    own.successor = next((one for one in self._queue if one not in self._leading), None)
                if own.successor is not None and not own.successor.is_done:
                    self._leading.add(own.successor)
                    _wake(own.successor)
                self._leading.discard(own)
            own.is_done = True
            own.batch = ()


def _wake(entry: _Entry[Q, A]) -> None:
    try:  # noqa: SIM105  # `suppress` takes four times as long, and this runs for each caller of a batch
        entry.wake.release()
    except RuntimeError:  # it was woken already
        pass


def copy_of(error: E) -> E:
    """Return an error for another thread: two threads must not write their tracebacks into one object."""
    if not isinstance(error, HoldfastError):
        return error
    twin = copy.copy(error)
    twin.__cause__ = error.__cause__
    return twin
