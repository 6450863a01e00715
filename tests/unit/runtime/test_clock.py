"""The system clock returns seconds."""

from __future__ import annotations

import time

from holdfast.runtime import SystemClock


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
