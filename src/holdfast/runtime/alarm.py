"""Stop code that runs for too long."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Protocol

__all__ = ["Alarm", "NoAlarm", "SystemAlarm", "TimeIsUp"]


class TimeIsUp(BaseException):
    """The time of a block is over. No `Exception`: code that catches those cannot go on by accident."""


class Alarm(Protocol):
    """Limits the time of blocks."""

    def limit(self, duration_s: float) -> AbstractContextManager[None]:
        """Raise `TimeIsUp` inside of the block when so many seconds have passed."""
        ...


class SystemAlarm:
    """The timer of this process, which sends a signal: it also ends loops that call nothing.

    Only the main thread can be stopped so; in other threads nothing is limited. A call into C ends first.

    Source: signal(2), setitimer(2); "Signals and threads" in the manual of Python's `signal`.
    """

    @contextmanager
    def limit(self, duration_s: float) -> Iterator[None]:
        """Raise `TimeIsUp` inside of the block when so many seconds have passed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        is_inside = True

        def ring(number: int, frame: FrameType | None) -> None:
            if is_inside:
                raise TimeIsUp

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, duration_s)
        try:
            yield
        finally:
            is_inside = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


class NoAlarm:
    """Limits nothing: for simulated worlds."""

    @contextmanager
    def limit(self, duration_s: float) -> Iterator[None]:
        """Run the block."""
        yield
