"""Keep a few connections open, and hand each to one caller at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.errors import UnavailableError
from holdfast.runtime import Clock
from holdfast.transactions.mysql.connection import Link

__all__ = ["ConnectionPool"]

_IDLE_S = 30.0
"""A connection that nobody used for so long is not used again, since the server will soon end it."""


class ConnectionPool:
    """Connections of one process, opened when they are needed.

    Guarantee: a process that was forked opens its own, and leaves those of its parent alone.

    Args:
        open_link: opens a connection.
        size: how many may be open at the same time.
    """

    def __init__(self, open_link: Callable[[], Link], size: int, clock: Clock) -> None:
        self._open_link = open_link
        self._size = size
        self._clock = clock
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._idle: list[Link] = []
        self._taken = 0
        self._is_closed = False

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            self._inherited = self._idle  # keep them: closing would log out the parent
            self._reset()  # a thread of the parent may have held the lock

    @contextmanager
    def lease(self, timeout_s: float) -> Iterator[Link]:
        """Lend a connection. After an error, an open transaction is rolled back. Raises: like `take`."""
        link = self.take(timeout_s)
        try:
            yield link
        except BaseException:
            link.reset()
            raise
        finally:
            self.give(link)

    def take(self, timeout_s: float) -> Link:
        """Return a connection; the caller gives it back.

        Raises:
            UnavailableError: no connection was given back in time, or the pool is closed.
            pymysql.MySQLError: a new connection could not be opened.
        """
        self._after_fork()
        deadline_s = self._clock.elapsed_s() + timeout_s
        expired: list[Link] = []
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
            link = self._idle.pop() if self._idle else None
        try:
            for one in expired:
                one.close()
            return link or self._open_link()
        except BaseException:
            self.give(None)
            raise

    def give(self, link: Link | None) -> None:
        """Take back a connection that is in no transaction, or the place of one that could not be opened."""
        with self._changed:
            self._taken -= 1
            if link is not None and link.is_open and not self._is_closed:
                link.used_s = self._clock.elapsed_s()
                self._idle.append(link)
                link = None
            self._changed.notify()
        if link is not None:
            link.close()

    def close(self) -> None:
        """Close idle connections now, and the others when they are returned. Safe to call twice."""
        self._after_fork()
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for link in idle:
            link.close()
