"""Let the processes that write to one file take turns, first come, first served.

SQLite's own busy handler sleeps and tries again, so a process that comes at the wrong moments starves: under load, one
of eight workers committed nothing at all. Here each process draws a ticket and waits until all earlier tickets are
gone. A ticket is a locked byte of a file, and the operating system unlocks the bytes of a process that dies, so a
killed process never blocks the queue. A process that is stopped while it waits, by Ctrl-Z for example, is passed over
after a second. The queue is about fairness only: what excludes two writers is SQLite's lock.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from holdfast.errors import UnavailableError
from holdfast.runtime import Clock
from holdfast.runtime.process import ForkAwareObject
from holdfast.transactions.pool import FairSemaphore
from holdfast.transactions.sqlite.file import file_error

_COUNTER_BYTES = 8
_TICKETS = 16
"""Position of the byte of ticket 0. Byte 0 is the lock of the counters: the next ticket, and the one being served."""
_STEP_S = 0.00005
_LONGEST_STEP_S = 0.002
_STALL_S = 1.0
_MOST_TICKETS = 2**48
"""Tickets beyond it were never drawn: another program has written into the file. The queue then starts anew."""


class TicketQueue:
    """A first come, first served lock on a file, between processes and between the threads of this one.

    Record locks belong to a process, and closing any descriptor of the file releases them: so there is one queue for
    each file in a process (`of`), and it is never closed.

    Args:
        descriptor: of the open file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._permits = FairSemaphore(1)
        self._passed = 0  # tickets below this one are not waited for
        self._latest = -1  # the ticket that this process has had last

    @classmethod
    def of(cls, path: str) -> TicketQueue:
        """Return this process's queue for the file at `path`, which is created if it does not exist.

        Raises:
            AccessDeniedError: the file cannot be written. Check its rights, and those of its directory.
            StorageFullError: the file cannot be created.
        """
        return _QUEUES.of(path)

    def close_without_waiting(self) -> None:
        """Close the file without waiting: in a forked child, which holds no lock of it, or if the file was deleted."""
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            os.close(descriptor)

    @property
    def is_file_deleted_and_idle(self) -> bool:
        """Return whether the file was deleted, and no thread is in the queue."""
        return not self._permits.count_holders() and os.fstat(self._descriptor).st_nlink == 0

    @contextmanager
    def turn(self, clock: Clock, timeout_s: float) -> Iterator[None]:
        """Wait for this caller's turn, and hold it in a ``with`` block.

        Raises:
            UnavailableError: the turn did not come in time; nothing happened.
        """
        deadline_s = clock.elapsed_s() + timeout_s
        with self._permits.hold(clock, timeout_s) as is_held:
            if not is_held:
                raise UnavailableError(
                    "another thread writes to the database for too long: repeat later", waited_s=timeout_s
                )
            try:
                try:
                    self._queue_up(clock, deadline_s)
                    yield
                finally:
                    self._unlock()
            except BaseException:
                self._unlock()  # the first call may have been interrupted
                raise

    def _queue_up(self, clock: Clock, deadline_s: float) -> None:
        """Wait for the turn of this process. If the file fails, on a full disk for example, go on without a queue."""
        with suppress(OSError):
            if self._try_take_next_ticket():
                return
            ticket = self._draw_ticket(clock, deadline_s)
            if ticket is not None:
                self._await_turn(ticket, clock, deadline_s)
                os.pwrite(self._descriptor, ticket.to_bytes(_COUNTER_BYTES, "big"), _COUNTER_BYTES)

    def _try_take_next_ticket(self) -> bool:
        """Take the next ticket if no other process has drawn one since this one had the one before it.

        Most writers are alone, and this takes half of the system calls.
        """
        ticket = self._latest + 1
        if not 0 < ticket < _MOST_TICKETS or not self._try_lock(0, _TICKETS + ticket + 1):
            return False
        counters = os.pread(self._descriptor, 2 * _COUNTER_BYTES, 0)
        if counters != _encode_counters(ticket, ticket - 1):
            self._unlock()
            return False
        os.pwrite(self._descriptor, _encode_counters(ticket + 1, ticket), 0)
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _TICKETS + ticket, 0)
        self._latest = ticket
        return True

    def _unlock(self) -> None:
        """Give up all locks of this process, even one that was being taken when an interrupt came."""
        with suppress(OSError, ValueError):  # a forked child has none
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)

    def _draw_ticket(self, clock: Clock, deadline_s: float) -> int | None:
        """Take the next ticket; return None if a process was stopped just while it took one."""
        if not self._wait_until(lambda: self._try_lock(0, 1), clock, deadline_s, lambda: _LONGEST_STEP_S):
            return None
        ticket = self._read_counter(0)
        os.pwrite(self._descriptor, (ticket + 1).to_bytes(_COUNTER_BYTES, "big"), 0)
        self._try_lock(_TICKETS + ticket, 1)
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, 0)
        self._latest = ticket
        return ticket

    def _await_turn(self, ticket: int, clock: Clock, deadline_s: float) -> None:
        """Wait until all earlier tickets are gone, or none was served for too long."""

        def compute_step_s() -> float:
            return min(max(1, ticket - self._read_counter(_COUNTER_BYTES)) * _STEP_S, _LONGEST_STEP_S)

        if self._passed > ticket:
            self._passed = 0  # the queue has started anew
        if not self._wait_until(
            lambda: self._are_tickets_released(self._passed, ticket), clock, deadline_s, compute_step_s
        ):
            self._passed = ticket  # one of them is that of a stopped process

    def _read_counter(self, position: int) -> int:
        found = int.from_bytes(os.pread(self._descriptor, _COUNTER_BYTES, position), "big")
        return found if found < _MOST_TICKETS else 0

    def _try_lock(self, position: int, length: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, position)
        except OSError:
            return False
        return True

    def _are_tickets_released(self, first: int, end: int) -> bool:
        """Check whether all tickets from the first up to the end are gone: then their bytes can be locked."""
        if first >= end:
            return True
        if not self._try_lock(_TICKETS + first, end - first):
            return False
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, end - first, _TICKETS + first)
        return True

    def _wait_until(
        self, is_over: Callable[[], bool], clock: Clock, deadline_s: float, step_s: Callable[[], float]
    ) -> bool:
        """Wait for something; return False if no ticket was served for so long that the queue must have stalled."""
        served, since_s = self._read_counter(_COUNTER_BYTES), clock.elapsed_s()
        while not is_over():
            now_s = clock.elapsed_s()
            if now_s > deadline_s:
                raise UnavailableError("other processes write to the database for too long: repeat later")
            if self._read_counter(_COUNTER_BYTES) != served:
                served, since_s = self._read_counter(_COUNTER_BYTES), now_s
            if now_s - since_s > _STALL_S:
                return False
            clock.sleep(step_s())
        return True


def _encode_counters(following: int, served: int) -> bytes:
    """Return the two counters as the file has them: the next ticket, and the one being served."""
    return following.to_bytes(_COUNTER_BYTES, "big") + served.to_bytes(_COUNTER_BYTES, "big")


class _ProcessQueues(ForkAwareObject):
    """The queues of this process, one for each file."""

    def __init__(self) -> None:
        self._queues: dict[tuple[int, int], TicketQueue] = {}
        super().__init__()

    def _renew(self) -> None:
        for queue in self._queues.values():
            queue.close_without_waiting()
        self._lock = threading.Lock()
        self._queues = {}

    def of(self, path: str) -> TicketQueue:
        with self._lock:
            with suppress(FileNotFoundError):
                found = self._queues.get(_file_identity(os.stat(path)))
                if found is not None:
                    return found
            for identity in [key for key, queue in self._queues.items() if queue.is_file_deleted_and_idle]:
                self._queues.pop(identity).close_without_waiting()
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise file_error(
                    error, "the queue beside the database file cannot be written: check its rights", path
                ) from error
            return self._queues.setdefault(_file_identity(os.fstat(descriptor)), TicketQueue(descriptor))


def _file_identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


_QUEUES = _ProcessQueues()
