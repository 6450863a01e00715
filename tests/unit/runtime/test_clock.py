"""The system clock returns seconds."""

from __future__ import annotations

import time

import pytest

from holdfast.runtime import Moment, SystemClock
from holdfast.runtime.simulated import SuspendedClock


def test_now_is_the_wall_clock_in_seconds_since_the_epoch() -> None:
    before = time.time()
    now_s = SystemClock().now_s()
    after = time.time()
    assert before <= now_s <= after


def test_sleeping_takes_at_least_the_time_asked_for() -> None:
    clock = SystemClock()
    start_s = clock.elapsed_s()
    clock.sleep(0.01)
    assert clock.elapsed_s() - start_s >= 0.01


@pytest.mark.parametrize(("passed_s", "slept_s", "set_s", "age_s"), [
    (10.0, 0.0, 0.0, 10.0),
    (10.0, 3600.0, 0.0, 3610.0),
    (10.0, 0.0, -3600.0, 10.0),
    (10.0, 0.0, 3600.0, 3610.0),
])  # fmt: skip
def test_a_moment_is_as_old_as_the_clock_says_that_has_advanced_more(
    passed_s: float, slept_s: float, set_s: float, age_s: float
) -> None:
    """The machine was suspended, or somebody has set the wall clock."""
    clock = SuspendedClock(1_800_000_000.0)
    moment = Moment.of(clock)
    clock.at_s += passed_s
    clock.suspend(slept_s)
    clock.suspend(set_s)
    assert moment.age_s(clock) == age_s


def test_a_moment_of_the_system_is_young() -> None:
    assert 0 <= Moment.of(SystemClock()).age_s(SystemClock()) < 60
