"""An alarm ends blocks that run for too long, wherever they are, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, takewhile
from types import FrameType
from typing import Any

import pytest

from holdfast.runtime import Alarm, TimeIsUp
from holdfast.runtime import alarm as alarm_module
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


def ring(alarm: Alarm) -> None:
    """Let the time of the block be over now."""
    alarm._deadline_s = time.monotonic()
    signal.raise_signal(signal.SIGALRM)


def wait_until_rung(rings_s: float) -> None:
    """Let the time of a timer pass that was set before."""
    while time.monotonic() < rings_s + _SHORT_S:
        pass


def nothing() -> None:
    pass


def test_an_endless_loop_ends() -> None:
    with pytest.raises(TimeIsUp):
        Alarm().run_with_time_limit(_SHORT_S, loop)


def test_a_block_that_is_fast_enough() -> None:
    alarm = Alarm()
    for _ in range(3):
        alarm.run_with_time_limit(PATIENCE_S, nothing)


def test_an_error_of_the_block_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        Alarm().run_with_time_limit(PATIENCE_S, lambda: 1 // 0)


def test_code_that_catches_exceptions_ends() -> None:
    def swallow() -> None:
        while True:
            with suppress(Exception):
                loop()

    with pytest.raises(TimeIsUp):
        Alarm().run_with_time_limit(_SHORT_S, swallow)


def test_a_block_that_catches_everything_has_not_ended_well() -> None:
    alarm = Alarm()

    def swallow() -> None:
        with suppress(BaseException):
            ring(alarm)

    with pytest.raises(TimeIsUp):
        alarm.run_with_time_limit(PATIENCE_S, swallow)
    alarm.run_with_time_limit(PATIENCE_S, nothing)


def test_it_rings_again_for_code_that_catches_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def swallow() -> None:
        with suppress(BaseException):
            loop()
        loop()

    monkeypatch.setattr("holdfast.runtime.alarm._AGAIN_S", _SHORT_S)
    with pytest.raises(TimeIsUp):
        Alarm().run_with_time_limit(_SHORT_S, swallow)


def test_a_shielded_call_ends_first() -> None:
    alarm = Alarm()
    did = []

    def work() -> None:
        with alarm.shielded():
            with alarm.shielded():
                ring(alarm)
            did.append("inner")
        did.append("outer")

    with pytest.raises(TimeIsUp):
        alarm.run_with_time_limit(PATIENCE_S, work)
    assert did == ["inner"]


def test_a_shielded_call_that_fails_when_time_is_up() -> None:
    alarm = Alarm()

    def fail() -> None:
        with suppress(ZeroDivisionError), alarm.shielded():
            ring(alarm)
            _ = 1 // 0

    with pytest.raises(TimeIsUp):
        alarm.run_with_time_limit(PATIENCE_S, fail)


def test_a_shield_without_a_limit_does_nothing() -> None:
    alarm = Alarm()
    with alarm.shielded():
        pass
    with pytest.raises(TimeIsUp):
        alarm.run_with_time_limit(PATIENCE_S, lambda: ring(alarm))
    with alarm.shielded():
        pass


def test_another_thread_is_not_limited() -> None:
    ended = threading.Event()
    alarm = Alarm()

    def wait() -> None:
        with alarm.shielded():
            threading.Event().wait(2 * _SHORT_S)

    def work() -> None:
        alarm.run_with_time_limit(_SHORT_S, wait)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE_S)
    assert ended.is_set()


def test_no_alarm() -> None:
    with Alarm(is_on=False).shielded():
        assert Alarm(is_on=False).run_with_time_limit(0, lambda: 7) == 7


_PLACES = (contextlib.__file__, alarm_module.__file__)
"""Not what these call: an error within a handler, where no signal comes, stays the context of all later ones."""


def rung_at(place: int) -> TimeIsUp | None:
    """Ring before one instruction of a call with a limit, and after the call; return the error of the first ring."""
    alarm = Alarm()
    passed = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal passed
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_filename in _PLACES and alarm._deadline_s is not None:
            passed += 1
            if passed == place:
                ring(alarm)
        return trace

    before = sys.gettrace()
    with alarm.ready():
        sys.settrace(trace)
        try:
            alarm.run_with_time_limit(PATIENCE_S, nothing)
        except TimeIsUp as error:
            return error
        finally:
            sys.settrace(before)
            signal.raise_signal(signal.SIGALRM)  # of the timer, which rings again: it ends nothing
    return None


def test_a_limit_ends_with_its_call_wherever_it_rings() -> None:
    errors = list(takewhile(bool, map(rung_at, count(1))))  # they are kept, as by a unit that fails
    assert len(errors) > 20


def test_each_of_many_blocks_has_its_own_time() -> None:
    alarm = Alarm()
    with alarm.ready():
        began_s = time.monotonic()
        alarm.run_with_time_limit(_SHORT_S, nothing)
        alarm.run_with_time_limit(
            60, lambda: wait_until_rung(began_s + _SHORT_S)
        )  # the timer of the first one rings, for nobody
        with pytest.raises(TimeIsUp):
            alarm.run_with_time_limit(_SHORT_S, loop)  # sooner than the one that runs for the call before


def test_a_timer_of_an_earlier_block_is_set_again_for_the_rest() -> None:
    alarm = Alarm()
    with alarm.ready():
        alarm.run_with_time_limit(_SHORT_S, nothing)
        began_s = time.monotonic()
        with pytest.raises(TimeIsUp):
            alarm.run_with_time_limit(3 * _SHORT_S, loop)
        assert time.monotonic() - began_s >= 2 * _SHORT_S


def test_a_shorter_limit_after_a_longer_one_has_its_own_timer() -> None:
    alarm = Alarm()
    with alarm.ready():
        alarm.run_with_time_limit(2 * _LONG_S, nothing)
        assert 0 < alarm.run_with_time_limit(_LONG_S, lambda: signal.getitimer(signal.ITIMER_REAL)[0]) <= _LONG_S


def test_a_timer_that_rings_too_early_is_set_to_the_rest() -> None:
    """The rest is shorter than the time after which it rings again anyway."""
    limit_s = 0.9

    def ring_early() -> float:
        signal.setitimer(signal.ITIMER_REAL, _LONG_S, _LONG_S)
        signal.raise_signal(signal.SIGALRM)
        return signal.getitimer(signal.ITIMER_REAL)[0]

    assert 0 < Alarm().run_with_time_limit(limit_s, ring_early) <= limit_s


def test_the_timer_ends_before_its_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring without a handler would end the process."""
    timers: list[tuple[float, float]] = []
    set_handler = signal.signal

    def note(number: int, handler: Any) -> Any:
        timers.append(signal.getitimer(signal.ITIMER_REAL))
        return set_handler(number, handler)

    monkeypatch.setattr(signal, "signal", note)
    Alarm().run_with_time_limit(_LONG_S, timers.clear)
    assert timers == [(0.0, 0.0)]


def test_a_timer_that_rings_between_two_blocks_ends_nothing() -> None:
    alarm = Alarm()
    with alarm.ready():
        began_s = time.monotonic()
        alarm.run_with_time_limit(_SHORT_S, nothing)
        wait_until_rung(began_s + _SHORT_S)
        with pytest.raises(TimeIsUp):
            alarm.run_with_time_limit(_SHORT_S, loop)


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
    alarm = Alarm()
    with alarm.ready():
        alarm.run_with_time_limit(2 * _SHORT_S, block)
        ends_s = time.monotonic() + _LONG_S

        def wait() -> None:
            while time.monotonic() < ends_s:
                pass

        with pytest.raises(TimeIsUp):
            alarm.run_with_time_limit(3 * _SHORT_S, wait)
