"""Keep a few connections open, and hand each to one caller at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from holdfast.errors import UnavailableError
from holdfast.runtime import Clock

__all__ = ["Pool", "Pooled"]

_IDLE_S = 30.0
"""A connection that nobody used for so long is not used again: a server, or something in between, may have ended it."""


class Pooled(Protocol):
    """A connection to a database.

    Attributes:
        used_s: when it was used last, on the pool's monotonic clock.
    """

    used_s: float

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

    Guarantee: a process that was forked opens its own, and leaves those of its parent alone.

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
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._idle: list[C] = []
        self._taken = 0
        self._is_closed = False

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            self._inherited = self._idle  # keep them: closing would log out the parent
            self._reset()  # a thread of the parent may have held the lock

    @contextmanager
    def lease(self, timeout_s: float | None = None) -> Iterator[C]:
        """Lend a connection. After an error, an open transaction is ended. Arguments, raises: like `take`."""
        connection = self.take(timeout_s)
        try:
            yield connection
        except BaseException:
            connection.reset()
            raise
        finally:
            self.give(connection)

    def take(self, timeout_s: float | None = None) -> C:
        """Return a connection; the caller gives it back.

        Args:
            timeout_s: how long to wait; None is the pool's limit.

        Raises:
            UnavailableError: no connection was given back in time, or the pool is closed. Nothing happened.
        """
        self._after_fork()
        deadline_s = self._clock.elapsed_s() + (self._timeout_s if timeout_s is None else timeout_s)
        expired: list[C] = []
        with self._changed:
            while self._taken >= self._size and not self._is_closed:
                if not self._changed.wait(deadline_s - self._clock.elapsed_s()):
                    raise UnavailableError(
                        "all connections to the database are busy: allow more, or repeat later",
                        connections=self._size,
                    )
            if self._is_closed:
                raise UnavailableError("the store is closed: open it again")
            self._taken += 1
            now_s = self._clock.elapsed_s()
            while self._idle and now_s - self._idle[0].used_s > _IDLE_S:
                expired.append(self._idle.pop(0))
            found = self._idle.pop() if self._idle else None
        try:
            for one in expired:
                one.close()
            return found or self._connect()
        except BaseException:
            self.give(None)
            raise

    def give(self, connection: C | None) -> None:
        """Take back a connection that is in no transaction, or the place of one that could not be opened."""
        with self._changed:
            self._taken -= 1
            if connection is not None and connection.is_open and not self._is_closed:
                connection.used_s = self._clock.elapsed_s()
                self._idle.append(connection)
                connection = None
            self._changed.notify()
        if connection is not None:
            connection.close()

    def clear(self) -> None:
        """Close the idle connections, because one has shown that the server was away. The pool stays usable."""
        self._after_fork()
        with self._changed:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close idle connections now, and the others when they are given back. Safe to call twice."""
        self._after_fork()
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for connection in idle:
            connection.close()
