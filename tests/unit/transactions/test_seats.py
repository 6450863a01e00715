"""Seats: limited, in the order of arrival, and free when their holder is gone, wherever it was interrupted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from holdfast.runtime import SystemClock
from holdfast.transactions import seats as seats_module
from holdfast.transactions.seats import Seat, Seats
from tests.interrupts import interrupted_at
from tests.patience import PATIENCE_S, wait_until

CLOCK = SystemClock()


def _are_in_line(seats: Seats, count: int) -> bool:
    return len(seats._line) == count


def test_only_so_many_sit_and_the_others_come_in_their_order() -> None:
    seats = Seats(2)
    held = [Seat(), Seat()]
    assert [seats.take(one, CLOCK, 0) for one in held] == [True, True]
    order: list[int] = []

    def wait(number: int) -> None:
        seat = Seat()
        assert seats.take(seat, CLOCK, PATIENCE_S)
        order.append(number)
        seats.leave(seat)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        wait_until(partial(_are_in_line, seats, 3 + number), "nobody waits")
    seats.leave(held[0])
    seats.leave(held[0])
    for one in threads:
        one.join(PATIENCE_S)
    assert order == [0, 1, 2, 3, 4]
    assert seats.seated() == [held[1]]


def test_nobody_waits_longer_than_allowed() -> None:
    seats = Seats()
    first, second, third = Seat(), Seat(), Seat()
    assert seats.take(first, CLOCK, 0)
    assert not seats.take(second, CLOCK, 0.01)
    seats.leave(first)
    assert seats.take(third, CLOCK, 0), "who has left does not count"


def test_a_seat_is_free_when_its_holder_is_gone() -> None:
    seats = Seats()
    seat = Seat()
    assert seats.take(seat, CLOCK, 0)
    with ThreadPoolExecutor(1) as threads:
        other = Seat()
        waiting = threads.submit(seats.take, other, CLOCK, PATIENCE_S)
        del seat
        assert waiting.result(PATIENCE_S)


def test_closed_seats_send_everybody_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats_module, "_LONGEST_NAP_S", PATIENCE_S)  # they are woken
    seats = Seats()
    seat = Seat()
    assert seats.take(seat, CLOCK, 0)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(seats.take, Seat(), CLOCK, PATIENCE_S)
        wait_until(partial(_are_in_line, seats, 2), "nobody waits")
        seats.close()
        assert not waiting.result(PATIENCE_S)
    seats.leave(seat)
    assert not seats.take(seat, CLOCK, 0)


@pytest.mark.parametrize("count", [1, 2, None])
def test_an_interrupt_at_any_line_leaves_no_seat_taken(count: int | None) -> None:
    line, is_within = 0, True
    while is_within:
        line += 1
        seats = Seats(count)

        def sit(seats: Seats = seats) -> None:
            for _ in range(2):
                seat = Seat()
                try:
                    try:
                        assert seats.take(seat, CLOCK, PATIENCE_S)
                    finally:
                        seats.leave(seat)
                except BaseException:
                    seats.leave(seat)  # the first call may have been interrupted
                    raise

        with ThreadPoolExecutor(2) as threads:
            others = [threads.submit(sit) for _ in range(2)]
            is_within = interrupted_at(line, sit, seats_module)
            for one in others:
                one.result(PATIENCE_S)
        sit()
        assert seats.seated() == []
    assert line > 20


def test_a_child_has_seats_of_its_own() -> None:
    seats, parents = Seats(1), Seat()
    assert seats.take(parents, CLOCK, 0)
    seats.after_fork(is_ready=True)
    assert seats.take(Seat(), CLOCK, 0)
