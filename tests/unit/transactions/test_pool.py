"""Permits and the pool survive interrupts: no place is lost, no connection is lent twice, or in a transaction."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from holdfast.runtime import SystemClock
from holdfast.transactions import pool as pool_module
from holdfast.transactions.pool import FairSemaphore, Pool, SemaphorePermit
from tests.children import Child
from tests.interrupts import interrupted_at
from tests.patience import PATIENCE_S, wait_until

CLOCK = SystemClock()


def _are_in_line(permits: FairSemaphore, count: int) -> bool:
    return len(permits._line) == count


def test_only_so_many_go_on_and_the_others_come_in_their_order() -> None:
    permits = FairSemaphore(2)
    order: list[int] = []

    def wait(number: int) -> None:
        with permits.hold(CLOCK, PATIENCE_S) as is_held:
            assert is_held
            order.append(number)

    threads = []
    with permits.hold(CLOCK, 0) as first:
        with permits.hold(CLOCK, 0) as second:
            assert first and second
            for number in range(5):
                threads.append(threading.Thread(target=wait, args=(number,)))
                threads[-1].start()
                wait_until(partial(_are_in_line, permits, 3 + number), "nobody waits")
            assert permits.count_holders() == 2
        for one in threads:
            one.join(PATIENCE_S)
        assert order == [0, 1, 2, 3, 4]
        assert permits.count_holders() == 1


def test_nobody_waits_longer_than_allowed() -> None:
    permits = FairSemaphore(1)
    with permits.hold(CLOCK, 0) as first, permits.hold(CLOCK, 0.01) as second:
        assert (first, second) == (True, False)
    with permits.hold(CLOCK, 0) as third:
        assert third, "who has left does not count"


def test_a_permit_is_free_when_its_holder_is_gone() -> None:
    permits = FairSemaphore(1)
    permit = SemaphorePermit()
    assert permits._wait_for_permit(permit, CLOCK, 0)
    with ThreadPoolExecutor(1) as threads:
        other = SemaphorePermit()
        waiting = threads.submit(permits._wait_for_permit, other, CLOCK, PATIENCE_S)
        del permit
        assert waiting.result(PATIENCE_S)


def test_closed_permits_are_given_to_nobody() -> None:
    permits = FairSemaphore(1)
    with permits.hold(CLOCK, 0) as first, ThreadPoolExecutor(1) as threads:
        assert first
        waiting = threads.submit(permits._wait_for_permit, SemaphorePermit(), CLOCK, PATIENCE_S)
        wait_until(partial(_are_in_line, permits, 2), "nobody waits")
        permits.is_closed = True
        assert not waiting.result(PATIENCE_S)


@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupt_at_any_line_leaves_no_permit_taken(count: int) -> None:
    line, is_within = 0, True
    while is_within:
        line += 1
        permits = FairSemaphore(count)

        def hold(permits: FairSemaphore = permits) -> None:
            for _ in range(2):
                with permits.hold(CLOCK, PATIENCE_S) as is_held:
                    assert is_held

        with ThreadPoolExecutor(2) as threads:
            others = [threads.submit(hold) for _ in range(2)]
            is_within = interrupted_at(line, hold, pool_module)
            for one in others:
                one.result(PATIENCE_S)
        hold()
        assert permits.count_holders() == 0
    assert line > 20


def test_a_child_has_permits_of_its_own() -> None:
    permits = FairSemaphore(1)
    with permits.hold(CLOCK, 0) as parents:
        assert parents
        permits.after_fork(is_ready=True)
        with permits.hold(CLOCK, 0) as own:
            assert own


class FakeConnection:
    """A connection that knows whether a transaction is open, and who uses it."""

    def __init__(self) -> None:
        self.is_open = True
        self.transactions = 0
        self.resets = 0

    def begin(self) -> None:
        self.transactions += 1
        assert self.transactions == 1, "somebody else uses the connection, or has left a transaction open"
        assert self.is_open

    def end(self) -> None:
        self.transactions -= 1

    def reset(self) -> None:
        self.resets += 1
        self.transactions = 0

    def close(self) -> None:
        self.is_open = False


def test_an_interrupt_at_any_line_costs_no_place() -> None:
    line, is_within = 0, True
    while is_within:
        line += 1
        pool = Pool(FakeConnection, 2, SystemClock(), PATIENCE_S)

        def use(pool: Pool[FakeConnection] = pool) -> None:
            for _ in range(2):
                with pool.lease() as connection:
                    connection.begin()
                    connection.end()

        def fail(pool: Pool[FakeConnection] = pool) -> None:
            for _ in range(2):
                with suppress(KeyError), pool.lease() as connection:
                    connection.begin()
                    raise KeyError

        for work in (use, fail):
            with ThreadPoolExecutor(2) as threads:
                others = [threads.submit(use) for _ in range(2)]
                is_within = interrupted_at(line, work, pool_module)
                for one in others:
                    one.result(PATIENCE_S)
            with pool.lease(0) as one_of_two, pool.lease(0) as another:
                assert one_of_two is not another
                one_of_two.begin()
                another.begin()
                one_of_two.end()
                another.end()
        pool.close()
    assert line > 40


def test_a_connection_is_reset_after_an_error_only() -> None:
    """A reset asks the server."""
    pool = Pool(FakeConnection, 1, SystemClock(), PATIENCE_S)
    with pool.lease() as connection:
        pass
    assert connection.resets == 0
    with suppress(KeyError), pool.lease() as connection:
        raise KeyError
    assert connection.resets == 1


def test_a_child_leaves_what_was_lent_to_its_parent_alone() -> None:
    """It unwinds the parent's block when it ends, and must not end the parent's transaction."""
    pool = Pool(FakeConnection, 1, SystemClock(), PATIENCE_S)
    block = pool.lease()
    connection = block.__enter__()
    connection.begin()

    def end_in_child() -> tuple[int, bool, int]:
        block.__exit__(None, None, None)
        with pool.lease(0) as own:
            assert own is not connection
        return connection.resets, connection.is_open, connection.transactions

    assert Child(end_in_child).result() == (0, True, 1)
    connection.end()
    block.__exit__(None, None, None)
    with pool.lease(0) as again:
        assert again is connection


def test_a_child_keeps_what_was_lent_to_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is collected as garbage says goodbye to the server, which ends the parent's session."""
    pool = Pool(FakeConnection, 1, SystemClock(), PATIENCE_S)
    block = pool.lease()
    connection = block.__enter__()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: -1)  # as if it had been lent in another process
        block.__exit__(None, None, None)
    kept = weakref.ref(connection)
    del block, connection
    gc.collect()
    assert kept() is not None


def test_a_pool_knows_that_it_is_closed() -> None:
    pool = Pool(FakeConnection, 1, SystemClock(), PATIENCE_S)
    assert not pool.is_closed
    pool.close()
    assert pool.is_closed


def test_who_waits_for_a_connection_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_LONGEST_NAP_S", PATIENCE_S)
    pool = Pool(FakeConnection, 1, SystemClock(), PATIENCE_S)

    def use() -> int:
        with pool.lease() as connection:
            return id(connection)

    with ThreadPoolExecutor(1) as threads:
        with pool.lease() as connection:
            waiting = threads.submit(use)
            wait_until(lambda: len(pool._permits._line) == 2, "nobody waits")
        assert waiting.result(PATIENCE_S) == id(connection)
