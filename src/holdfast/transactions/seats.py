"""Let a limited number of callers in at a time, first come first served, even if interrupts strike at any point.

An interrupt, by Ctrl-C for example, is an exception that the handler of a signal raises between any two instructions of
the main thread. It may come after a lock was acquired and before the block begins that would release it; in
`threading.Condition`, even inside a ``with`` statement. So here a place is held by an object, a `Seat`, and is free
when that object does not exist anymore. The short sections of this module are guarded by a lock whose ``with``
statement an interrupt cannot cut in two.

A collection of garbage may end a forgotten walk, and so give back its seat, in the middle of such a section of the same
thread. So the thread that holds the lock may take it again. What the inner section did, the outer one may undo: a seat
that is in line again is of no effect, because its holder is gone.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress

from holdfast.runtime import Clock
from holdfast.runtime.forks import Fork, watch_forks

_LONGEST_NAP_S = 0.05
"""Who waits looks by himself so often: nobody wakes those who wait for a caller that was interrupted."""


class Seat:
    """The place of one caller. Whoever holds the seat must keep this object, in a local variable for example.

    Attributes:
        thread: the thread that took it.
    """

    __slots__ = ("__weakref__", "thread", "wake")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.wake = threading.Lock()
        self.wake.acquire()


class Seats:
    """Seats for callers that work at the same time; the others wait in line.

    Args:
        count: how many seats there are; None for any number.
    """

    def __init__(self, count: int | None = 1) -> None:
        self._count = count
        self._is_closed = False
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._mutex = threading.RLock()
        self._line: list[weakref.ref[Seat]] = []  # the first ones are seated

    def before_fork(self, fork: Fork) -> bool:
        """Do nothing."""
        return True

    def after_fork(self, *, is_ready: bool) -> None:
        """Start anew in a child: a thread of the parent may hold the lock, and the seats are its own."""
        self._reset()

    def take(self, seat: Seat, clock: Clock, timeout_s: float) -> bool:
        """Wait in line, and sit down; return False, and leave, if that takes too long, or after `close`."""
        with self._mutex:
            self._line = [*(one for one in self._line if one() is not None), weakref.ref(seat)]
            if self._is_seated(seat):
                return True
        deadline_s = clock.elapsed_s() + timeout_s
        while not self._is_closed and (left_s := deadline_s - clock.elapsed_s()) > 0:
            seat.wake.acquire(timeout=min(left_s, _LONGEST_NAP_S))
            with self._mutex:
                if self._is_seated(seat):
                    return True
        self.leave(seat)
        return False

    def _is_seated(self, seat: Seat) -> bool:
        if self._is_closed:
            return False
        if self._count is None:
            return True
        alive = [found for one in self._line if (found := one()) is not None]
        return seat in alive[: self._count]

    def leave(self, seat: Seat) -> None:
        """Stand up, or leave the line, and wake who is next. May be called again, also by who has no seat."""
        with self._mutex:
            alive = [found for one in self._line if (found := one()) is not None and found is not seat]
            self._line = [weakref.ref(one) for one in alive]
            if self._count is not None and len(alive) >= self._count:
                _wake(alive[self._count - 1])

    def close(self) -> None:
        """Let nobody sit down anymore. Those who are seated stay."""
        with self._mutex:
            self._is_closed = True
            for one in self._line:
                if (found := one()) is not None:
                    _wake(found)

    def seated(self) -> list[Seat]:
        """Return those who are seated."""
        with self._mutex:
            return [found for one in self._line if (found := one()) is not None][: self._count]


def _wake(seat: Seat) -> None:
    with suppress(RuntimeError):  # it was woken already
        seat.wake.release()
