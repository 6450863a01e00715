"""Keep a few connections open, and hand each to one caller at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from holdfast.errors import UnavailableError
from holdfast.runtime import Clock
from holdfast.runtime.forks import Fork, keep_inherited, watch_forks
from holdfast.transactions.seats import Seat, Seats

_IDLE_S = 30.0
"""A connection that nobody used for so long is not used again: a server, or something in between, may have ended it."""


class Pooled(Protocol):
    """A connection to a database.

    Attributes:
        used_s: when it was used last, on the pool's monotonic clock.
        seat: its place in the pool while it is lent.
        pid: the process that opened it.
    """

    used_s: float
    seat: Seat | None
    pid: int

    @property
    def is_open(self) -> bool:
        """Whether it may be used again."""
        ...

    def reset(self) -> None:
        """End a transaction that is still open, or close the connection. Never raises."""
        ...

    def close(self) -> None:
        """Close the connection. Never raises; safe to call twice."""
        ...


C = TypeVar("C", bound=Pooled)


class Pool(Generic[C]):
    """Connections of one process, opened when they are needed.

    Guarantee: a process that was forked opens its own, and leaves those of its parent alone, even one that was lent
    when the fork came. An interrupt, wherever it strikes, costs at most the connection that was being handed over.

    Args:
        connect: opens a connection; may raise any error.
        size: how many may be open at the same time.
        timeout_s: how long a caller waits for one.
    """

    def __init__(self, connect: Callable[[], C], size: int, clock: Clock, timeout_s: float = 60.0) -> None:
        self._connect = connect
        self._size = size
        self._clock = clock
        self._timeout_s = timeout_s
        self._is_closed = False
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._idle: deque[C] = deque()  # the one that was used last is at its right end
        self._seats = Seats(self._size)

    def before_fork(self, fork: Fork) -> bool:
        """Do nothing."""
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Start anew in a child."""
        keep_inherited(*self._idle)
        self._reset()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @contextmanager
    def lease(self, timeout_s: float | None = None) -> Iterator[C]:
        """Lend a connection. If the block fails, an open transaction is ended.

        Args:
            timeout_s: how long to wait for one; None is the pool's limit.

        Raises:
            UnavailableError: no connection was given back in time, or the pool is closed. Nothing happened.
        """
        connection: C | None = None
        seat: Seat | None = None
        is_over = False
        try:
            try:
                connection = self._take(self._timeout_s if timeout_s is None else timeout_s)
                seat = connection.seat
                yield connection
                is_over = True
            finally:
                if connection is not None:
                    self._give(connection, is_clean=is_over)
        except BaseException:
            if connection is not None and connection.seat is seat is not None:
                self._give(connection, is_clean=False)  # the first call was interrupted
            raise

    def _take(self, timeout_s: float) -> C:
        seat = Seat()
        try:
            if not self._seats.take(seat, self._clock, timeout_s):
                if self._is_closed:
                    raise UnavailableError("the database is closed: open it again")
                raise UnavailableError(
                    "all connections to the database are busy: allow more, or repeat later", connections=self._size
                )
            connection = self._idle_one()
            if connection is None:
                connection = self._connect()
            connection.seat = seat
            return connection
        except BaseException:
            self._seats.leave(seat)
            raise

    def _idle_one(self) -> C | None:
        """Take the connection that was used last; close those that were idle for too long."""
        oldest_s = self._clock.elapsed_s() - _IDLE_S
        with suppress(IndexError):
            while self._idle[0].used_s < oldest_s:
                self._idle.popleft().close()
            while True:
                found = self._idle.pop()
                # An interrupt may have closed it when it was given back, or have ended the hook of a fork.
                if found.is_open and found.pid == os.getpid():
                    return found
        return None

    def _give(self, connection: C, *, is_clean: bool) -> None:
        if connection.pid != os.getpid():
            keep_inherited(connection)
            return
        seat = connection.seat
        try:
            try:
                self._keep_or_close(connection, is_clean)
            finally:
                if seat is not None:
                    self._seats.leave(seat)
                if self._is_closed:
                    self.clear()
        except BaseException:
            if seat is not None:
                self._seats.leave(seat)  # the first call may have been interrupted
            raise

    def _keep_or_close(self, connection: C, is_clean: bool) -> None:
        is_kept = False
        try:
            if not is_clean:
                connection.reset()
            if connection.is_open:
                connection.used_s = self._clock.elapsed_s()
                connection.seat = None
                is_kept = True  # from now on, it may be somebody else's
                self._idle.append(connection)
        finally:
            if not is_kept:
                connection.close()

    def clear(self) -> None:
        """Close the idle connections, because one has shown that the server was away. The pool stays usable."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        """Close idle connections now, and the others when they are given back. Safe to call twice."""
        self._is_closed = True
        self._seats.close()
        self.clear()
