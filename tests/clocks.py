"""Simulate clocks and ids that return the same values in every run, for tests and simulated worlds.

Nothing in this module really waits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field


@dataclass
class SimulatedClock:
    """A clock that advances only when it is read or when somebody waits.

    Attributes:
        at_s: the current time, seconds since the epoch.
        step_s: how many seconds the clock advances each time it is read.
        waits: the durations of all waits, seconds.
    """

    at_s: float = 1_800_000_000.0
    step_s: float = 0.001
    waits: list[float] = field(default_factory=list)

    def now_s(self) -> float:
        self.at_s += self.step_s
        return self.at_s

    def elapsed_s(self) -> float:
        return self.now_s()

    def sleep(self, duration_s: float) -> None:
        self.waits.append(duration_s)
        self.at_s += duration_s


@dataclass
class StillClock:
    """A clock that stands still until somebody sets it.

    Attributes:
        at_s: the current time, seconds since the epoch.
        waits: the durations of all waits, seconds.
    """

    at_s: float = 0.0
    waits: list[float] = field(default_factory=list)

    def now_s(self) -> float:
        return self.at_s

    def elapsed_s(self) -> float:
        return self.at_s

    def sleep(self, duration_s: float) -> None:
        self.waits.append(duration_s)


@dataclass
class SuspendedClock(StillClock):
    """A still clock of a machine that can be suspended: its monotonic clock does not run meanwhile.

    Attributes:
        suspended_s: for how long, seconds.
    """

    suspended_s: float = 0.0

    def elapsed_s(self) -> float:
        return self.at_s - self.suspended_s

    def suspend(self, duration_s: float) -> None:
        """Let time pass that only the wall clock shows; a negative time is that of somebody who sets it back."""
        self.at_s += duration_s
        self.suspended_s += duration_s


@dataclass
class CountingIds:
    """Ids that count up: 000000000001, 000000000002, …

    Attributes:
        last: the number of the last token.
    """

    last: int = 0

    def token(self) -> str:
        self.last += 1
        return f"{self.last:012x}"


def never(work: Callable[[], object], interval_s: float) -> AbstractContextManager[None]:
    """Repeat nothing: a `Repeat` for code that needs no signs of life."""
    return nullcontext()
