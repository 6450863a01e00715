"""An alarm ends blocks that run for too long, wherever they are, and leaves nothing behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from holdfast.runtime import NoAlarm, SystemAlarm, TimeIsUp
from tests.patience import PATIENCE_S

_SHORT_S = 0.01
_LONG_S = 10.0


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def loop() -> None:
    while True:
        pass


def ring(alarm: SystemAlarm) -> None:
    """Let the time of the block be over now."""
    alarm._deadline_s = time.monotonic()
    signal.raise_signal(signal.SIGALRM)


def wait_until_rung(rings_s: float) -> None:
    """Let the time of a timer pass that was set before."""
    while time.monotonic() < rings_s + _SHORT_S:
        pass


def limited(alarm: SystemAlarm, duration_s: float, block: Callable[[], object]) -> None:
    with alarm.limit(duration_s):
        block()


def test_an_endless_loop_ends() -> None:
    with pytest.raises(TimeIsUp):
        limited(SystemAlarm(), _SHORT_S, loop)


def test_a_block_that_is_fast_enough() -> None:
    alarm = SystemAlarm()
    for _ in range(3):
        limited(alarm, PATIENCE_S, lambda: None)


def test_an_error_of_the_block_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        limited(SystemAlarm(), PATIENCE_S, lambda: 1 // 0)


def test_code_that_catches_exceptions_ends() -> None:
    def swallow() -> None:
        while True:
            with suppress(Exception):
                loop()

    with pytest.raises(TimeIsUp):
        limited(SystemAlarm(), _SHORT_S, swallow)


def test_a_block_that_catches_everything_has_not_ended_well() -> None:
    alarm = SystemAlarm()

    def swallow() -> None:
        with suppress(BaseException):
            ring(alarm)

    with pytest.raises(TimeIsUp):
        limited(alarm, PATIENCE_S, swallow)
    limited(alarm, PATIENCE_S, lambda: None)


def test_it_rings_again_for_code_that_catches_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def swallow() -> None:
        with suppress(BaseException):
            loop()
        loop()

    monkeypatch.setattr("holdfast.runtime.alarm._AGAIN_S", _SHORT_S)
    with pytest.raises(TimeIsUp):
        limited(SystemAlarm(), _SHORT_S, swallow)


def test_a_shielded_call_ends_first() -> None:
    alarm = SystemAlarm()
    did = []

    def work() -> None:
        with alarm.shielded():
            with alarm.shielded():
                ring(alarm)
            did.append("inner")
        did.append("outer")

    with pytest.raises(TimeIsUp):
        limited(alarm, PATIENCE_S, work)
    assert did == ["inner"]


def test_a_shielded_call_that_fails_when_time_is_up() -> None:
    alarm = SystemAlarm()

    def fail() -> None:
        with suppress(ZeroDivisionError), alarm.shielded():
            ring(alarm)
            _ = 1 // 0

    with pytest.raises(TimeIsUp):
        limited(alarm, PATIENCE_S, fail)


def test_a_shield_without_a_limit_does_nothing() -> None:
    alarm = SystemAlarm()
    with alarm.shielded():
        pass
    with pytest.raises(TimeIsUp):
        limited(alarm, PATIENCE_S, lambda: ring(alarm))
    with alarm.shielded():
        pass


def test_another_thread_is_not_limited() -> None:
    ended = threading.Event()

    def work() -> None:
        alarm = SystemAlarm()
        with alarm.limit(_SHORT_S), alarm.shielded():
            threading.Event().wait(2 * _SHORT_S)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE_S)
    assert ended.is_set()


def test_no_alarm() -> None:
    with NoAlarm().limit(0), NoAlarm().shielded():
        pass


def test_each_of_many_blocks_has_its_own_time() -> None:
    alarm = SystemAlarm()
    with alarm.ready():
        began_s = time.monotonic()
        with alarm.limit(_SHORT_S):
            pass
        with alarm.limit(60):  # the timer of the first block rings here, for nobody
            wait_until_rung(began_s + _SHORT_S)
        with pytest.raises(TimeIsUp), alarm.limit(_SHORT_S):  # sooner than the one that runs for the block before
            loop()


def test_a_timer_of_an_earlier_block_is_set_again_for_the_rest() -> None:
    alarm = SystemAlarm()
    with alarm.ready():
        with alarm.limit(_SHORT_S):
            pass
        began_s = time.monotonic()
        with pytest.raises(TimeIsUp), alarm.limit(3 * _SHORT_S):
            loop()
        assert time.monotonic() - began_s >= 2 * _SHORT_S


def test_a_shorter_limit_after_a_longer_one_has_its_own_timer() -> None:
    alarm = SystemAlarm()
    with alarm.ready():
        with alarm.limit(2 * _LONG_S):
            pass
        with alarm.limit(_LONG_S):
            assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= _LONG_S


def test_a_timer_that_rings_too_early_is_set_to_the_rest() -> None:
    """The rest is shorter than the time after which it rings again anyway."""
    limit_s = 0.9
    with SystemAlarm().limit(limit_s):
        signal.setitimer(signal.ITIMER_REAL, _LONG_S, _LONG_S)
        signal.raise_signal(signal.SIGALRM)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= limit_s


def test_the_timer_ends_before_its_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring without a handler would end the process."""
    timers: list[tuple[float, float]] = []
    set_handler = signal.signal

    def note(number: int, handler: Any) -> Any:
        timers.append(signal.getitimer(signal.ITIMER_REAL))
        return set_handler(number, handler)

    monkeypatch.setattr(signal, "signal", note)
    with SystemAlarm().limit(_LONG_S):
        timers.clear()
    assert timers == [(0.0, 0.0)]


def test_a_timer_that_rings_between_two_blocks_ends_nothing() -> None:
    alarm = SystemAlarm()
    with alarm.ready():
        began_s = time.monotonic()
        with alarm.limit(_SHORT_S):
            pass
        wait_until_rung(began_s + _SHORT_S)
        with pytest.raises(TimeIsUp), alarm.limit(_SHORT_S):
            loop()


def cancels() -> None:
    signal.alarm(0)


def rings_later() -> None:
    signal.alarm(10_000)


def keeps_its_handler() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)


@pytest.mark.parametrize("block", [cancels, rings_later, keeps_its_handler])
def test_a_block_that_uses_the_signal_for_itself_does_not_end_the_limit_of_the_next(
    block: Callable[[], object],
) -> None:
    alarm = SystemAlarm()
    with alarm.ready():
        limited(alarm, 2 * _SHORT_S, block)
        ends_s = time.monotonic() + _LONG_S

        def wait() -> None:
            while time.monotonic() < ends_s:
                pass

        with pytest.raises(TimeIsUp):
            limited(alarm, 3 * _SHORT_S, wait)
