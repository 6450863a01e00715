"""Keep the connections of one process to an SQLite file: one that writes, and several that read."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from holdfast.errors import NotFoundError, UnavailableError
from holdfast.runtime import Clock
from holdfast.runtime.forks import watch_forks
from holdfast.transactions.seats import Seat, Seats
from holdfast.transactions.sqlite.files import file_error
from holdfast.transactions.sqlite.ticket_queue import TicketQueue

__all__ = ["Connections"]

_FORK_WAIT_S = 5.0
_FORK_STEP_S = 0.001


class Connections:
    """Lends connections.

    Guarantee: no connection is open while the process forks. SQLite keeps notes about its locks in the memory of the
    process, and a child that inherits them believes that it holds locks, which its parent holds. If a connection is
    lent for too long, as in the middle of a walk, the child may not use the file.

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
        self._is_cut = False
        self._is_closed = False
        self._was_lent = False  # at the last fork
        self._inherited: list[sqlite3.Connection | None] = []
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._loans = Seats(None)
        self._readers: list[sqlite3.Connection] = []
        self._writers: list[sqlite3.Connection] = []  # one, unless somebody writes
        self._file: tuple[int, int] | None = None
        self._queue: TicketQueue | None = None
        self._fork: Callable[[], Seat | None] = lambda: None  # the seat of a thread that is about to fork
        self._held: Generator[None, None, None] | None = None

    def queue(self) -> TicketQueue:
        """Return the queue in which this process waits before it writes."""
        # Not under the lock, which a thread that forks holds: two threads that come here get the same queue.
        queue = self._queue = self._queue or TicketQueue.of(f"{self._path}-queue")
        return queue

    def reader(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection. If the block raises, the connection is closed.

        Raises:
            NotFoundError: the file was removed or replaced.
            UnavailableError: the process was forked in the middle of something, or `close` was called.
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
        if self._is_closed:
            raise UnavailableError("the store is closed: open it again", path=self._path)
        self._let_fork()
        loan = Seat()
        loans, pid = self._loans, os.getpid()
        connection: sqlite3.Connection | None = None
        is_good = False
        try:
            with self._mutex:
                home = idle()
                loans.take(loan, self._clock, 0)
                connection = home.pop() if home else None
            self._check_file()
            connection = connection or self._connect()
            yield connection
            is_good = True
        finally:
            if pid != os.getpid():
                self._inherited.append(connection)  # the parent's: in this process, it is not even closed
            else:
                self._take_back(connection, home if is_good else None, idle)
                loans.leave(loan)

    def _let_fork(self) -> None:
        """Wait while another thread is about to fork, unless that waits for what this thread has borrowed already."""
        this = threading.get_ident()
        deadline_s = self._clock.elapsed_s() + _FORK_WAIT_S
        while (fork := self._fork()) is not None and fork.thread != this and self._clock.elapsed_s() < deadline_s:
            del fork  # it ends with the one who forks, also if that is interrupted
            if this in {loan.thread for loan in self._loans.seated()}:
                return
            self._clock.sleep(_FORK_STEP_S)

    def _take_back(
        self,
        connection: sqlite3.Connection | None,
        home: list[sqlite3.Connection] | None,
        idle: Callable[[], list[sqlite3.Connection]],
    ) -> None:
        """Keep a connection for the next caller, unless it is broken, or `close` was called meanwhile."""
        with self._mutex:
            if connection is not None and home is idle():
                home.append(connection)
                return
        if connection is not None:
            connection.close()

    def _check_file(self) -> None:
        """Check that the path still leads to the file that is open: commits to a removed file would be lost."""
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
                "the database file was removed or replaced: restore it, or open the namespace again", path=self._path
            )
        self._file = found

    def close(self) -> None:
        """Close all connections; those that are lent are closed when they come back. May be called twice."""
        self._is_closed = True
        with self._mutex:
            idle = [*self._readers, *self._writers]
            self._readers, self._writers = [], []
        for connection in idle:
            connection.close()

    def before_fork(self) -> None:
        """Close all connections, and let nobody open one until the fork is done."""
        self._was_lent = (
            True  # until it is certain that nothing is: an interrupt may end the wait, and the fork goes on
        )
        self._held = self._hold()  # a generator that was interrupted, or is forgotten, gives the lock back
        next(self._held)

    def _hold(self) -> Generator[None, None, None]:
        deadline_s = self._clock.elapsed_s() + _FORK_WAIT_S
        fork = Seat()
        this = fork.thread
        self._fork = weakref.ref(fork)
        while True:
            with self._mutex:
                lent_to = {loan.thread for loan in self._loans.seated()}
                if not lent_to or this in lent_to or self._clock.elapsed_s() > deadline_s:
                    for idle in (self._readers, self._writers):
                        while idle:
                            with suppress(sqlite3.Error):
                                idle.pop().close()
                    self._was_lent = bool(lent_to)
                    yield
                    return
            self._clock.sleep(_FORK_STEP_S)

    def after_fork(self, *, is_child: bool) -> None:
        """Go on in the parent; start anew in the child."""
        if is_child:
            # Without `before_fork`, this object was made during the fork, and a connection may be open.
            self._is_cut = self._is_cut or self._was_lent or self._held is None
            self._inherited += [*self._readers, *self._writers]
            self._reset()
        elif self._held is not None:
            self._held.close()
            self._held = None
