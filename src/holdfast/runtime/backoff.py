"""Wait between tries: random waits that grow, so that those who collided once do not collide again."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.runtime.environment import Clock, SeededRandom

_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before a try is repeated: between nothing and a limit that doubles with each try.

    Attributes:
        first_s: the limit of the first wait, seconds.
        longest_s: the limit of all waits, seconds.

    Source: M. Brooker, "Exponential Backoff and Jitter" (AWS Architecture Blog, 2015): full jitter.
    """

    first_s: float
    longest_s: float

    def wait(self, number: int, clock: Clock, chance: SeededRandom) -> None:
        """Wait before the `number`-th repetition, counted from 1."""
        limit_s = min(self.first_s * 2.0 ** min(number - 1, _MOST_DOUBLINGS), self.longest_s)
        clock.sleep(limit_s * chance.fraction())
