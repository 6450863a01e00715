"""An alarm ends blocks that run for too long, wherever they are, and leaves nothing behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from holdfast.runtime import NoAlarm, SystemAlarm, TimeIsUp
from tests.patience import PATIENCE_S

_SHORT_S = 0.01


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def loop() -> None:
    while True:
        pass


def ring() -> None:
    """Let the time be over now."""
    signal.raise_signal(signal.SIGALRM)


def test_an_endless_loop_ends() -> None:
    with pytest.raises(TimeIsUp):
        with SystemAlarm().limit(_SHORT_S):
            loop()


def test_a_block_that_is_fast_enough() -> None:
    alarm = SystemAlarm()
    for _ in range(3):
        with alarm.limit(PATIENCE_S):
            pass


def test_an_error_of_the_block_is_raised() -> None:
    with pytest.raises(KeyError):
        with SystemAlarm().limit(PATIENCE_S):
            raise KeyError


def test_code_that_catches_exceptions_ends() -> None:
    def swallow() -> None:
        while True:
            try:
                loop()
            except Exception:  # noqa: BLE001, S110, PERF203 # that code of users may do so is what is tested
                pass

    with pytest.raises(TimeIsUp):
        with SystemAlarm().limit(_SHORT_S):
            swallow()


def test_a_block_that_catches_everything_has_not_ended_well() -> None:
    alarm = SystemAlarm()
    with pytest.raises(TimeIsUp):
        with alarm.limit(PATIENCE_S):
            try:
                ring()
            except BaseException:  # noqa: BLE001, S110 # that code of users may do so is what is tested
                pass
    with alarm.limit(PATIENCE_S):
        pass


def test_it_rings_again_for_code_that_catches_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.runtime.alarm._AGAIN_S", _SHORT_S)
    with pytest.raises(TimeIsUp):
        with SystemAlarm().limit(_SHORT_S):
            try:
                loop()
            except BaseException:  # noqa: BLE001 # that code of users may do so is what is tested
                loop()


def test_a_shielded_call_ends_first() -> None:
    alarm = SystemAlarm()
    did = []
    with pytest.raises(TimeIsUp):
        with alarm.limit(PATIENCE_S):
            with alarm.shielded():
                with alarm.shielded():
                    ring()
                did.append("inner")
            did.append("outer")
    assert did == ["inner"]


def test_the_error_of_a_shielded_call_is_raised() -> None:
    alarm = SystemAlarm()
    with pytest.raises(TimeIsUp):
        with alarm.limit(PATIENCE_S):
            try:
                with alarm.shielded():
                    ring()
                    raise KeyError
            except KeyError:
                pass


def test_a_shield_without_a_limit_does_nothing() -> None:
    alarm = SystemAlarm()
    with alarm.shielded():
        pass
    with pytest.raises(TimeIsUp):
        with alarm.limit(PATIENCE_S):
            ring()
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
