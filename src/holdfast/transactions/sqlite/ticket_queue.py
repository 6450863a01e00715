"""Let the processes that write to one file take turns, first come, first served.

SQLite's own busy handler sleeps and tries again, so a process that comes at the wrong moments starves: under load, one
of eight workers committed nothing at all. Here each process draws a ticket and waits until all earlier tickets are
gone. A ticket is a locked byte of a file, and the operating system unlocks the bytes of a process that dies, so a
killed process never blocks the queue.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.errors import AccessDeniedError, UnavailableError
from holdfast.runtime import Clock

__all__ = ["TicketQueue"]

_COUNTER_BYTES = 8
_TICKETS = 16
"""Position of the byte of ticket 0. Byte 0 is the lock of the counters: the next ticket, and the one being served."""
_STEP_S = 0.00005
_LONGEST_STEP_S = 0.002


class TicketQueue:
    """A fair lock between processes, and between the threads of this one.

    Record locks belong to a process, and closing any descriptor of the file releases them: so there is one queue for
    each file in a process (`of`), and it is never closed.
    """

    _queues: dict[tuple[int, int, int], TicketQueue] = {}  # noqa: RUF012  # one for each file and process
    _queues_lock = threading.Lock()

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = threading.Lock()

    @classmethod
    def of(cls, path: str) -> TicketQueue:
        """Return this process's queue for a file, which is created if it does not exist.

        Raises:
            AccessDeniedError: the file cannot be written. Check its rights, and those of its directory.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise AccessDeniedError(
                "the queue beside the database file cannot be written: check its rights", path=path
            ) from error
        status = os.fstat(descriptor)
        with cls._queues_lock:
            key = (os.getpid(), status.st_dev, status.st_ino)
            queue = cls._queues.get(key)
            if queue is None:
                queue = cls._queues[key] = cls(descriptor)
                return queue
        # Closing the second descriptor would release the locks of the first if another thread held them now.
        with queue._turn:
            os.close(descriptor)
        return queue

    @contextmanager
    def turn(self, clock: Clock, timeout_s: float) -> Iterator[None]:
        """Wait for this caller's turn, and hold it.

        Raises:
            UnavailableError: the turn did not come in time; nothing happened.
        """
        deadline_s = clock.elapsed_s() + timeout_s
        if not self._turn.acquire(timeout=timeout_s):
            raise UnavailableError(
                "another thread writes to the database for too long: repeat later", waited_s=timeout_s
            )
        try:
            ticket = self._draw(clock, deadline_s)
            try:
                self._wait(lambda: self._is_served(ticket), clock, deadline_s, ticket)
                os.pwrite(self._descriptor, ticket.to_bytes(_COUNTER_BYTES, "big"), _COUNTER_BYTES)
                yield
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _TICKETS + ticket)
        finally:
            self._turn.release()

    def _draw(self, clock: Clock, deadline_s: float) -> int:
        self._wait(lambda: self._try_lock(1, 0), clock, deadline_s, None)
        try:
            ticket = self._counter(0)
            os.pwrite(self._descriptor, (ticket + 1).to_bytes(_COUNTER_BYTES, "big"), 0)
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _TICKETS + ticket)
            return ticket
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, 0)

    def _counter(self, position: int) -> int:
        return int.from_bytes(os.pread(self._descriptor, _COUNTER_BYTES, position), "big")

    def _try_lock(self, length: int, position: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, position)
        except OSError:
            return False
        return True

    def _is_served(self, ticket: int) -> bool:
        """Check whether all earlier tickets are gone: then the range of their bytes can be locked."""
        if ticket == 0:
            return True
        if not self._try_lock(ticket, _TICKETS):
            return False
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, ticket, _TICKETS)
        return True

    def _wait(self, is_over: Callable[[], bool], clock: Clock, deadline_s: float, ticket: int | None) -> None:
        while not is_over():
            if clock.elapsed_s() > deadline_s:
                raise UnavailableError("other processes write to the database for too long: repeat later")
            ahead = 1 if ticket is None else max(1, ticket - self._counter(_COUNTER_BYTES))
            clock.sleep(min(ahead * _STEP_S, _LONGEST_STEP_S))
