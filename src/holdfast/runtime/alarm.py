"""Stop code that runs for too long."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Protocol

__all__ = ["Alarm", "NoAlarm", "SystemAlarm", "TimeIsUp"]


_AGAIN_S = 1.0


class TimeIsUp(BaseException):
    """The time of a block is over. No `Exception`: code that catches those cannot go on by accident."""


class Alarm(Protocol):
    """Limits the time of blocks."""

    def limit(self, duration_s: float) -> AbstractContextManager[None]:
        """Raise `TimeIsUp` inside of the block when so many seconds have passed, or at its end if it has caught that.

        Blocks with a limit are not nested.
        """
        ...

    def shielded(self) -> AbstractContextManager[None]:
        """Raise nothing inside of this block, which is part of one with a limit, but at its end: for calls that must
        not be broken off, because they would leave a connection behind that nobody can use."""
        ...


class SystemAlarm:
    """The timer of this process, which sends a signal: it also ends loops that call nothing.

    Only the main thread can be stopped so; in other threads nothing is limited. A call into C ends first. The signal
    comes again every second until the block ends, for code that catches everything.

    An instance belongs to one thread. A timer that somebody else has set is lost.

    Source: signal(2), setitimer(2); "Signals and threads" in the manual of Python's `signal`.
    """

    def __init__(self) -> None:
        self._is_inside = False
        self._is_up = False
        self._shields = 0

    @contextmanager
    def limit(self, duration_s: float) -> Iterator[None]:
        """Raise `TimeIsUp` inside of the block when so many seconds have passed, or at its end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._is_up = False
        self._shields = 0
        before = signal.signal(signal.SIGALRM, self._ring)
        try:
            # A ring between any two of these statements raises; the outer block ends it all the same.
            try:
                self._is_inside = True
                signal.setitimer(signal.ITIMER_REAL, duration_s, _AGAIN_S)
                yield
            finally:
                self._is_inside = False
        finally:
            self._is_inside = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
        if self._is_up:
            raise TimeIsUp

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Raise nothing inside of this block, but at its end."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._is_up and self._is_inside and not self._shields:
            raise TimeIsUp

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self._is_up = True
        if self._is_inside and not self._shields:
            raise TimeIsUp


class NoAlarm:
    """Limits nothing: for simulated worlds."""

    @contextmanager
    def limit(self, duration_s: float) -> Iterator[None]:
        """Run the block."""
        yield

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Run the block."""
        yield
