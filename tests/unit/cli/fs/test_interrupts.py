"""The first signal waits until the threads have ended; a second one does not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.fs.interrupts import StopRequested, delay_signals, stop_threads_first
from holdfast.cli.fs.local_place import LocalPlace
from holdfast.runtime import SystemIds, ThreadRunner

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def _exit(number: int, frame: object) -> None:
    """What the command line does after SIGTERM."""
    sys.exit(128 + number)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Give the signals their usual handlers; afterwards, they must still have them."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _exit}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    try:
        yield
        assert {number: signal.getsignal(number) for number in usual} == usual
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(*events: signal.Signals | BaseException) -> tuple[BaseException, list[bool]]:
    """Return what ends a block in which this happens, and whether it was asked to stop before and after each signal."""
    asked: list[bool] = []

    def run() -> None:
        with stop_threads_first() as stop:
            asked.append(stop.asked)
            for event in events:
                if isinstance(event, BaseException):
                    raise event
                signal.raise_signal(event)
                asked.append(stop.asked)

    with pytest.raises((KeyboardInterrupt, SystemExit, StopRequested, ValueError)) as caught:
        run()
    return caught.value, asked


def _is_of(number: signal.Signals, error: BaseException) -> bool:
    if number == signal.SIGINT:
        return type(error) is KeyboardInterrupt
    return isinstance(error, SystemExit) and error.code == 143


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_takes_effect_when_the_block_has_ended(number: signal.Signals) -> None:
    error, asked = _end(number)
    assert (_is_of(number, error), asked) == (True, [False, True])


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("kind", [StopRequested, ValueError])
def test_an_error_of_the_block_gives_way_to_the_signal(number: signal.Signals, kind: type[Exception]) -> None:
    error, asked = _end(number, kind("a consequence"))
    assert (_is_of(number, error), type(error.__context__), asked) == (True, kind, [False, True])


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_signal_takes_effect_at_once(first: signal.Signals, second: signal.Signals) -> None:
    error, asked = _end(first, second)
    assert (_is_of(second, error), asked) == (True, [False, True])


@pytest.mark.parametrize("error", [StopRequested(), ValueError("a bug"), KeyboardInterrupt()], ids=repr)
def test_without_a_signal_errors_are_raised_as_they_are(error: BaseException) -> None:
    assert _end(error) == (error, [False])


def test_nothing_is_left_of_a_signal_after_the_block() -> None:
    with stop_threads_first():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As in a background job of a shell, or under nohup."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_threads_first() as stop:
        signal.raise_signal(signal.SIGINT)
        assert (stop.asked, signal.getsignal(signal.SIGINT)) == (False, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_another_thread_than_the_main_thread_leaves_signals_alone() -> None:
    def work(_: int) -> bool:
        with stop_threads_first() as stop:
            return stop.asked or signal.getsignal(signal.SIGINT) is not signal.default_int_handler

    assert list(ThreadRunner(1).map(work, [0])) == [False]


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_are_held_until_the_end_of_short_work(number: signal.Signals) -> None:
    done: list[int] = []

    def work() -> None:
        with delay_signals():
            for step in range(3):
                signal.raise_signal(number)
                done.append(step)

    with pytest.raises((KeyboardInterrupt, SystemExit)) as caught:
        work()
    assert (_is_of(number, caught.value), done) == (True, [0, 1, 2])
    with delay_signals():
        pass


def test_an_interrupt_leaves_no_hidden_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = LocalPlace(SystemIds()).create(str(tmp_path / "a"), overwrite=False)
    monkeypatch.setattr(os, "unlink", lambda path: (signal.raise_signal(signal.SIGINT), os.remove(path)))
    with pytest.raises(KeyboardInterrupt):
        sink.discard()
    assert list(tmp_path.iterdir()) == []
