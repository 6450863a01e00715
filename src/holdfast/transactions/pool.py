"""Keep a bounded number of connections, made after a fork and thrown away when they break."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from holdfast.errors import UnavailableError

__all__ = ["Pool"]

C = TypeVar("C")


class Pool(Generic[C]):
    """Connections of one process.

    Guarantee: at most `size` connections are open, and no connection is used by two threads or after a fork. The
    connections of a parent process are left alone: closing them here would end the parent's sessions.

    Args:
        connect: opens a connection.
        close: closes one; must not raise.
        size: the most connections that are open at the same time; further callers wait.
        timeout_s: how long they wait.
    """

    def __init__(
        self, connect: Callable[[], C], close: Callable[[C], object], *, size: int, timeout_s: float = 60.0
    ) -> None:
        self._connect = connect
        self._close = close
        self._size = size
        self._timeout_s = timeout_s
        self._inherited: list[C] = []
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(self._size)
        self._idle: list[C] = []
        self._generation = 0

    @contextmanager
    def connection(self) -> Iterator[C]:
        """Lend a connection. If the block raises, the connection is closed instead of lent again.

        Raises:
            UnavailableError: all connections were in use for too long; nothing happened.
        """
        if self._pid != os.getpid():
            self._inherited += self._idle
            self._reset()
        slots, generation = self._slots, self._generation
        if not slots.acquire(timeout=self._timeout_s):
            raise UnavailableError(
                "all connections to the database are in use for too long: repeat later", connections=self._size
            )
        try:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            connection = self._connect() if found is None else found
            try:
                yield connection
            except BaseException:
                self._close(connection)
                raise
            with self._lock:
                keeps = generation == self._generation
                if keeps:
                    self._idle.append(connection)
            if not keeps:
                self._close(connection)
        finally:
            slots.release()

    def clear(self) -> None:
        """Close the idle connections, and those in use when they come back. The pool stays usable."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._generation += 1
            idle, self._idle = self._idle, []
        for connection in idle:
            self._close(connection)
