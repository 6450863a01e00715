"""Lanes bound what is under way, hand back the first error, and leave no thread behind."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from holdfast.seams import InlineLane, Lane, SerialRunner, ThreadLane, ThreadRunner

_BOUND_S = 30.0  # only a failing test waits that long

LANES: list[Callable[[], Lane]] = [InlineLane, lambda: ThreadLane(1), lambda: ThreadLane(3)]
_each = pytest.mark.parametrize("make", LANES, ids=["inline", "one thread", "three threads"])


def _fail() -> None:
    raise ValueError("a part was refused")


@_each
def test_a_drained_lane_has_done_everything(make: Callable[[], Lane]) -> None:
    lane = make()
    done: list[int] = []
    for number in range(50):
        lane.submit(lambda number=number: done.append(number))
    lane.drain()
    lane.close()
    assert sorted(done) == list(range(50))


@_each
def test_an_error_comes_back_once(make: Callable[[], Lane]) -> None:
    lane = make()

    def submit_and_drain() -> None:  # inline the first of the two raises, else the second
        lane.submit(_fail)
        lane.drain()

    with pytest.raises(ValueError, match="a part was refused"):
        submit_and_drain()
    lane.drain()
    lane.close()


@_each
def test_closing_raises_nothing_and_may_be_repeated(make: Callable[[], Lane]) -> None:
    lane = make()
    lane.submit(lambda: None)
    lane.close()
    lane.close()


def test_submitting_blocks_while_too_much_is_under_way() -> None:
    """Two threads: two run, two wait, and the fifth call waits for a place."""
    lane = ThreadLane(2)
    gate = threading.Event()
    fifth_accepted = threading.Event()
    for _ in range(4):
        lane.submit(lambda: gate.wait(_BOUND_S))

    def submit_fifth() -> None:
        lane.submit(lambda: None)
        fifth_accepted.set()

    submitter = threading.Thread(target=submit_fifth)
    submitter.start()
    assert not fifth_accepted.wait(0.05)
    gate.set()
    assert fifth_accepted.wait(_BOUND_S)
    submitter.join(_BOUND_S)
    lane.drain()
    lane.close()


def test_an_earlier_error_stops_further_work() -> None:
    lane = ThreadLane(1)
    lane.submit(_fail)
    ran: list[int] = []

    def submit_three() -> None:  # the failure is met at the latest when the lane is full
        for number in range(3):
            lane.submit(lambda number=number: ran.append(number))

    with pytest.raises(ValueError, match="a part was refused"):
        submit_three()
    lane.close()
    assert len(ran) <= 1


def test_closing_waits_for_what_runs_and_ends_the_threads() -> None:
    before = threading.active_count()
    lane = ThreadLane(2)
    started, gate, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        assert gate.wait(_BOUND_S)
        done.set()

    lane.submit(work)
    assert started.wait(_BOUND_S)
    closer = threading.Thread(target=lane.close)
    closer.start()
    gate.set()
    closer.join(_BOUND_S)
    assert done.is_set()
    assert threading.active_count() == before


def test_runners_hand_out_their_kind_of_lane() -> None:
    assert isinstance(SerialRunner().lane(), InlineLane)
    lane = ThreadRunner(2).lane()
    assert isinstance(lane, ThreadLane)
    lane.close()
