"""Provide a clock and ids that are deterministic: the same in every run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ManualClock:
    """A simulated clock whose time changes only when a test sets it; sleeping returns at once.

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
class CountingIds:
    """Generates deterministic ids by counting: 000000000001, 000000000002, …

    Attributes:
        last: the number of the last token.
    """

    last: int = 0

    def token(self) -> str:
        self.last += 1
        return f"{self.last:012x}"
