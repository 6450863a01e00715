"""Waits between tries are random, grow, and have a limit."""

from __future__ import annotations

from holdfast.runtime import SeededRandom
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.simulated import StillClock


class _Most(SeededRandom):
    """Draws the largest value each time."""

    def fraction(self) -> float:
        return 1.0


def test_the_limit_doubles_up_to_the_longest() -> None:
    clock = StillClock()
    for number in (1, 2, 3, 4, 5, 10_000):
        Backoff(0.5, 3.0).wait(number, clock, _Most(0))
    assert clock.waits == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]


def test_waits_are_random() -> None:
    clock, chance = StillClock(), SeededRandom(1)
    for _ in range(100):
        Backoff(1.0, 1.0).wait(1, clock, chance)
    assert len(set(clock.waits)) == 100
    assert 0 <= min(clock.waits) < 0.1 < 0.9 < max(clock.waits) < 1
