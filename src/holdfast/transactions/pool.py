"""Lend a limited number of connections to the callers of one process, safely under Ctrl-C and fork.

An interrupt, by Ctrl-C for example, is an exception that the handler of a signal raises between any two instructions of
the main thread. It may come after a lock was acquired and before the block begins that would release it; in
`threading.Condition`, even inside a ``with`` statement. So here a place is held by an object, a `SemaphorePermit`, and
is free when that object does not exist anymore. The short sections of this module are guarded by a lock whose ``with``
statement an interrupt cannot cut in two; what gives something back may be called again, and is called twice.

A collection of garbage may end a forgotten generator, and so give back its permit, in the middle of such a section of
the same thread. So the thread that holds the lock may take it again. What the inner section did, the outer one may
undo: a permit that is in line again is of no effect, because its holder is gone.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from holdfast.errors import UnavailableError
from holdfast.runtime import Clock
from holdfast.runtime.process import ForkAwareObject, keep_inherited_connections_alive

_LONGEST_NAP_S = 0.05
"""A waiting caller looks again after so long: nothing wakes it when the caller before it was interrupted."""

_IDLE_S = 30.0
"""A connection that was idle for so long is not used again: a server, or something in between, may have ended it."""


class SemaphorePermit:
    """A permit of a `FairSemaphore`, or a place in its queue. Dropping the last reference to it releases it."""

    __slots__ = ("__weakref__", "wake")

    def __init__(self) -> None:
        self.wake = threading.Lock()
        self.wake.acquire()


class FairSemaphore(ForkAwareObject):
    """A semaphore that lets `count` callers work at the same time, first come, first served.

    After a fork, the child starts with all permits free.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.is_closed = False
        super().__init__()

    def _renew(self) -> None:
        self._mutex = threading.RLock()
        self._line: list[weakref.ref[SemaphorePermit]] = []  # the first ones have their permits

    @contextmanager
    def hold(self, clock: Clock, timeout_s: float) -> Iterator[bool]:
        """Hold a permit in a ``with`` block. Yield whether one was free in time; False also if `is_closed` is set."""
        permit = SemaphorePermit()
        try:
            try:
                yield self._wait_for_permit(permit, clock, timeout_s)
            finally:
                self._release_place(permit)
        except BaseException:
            self._release_place(permit)  # the first call may have been interrupted
            raise

    def count_holders(self) -> int:
        """Return how many callers hold a permit."""
        return min(self._count, len(self._list_referenced_permits()))

    def _wait_for_permit(self, permit: SemaphorePermit, clock: Clock, timeout_s: float) -> bool:
        """Wait in line for a permit."""
        with self._mutex:
            self._line = [*map(weakref.ref, self._list_referenced_permits()), weakref.ref(permit)]
        deadline_s = clock.elapsed_s() + timeout_s
        while not self.is_closed:
            with self._mutex:
                if permit in self._list_referenced_permits()[: self._count]:
                    return True
            left_s = deadline_s - clock.elapsed_s()
            if left_s <= 0:
                return False
            permit.wake.acquire(timeout=min(left_s, _LONGEST_NAP_S))
        return False

    def _list_referenced_permits(self) -> list[SemaphorePermit]:
        return [found for one in self._line if (found := one()) is not None]

    def _release_place(self, permit: SemaphorePermit) -> None:
        """Leave the line, and wake the next caller. May be called again."""
        with self._mutex:
            alive = [one for one in self._list_referenced_permits() if one is not permit]
            self._line = [weakref.ref(one) for one in alive]
            if len(alive) >= self._count:
                with suppress(RuntimeError):  # it was woken already
                    alive[self._count - 1].wake.release()


class PooledConnection(Protocol):
    """A connection to a database that a `Pool` can lend."""

    @property
    def is_open(self) -> bool:
        """Return whether the connection may be used again."""
        ...

    def reset(self) -> None:
        """Roll back a transaction that is still open, or close the connection. Never raises."""
        ...

    def close(self) -> None:
        """Close the connection. Never raises; safe to call twice."""
        ...


C = TypeVar("C", bound=PooledConnection)


class Pool(ForkAwareObject, Generic[C]):
    """A pool of the connections of one process, which are opened when they are needed.

    Guarantee: a forked child opens its own connections, and never touches its parent's, even one that was lent during
    the fork. An interrupt at any point loses at most the connection that was being lent or given back.

    Args:
        connect: opens a connection; may raise any error.
        size: how many connections may be open at the same time.
        timeout_s: how many seconds a caller waits for a connection.
    """

    def __init__(self, connect: Callable[[], C], size: int, clock: Clock, timeout_s: float = 60.0) -> None:
        self._connect = connect
        self._size = size
        self._clock = clock
        self._timeout_s = timeout_s
        self._permits = FairSemaphore(size)
        self._idle: deque[tuple[float, C]] = deque()  # when it was used last, the latest at the right end
        super().__init__()

    def _renew(self) -> None:
        keep_inherited_connections_alive(*self._idle)
        self._idle = deque()

    @property
    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        return self._permits.is_closed

    @contextmanager
    def lease(self, timeout_s: float | None = None) -> Iterator[C]:
        """Lend a connection to a ``with`` block. An open transaction is rolled back if the block raises.

        Args:
            timeout_s: how many seconds to wait for one; None for the pool's limit.

        Raises:
            UnavailableError: no connection was given back in time, or the pool is closed. Nothing happened.
        """
        lent: list[C] = []
        pid = os.getpid()
        is_over = False
        wait_s = self._timeout_s if timeout_s is None else timeout_s
        with self._permits.hold(self._clock, wait_s) as is_held:
            if self.is_closed:
                raise UnavailableError("the database is closed: open it again")
            if not is_held:
                raise UnavailableError(
                    "all connections to the database are busy: allow more, or repeat later", connections=self._size
                )
            try:
                try:
                    self._take_idle_connection(lent)
                    if not lent:
                        lent.append(self._connect())
                    yield lent[0]
                    is_over = True
                finally:
                    self._give_back(lent, pid, is_clean=is_over)
            except BaseException:
                self._give_back(lent, pid, is_clean=False)  # the first call may have been interrupted
                raise

    def _take_idle_connection(self, lent: list[C]) -> None:
        """Take the connection that was used last; close those that were idle for too long."""
        oldest_s = self._clock.elapsed_s() - _IDLE_S
        with suppress(IndexError):
            while self._idle[0][0] < oldest_s:
                self._idle.popleft()[1].close()
            while not lent:
                lent.append(self._idle.pop()[1])
                if not lent[0].is_open:  # an interrupt may have closed it when it was given back
                    lent.pop()

    def _give_back(self, lent: list[C], pid: int, *, is_clean: bool) -> None:
        """Keep the connection for others, unless it is broken. May be called again."""
        if pid != os.getpid():
            keep_inherited_connections_alive(*lent)
            lent.clear()
        try:
            if lent and not is_clean:
                lent[0].reset()
            if lent and lent[0].is_open and not self.is_closed:
                self._idle.append((self._clock.elapsed_s(), lent.pop()))
        finally:
            while lent:
                lent.pop().close()
            if self.is_closed:
                self.clear()

    def clear(self) -> None:
        """Close the idle connections, after one of them has lost the server. The pool stays usable."""
        with suppress(IndexError):
            while True:
                self._idle.pop()[1].close()

    def close(self) -> None:
        """Close idle connections now, and the others when they are given back. Safe to call twice."""
        self._permits.is_closed = True
        self.clear()
