"""Time and ids that are the same in every run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class StillClock:
    """A clock that stands still until it is set.

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
    """Ids that count up: 000000000001, 000000000002, …

    Attributes:
        last: the number of the last token.
    """

    last: int = 0

    def token(self) -> str:
        self.last += 1
        return f"{self.last:012x}"
