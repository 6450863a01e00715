"""Tell the time and wait. Correctness never depends on a clock: clocks only date records and pace retries."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now_s(self) -> float:
        """Return the seconds since the epoch (wall clock; may jump)."""
        ...

    def elapsed_s(self) -> float:
        """Return the seconds of a monotonic clock; only differences are meaningful. It may stop while the machine is
        suspended, so a wait goes on afterwards: for what must not become too old, see `Moment`."""
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


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of this process, to tell later how long ago it was.

    Attributes:
        now_s, elapsed_s: what the clocks showed.
    """

    now_s: float
    elapsed_s: float

    @staticmethod
    def of(clock: Clock) -> Moment:
        """Return the present moment."""
        return Moment(clock.now_s(), clock.elapsed_s())

    def age_s(self, clock: Clock) -> float:
        """Return how long ago the moment was, in seconds: at least.

        The monotonic clock does not run while the machine is suspended, and the wall clock may be set back. So the one
        that has advanced more counts: neither of them alone makes the moment look younger than it is. A wall clock that
        is set forward makes it look older.
        """
        return max(clock.now_s() - self.now_s, clock.elapsed_s() - self.elapsed_s)
