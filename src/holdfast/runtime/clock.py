"""Tell the time and wait. Correctness never depends on a clock: clocks only date records and pace retries."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """A source of time."""

    def now_s(self) -> float:
        """Return the seconds since the epoch (wall clock; may jump)."""
        ...

    def elapsed_s(self) -> float:
        """Return the seconds of a monotonic clock; only differences are meaningful."""
        ...

    def sleep(self, duration_s: float) -> None:
        """Wait for `duration_s` seconds."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now_s(self) -> float:
        return time.time()

    def elapsed_s(self) -> float:
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        time.sleep(duration_s)
