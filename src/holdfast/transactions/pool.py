"""Keep a few connections open, and hand each to one caller at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from holdfast.errors import UnavailableError
from holdfast.runtime import Clock
from holdfast.runtime.forks import watch_forks
from holdfast.transactions.seats import Seat, Seats

__all__ = ["Pool", "Pooled"]

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
        self._inherited: list[C] = []
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._idle: list[C] = []
        self._seats = Seats(self._size)
        self._is_closed = False

    def before_fork(self) -> None:
        """Do nothing."""

    def after_fork(self, *, is_child: bool) -> None:
        """Start anew in a child: a thread of the parent may have held the lock."""
        if is_child:
            self._inherited += self._idle  # keep them: closing would log out the parent
            self._reset()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @contextmanager
    def lease(self, timeout_s: float | None = None) -> Iterator[C]:
        """Lend a connection. After the block, an open transaction is ended. Arguments, raises: like `take`."""
        connection = self.take(timeout_s)
        is_over = False
        try:
            yield connection
            is_over = True
        finally:
            self.give(connection, is_clean=is_over)

    def take(self, timeout_s: float | None = None) -> C:
        """Return a connection; the caller gives it back.

        Args:
            timeout_s: how long to wait; None is the pool's limit.

        Raises:
            UnavailableError: no connection was given back in time, or the pool is closed. Nothing happened.
        """
        seat = Seat()
        if not self._seats.take(seat, self._clock, self._timeout_s if timeout_s is None else timeout_s):
            if self._is_closed:
                raise UnavailableError("the store is closed: open it again")
            raise UnavailableError(
                "all connections to the database are busy: allow more, or repeat later", connections=self._size
            )
        try:
            connection = self._idle_one()
            if connection is None:
                connection = self._connect()
            connection.seat = seat
        except BaseException:
            self._seats.leave(seat)
            raise
        return connection

    def _idle_one(self) -> C | None:
        """Take the connection off the list that was used last; close those that were idle for too long."""
        now_s = self._clock.elapsed_s()
        with self._mutex:
            fresh = [one for one in self._idle if now_s - one.used_s <= _IDLE_S]
            expired = [one for one in self._idle if now_s - one.used_s > _IDLE_S]
            self._idle = fresh[:-1]
        for one in expired:
            one.close()
        return fresh[-1] if fresh else None

    def give(self, connection: C, *, is_clean: bool = False) -> None:
        """Take back a connection.

        Args:
            is_clean: whether it is certain that no transaction is open; else one is ended.
        """
        if connection.pid != os.getpid():
            self._inherited.append(connection)  # whatever is sent or closed here, the parent would lose
            return
        seat = connection.seat
        is_kept = False
        try:
            if not is_clean:
                connection.reset()
            if connection.is_open:
                connection.used_s = self._clock.elapsed_s()
                with self._mutex:
                    if not self._is_closed:
                        is_kept = True
                        connection.seat = None
                        self._idle = [*self._idle, connection]
        finally:
            if not is_kept:
                connection.close()
            if seat is not None:
                self._seats.leave(seat)

    def clear(self) -> None:
        """Close the idle connections, because one has shown that the server was away. The pool stays usable."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close idle connections now, and the others when they are given back. Safe to call twice."""
        with self._mutex:
            self._is_closed = True
            idle, self._idle = self._idle, []
        self._seats.close()
        for connection in idle:
            connection.close()
