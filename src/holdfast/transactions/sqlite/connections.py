"""Keep the connections of one process to an SQLite file: one that writes, and several that read."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from holdfast.errors import NotFoundError, UnavailableError
from holdfast.runtime.forks import watch_forks
from holdfast.transactions.sqlite.ticket_queue import TicketQueue

__all__ = ["Connections"]

_FORK_WAIT_S = 5.0


class Connections:
    """Lends connections.

    Guarantee: no connection is open while the process forks. SQLite keeps notes about its locks in the memory of the
    process, and a child that inherits them believes that it holds locks, which its parent holds. If a connection is
    lent for too long, as in the middle of a walk, the child may not use the file.

    Args:
        path: the file.
        connect: opens a connection.

    Source: the SQLite manual, "How To Corrupt An SQLite Database File", 2.6.
    """

    def __init__(self, path: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = os.path.abspath(path)
        self._connect = connect
        self._is_cut = False
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._lent_to: list[int] = []  # threads
        self._readers: list[sqlite3.Connection] = []
        self._writers: list[sqlite3.Connection] = []  # one, unless somebody writes
        self._file: tuple[int, int] | None = None
        self._queue: TicketQueue | None = None

    def queue(self) -> TicketQueue:
        """Return the queue in which this process waits before it writes."""
        with self._changed:
            self._queue = self._queue or TicketQueue.of(f"{self._path}-queue")
            return self._queue

    def reader(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection. If the block raises, the connection is closed.

        Raises:
            NotFoundError: the file was removed or replaced.
            UnavailableError: the process was forked in the middle of something.
        """
        return self._lent(lambda: self._readers)

    def writer(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend the connection that writes; for errors, see `reader`. The callers take turns: see `queue`."""
        return self._lent(lambda: self._writers)

    @contextmanager
    def _lent(self, idle: Callable[[], list[sqlite3.Connection]]) -> Iterator[sqlite3.Connection]:
        if self._is_cut:
            raise UnavailableError(
                "this process was forked while its parent used the database: use the namespace in a new process",
                path=self._path,
            )
        borrower = threading.get_ident()
        with self._changed:
            home = idle()
            self._lent_to.append(borrower)
            connection = home.pop() if home else None
        is_good = False
        try:
            self._check_file()
            connection = connection or self._connect()
            yield connection
            is_good = True
        finally:
            self._take_back(connection, home if is_good else None, idle)
            with self._changed:
                self._lent_to.remove(borrower)
                self._changed.notify_all()

    def _take_back(
        self,
        connection: sqlite3.Connection | None,
        home: list[sqlite3.Connection] | None,
        idle: Callable[[], list[sqlite3.Connection]],
    ) -> None:
        """Keep a connection for the next caller, unless it is broken, or `close` was called meanwhile."""
        with self._changed:
            if connection is not None and home is idle():
                home.append(connection)
                return
        if connection is not None:
            connection.close()

    def _check_file(self) -> None:
        """Check that the path still leads to the file that is open: commits to a removed file would be lost."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            status = None
        found = None if status is None else (status.st_dev, status.st_ino)
        if found is None or found != (self._file or found):
            raise NotFoundError(
                "the database file was removed or replaced: restore it, or open the namespace again", path=self._path
            )
        self._file = found

    def close(self) -> None:
        """Close all connections; those that are lent are closed when they come back. May be called twice."""
        with self._changed:
            idle = [*self._readers, *self._writers]
            self._readers, self._writers = [], []
        for connection in idle:
            connection.close()

    def before_fork(self) -> None:
        """Close all connections, and let nobody open one until the fork is done."""
        self._changed.acquire()
        this = threading.get_ident()
        self._changed.wait_for(lambda: not self._lent_to or this in self._lent_to, _FORK_WAIT_S)
        for idle in (self._readers, self._writers):
            while idle:
                with suppress(sqlite3.Error):
                    idle.pop().close()

    def after_fork(self, *, is_child: bool) -> None:
        """Go on in the parent; start anew in the child."""
        if is_child:
            self._is_cut = self._is_cut or bool(self._lent_to)
            self._reset()
        else:
            self._changed.release()
