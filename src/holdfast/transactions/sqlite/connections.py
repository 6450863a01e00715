"""Keep the connections of one process to an SQLite file: one that writes, and several that read."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from holdfast.errors import NotFoundError, UnavailableError
from holdfast.runtime import Clock
from holdfast.runtime.process import ForkInProgress, keep_inherited_connections_alive, register_fork_listener
from holdfast.transactions.sqlite.file import file_error
from holdfast.transactions.sqlite.ticket_queue import TicketQueue

_FORK_WAIT_S = 5.0
"""How long a fork waits for the threads that use a connection."""

_FORK_STEP_S = 0.001
_LONGEST_FORK_S = 60.0
"""How long others wait for a fork. It may have to wait for several databases."""

_every: weakref.WeakValueDictionary[int, SqliteConnectionPool] = weakref.WeakValueDictionary()
_cut: set[tuple[int, int]] = set()
"""The files, as device and inode, that this process may not use, because its parent used them at the fork."""


class _LoanMarker:
    """A connection is lent, as long as this object exists: a forgotten walk gives it back when it is collected."""

    __slots__ = ("__weakref__", "pid", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.pid = os.getpid()


class SqliteConnectionPool:
    """Lends this process's connections to an SQLite file: one that writes, and several that read.

    Guarantee: no connection is open while the process forks. SQLite records its locks in the memory of the process, so
    a child that inherited a connection would believe that it holds its parent's locks. If a connection is lent for too
    long, as during a scan, the process forks anyway, and the child cannot use the file, through any object.

    Args:
        path: the file.
        connect: opens a connection.
        clock: for the wait before a fork.

    Source: the SQLite manual, "How To Corrupt An SQLite Database File", 2.6.
    """

    def __init__(self, path: str, connect: Callable[[], sqlite3.Connection], clock: Clock) -> None:
        self._path = os.path.abspath(path)
        self._connect = connect
        self._clock = clock
        self._is_closed = False
        self._born_under: list[ForkInProgress] = []
        self._reset()
        _every[id(self)] = self
        with self._mutex:
            self._born_under = register_fork_listener(self)  # until these are over, no connection is opened
            self._forks += self._born_under

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._loans: weakref.WeakValueDictionary[int, _LoanMarker] = weakref.WeakValueDictionary()
        self._readers: list[sqlite3.Connection] = []
        self._writers: list[sqlite3.Connection] = []  # one, unless it is in use
        self._file: tuple[int, int] | None = None
        self._queue: TicketQueue | None = None
        self._forks: list[ForkInProgress] = []  # the latest

    def queue(self) -> TicketQueue:
        """Return the queue in which this process waits for its turn to write."""
        queue = self._queue = self._queue or TicketQueue.of(f"{self._path}-queue")
        return queue

    def reader(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection for reads to a ``with`` block; it is closed if the block raises.

        Raises:
            NotFoundError: the file was removed or replaced.
            UnavailableError: a fork is in progress, or the parent used the file during the fork, or `close` was called.
        """
        return self._lend_connection(lambda: self._readers)

    def writer(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend the connection that writes to a ``with`` block. The caller must hold its turn in `queue`.

        Raises: see `reader`.
        """
        return self._lend_connection(lambda: self._writers)

    @contextmanager
    def _lend_connection(self, idle: Callable[[], list[sqlite3.Connection]]) -> Iterator[sqlite3.Connection]:
        if self._is_closed:
            raise UnavailableError("the database is closed: open it again", path=self._path)
        loan = _LoanMarker()
        lent: list[sqlite3.Connection] = []
        is_good = False
        try:
            try:
                self._register_loan(loan)
                with self._mutex:
                    home = idle()
                    if home:
                        lent.append(home.pop())
                self.require_same_file()
                if not lent:
                    lent.append(self._connect())
                yield lent[0]
                is_good = True
            finally:
                self._end_connection_loan(loan, lent, home if is_good else None)
        except BaseException:
            self._end_connection_loan(loan, lent, None)  # the first call may have been interrupted
            raise

    def _register_loan(self, loan: _LoanMarker) -> None:
        """Note that a connection is lent, unless another thread forks: then wait until it has."""
        deadline_s = self._clock.elapsed_s() + _LONGEST_FORK_S
        while True:
            with self._mutex:
                self._forks = [fork for fork in self._forks if not fork.is_over]
                if not self._forks or _has_thread_borrowed_connection(loan.thread):
                    self._loans[id(loan)] = loan
                    return
            if self._clock.elapsed_s() > deadline_s or any(fork.thread == loan.thread for fork in self._forks):
                raise UnavailableError("this process is being forked: use the database when that is done")
            self._clock.sleep(_FORK_STEP_S)

    def borrowing_threads(self) -> list[int]:
        """Return the ids of the threads to which connections are lent."""
        return [loan.thread for one in self._loans.valuerefs() if (loan := one()) is not None]

    def _end_connection_loan(
        self, loan: _LoanMarker, lent: list[sqlite3.Connection], home: list[sqlite3.Connection] | None
    ) -> None:
        """End a loan. Keep the connection for the next caller, unless it is broken, or `close` was called meanwhile.

        Takes no lock if there is no home. So it is when a collection of garbage ends a walk: its thread may have the
        lock.
        """
        if loan.pid != os.getpid():
            keep_inherited_connections_alive(*lent)
            return
        if home is not None:
            with self._mutex:
                if not self._is_closed:
                    home.append(lent.pop())
        while lent:
            lent.pop().close()
        self._loans.pop(id(loan), None)

    def require_same_file(self) -> None:
        """Check that the path still leads to the file that is open: commits to a removed file would be lost.

        Runs whenever a connection is lent, and again when a commit has waited for its turn.

        Raises: see `reader`; and AccessDeniedError: the file cannot be reached.
        """
        try:
            status = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            status = None
        except OSError as error:
            message = "the database file cannot be reached: check its path, its rights and its disk"
            raise file_error(error, message, self._path) from error
        found = None if status is None else (status.st_dev, status.st_ino)
        if found is None or found != (self._file or found):
            raise NotFoundError(
                "the database file was removed or replaced: restore it, or open it again", path=self._path
            )
        if found in _cut:
            raise UnavailableError(
                "this process was forked while its parent used the database: use the namespace in a new process",
                path=self._path,
            )
        self._file = found

    def close(self) -> None:
        """Close all connections; those that are lent are closed when they come back. May be called twice."""
        self._is_closed = True
        loan = _LoanMarker()  # no fork while a connection is being closed
        try:
            self._register_loan(loan)
            with self._mutex:
                homes = self._readers, self._writers
                self._readers, self._writers = [], []
            for home in homes:
                while home:
                    home.pop().close()
        finally:
            self._loans.pop(id(loan), None)

    def before_fork(self, fork: ForkInProgress) -> bool:
        """Close all connections, and keep other threads from opening one until the fork is over.

        Returns:
            Whether no connection is lent anymore.
        """
        deadline_s = self._clock.elapsed_s() + (0 if fork.is_late else _FORK_WAIT_S)
        with self._mutex:
            self._forks = [*(one for one in self._forks if not one.is_over), fork]
        while True:
            with self._mutex:
                borrowing_threads = set(self.borrowing_threads())
                is_late = self._clock.elapsed_s() >= deadline_s
                if not borrowing_threads or fork.thread in borrowing_threads or is_late:
                    fork.is_late |= is_late
                    for home in (self._readers, self._writers):
                        while home:
                            with suppress(sqlite3.Error):
                                home.pop().close()
                    return not borrowing_threads
            self._clock.sleep(_FORK_STEP_S)

    def after_fork(self, *, is_ready: bool) -> None:
        """Reset the connections in the child of a fork.

        Args:
            is_ready: False if a connection may have been open during the fork: the file cannot be used then.
        """
        if not is_ready and self._file is not None and all(fork.is_over for fork in self._born_under):
            _cut.add(self._file)
        keep_inherited_connections_alive(*self._readers, *self._writers)
        self._reset()


def _has_thread_borrowed_connection(thread: int) -> bool:
    """Check whether a thread has borrowed a connection to any file: it must come to an end, since the fork waits."""
    every = [found for one in _every.valuerefs() if (found := one()) is not None]
    return any(thread in one.borrowing_threads() for one in every)
