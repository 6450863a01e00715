"""Background executors bound the calls in flight, raise the first error, and leave no thread behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest

from holdfast.runtime import BackgroundExecutor, InlineExecutor, SerialRunner, ThreadExecutor, ThreadRunner
from tests.patience import PATIENCE_S

LANES: list[Callable[[], BackgroundExecutor]] = [InlineExecutor, lambda: ThreadExecutor(1), lambda: ThreadExecutor(3)]
_each = pytest.mark.parametrize("make", LANES, ids=["inline", "one thread", "three threads"])


def _fail() -> None:
    raise ValueError("a part was refused")


@_each
def test_a_drained_executor_has_run_everything(make: Callable[[], BackgroundExecutor]) -> None:
    background = make()
    done: list[int] = []
    for number in range(50):
        background.submit(lambda number=number: done.append(number))
    background.drain()
    background.close()
    assert sorted(done) == list(range(50))


@_each
def test_an_error_is_raised_every_time(make: Callable[[], BackgroundExecutor]) -> None:
    background = make()

    def submit_and_drain() -> None:  # inline, the first of the two raises; otherwise the second
        background.submit(_fail)
        background.drain()

    with pytest.raises(ValueError, match="a part was refused"):
        submit_and_drain()
    ran: list[int] = []
    for again in (background.drain, lambda: background.submit(lambda: ran.append(1)), background.drain):
        with pytest.raises(ValueError, match="a part was refused"):
            again()
    background.close()
    assert not ran, "nothing more is started"


@_each
def test_closing_raises_nothing_and_may_be_repeated(make: Callable[[], BackgroundExecutor]) -> None:
    background = make()
    background.submit(lambda: None)
    background.close()
    background.close()


def test_the_garbage_collector_does_not_wait() -> None:
    """Defect: it may run halfway through the start of a thread, which holds locks that the end of a thread takes."""
    over, ended = threading.Event(), threading.Event()

    class Owner:
        def __init__(self) -> None:
            self.itself = self
            self.background = ThreadExecutor(1)

        def __del__(self) -> None:
            self.background.close()

    def work() -> None:
        over.wait(PATIENCE_S)
        ended.set()

    owner = Owner()
    owner.background.submit(work)
    del owner
    gc.collect()
    assert not ended.is_set()
    over.set()
    assert ended.wait(PATIENCE_S)


def test_submitting_blocks_while_too_many_calls_are_in_flight() -> None:
    """Two threads: two run, two wait, and the fifth call waits for a place."""
    background = ThreadExecutor(2)
    gate = threading.Event()
    fifth_accepted = threading.Event()
    for _ in range(4):
        background.submit(lambda: gate.wait(PATIENCE_S))

    def submit_fifth() -> None:
        background.submit(lambda: None)
        fifth_accepted.set()

    submitter = threading.Thread(target=submit_fifth)
    submitter.start()
    assert not fifth_accepted.wait(0.05)
    gate.set()
    assert fifth_accepted.wait(PATIENCE_S)
    submitter.join(PATIENCE_S)
    background.drain()
    background.close()


def test_an_earlier_error_stops_further_work() -> None:
    background = ThreadExecutor(1)
    background.submit(_fail)
    ran: list[int] = []

    def submit_three() -> None:  # raised at the latest when the executor is full
        for number in range(3):
            background.submit(lambda number=number: ran.append(number))

    with pytest.raises(ValueError, match="a part was refused"):
        submit_three()
    background.close()
    assert len(ran) <= 1


def test_closing_waits_for_running_calls_and_ends_the_threads() -> None:
    before = threading.active_count()
    background = ThreadExecutor(2)
    started, gate, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        assert gate.wait(PATIENCE_S)
        done.set()

    background.submit(work)
    assert started.wait(PATIENCE_S)
    closer = threading.Thread(target=background.close)
    closer.start()
    gate.set()
    closer.join(PATIENCE_S)
    assert done.is_set()
    assert threading.active_count() == before


def test_runners_return_their_kind_of_background_executor() -> None:
    assert isinstance(SerialRunner().background(), InlineExecutor)
    background = ThreadRunner(2).background()
    assert isinstance(background, ThreadExecutor)
    background.close()
