"""Work is repeated in the background as long as a block runs, and not longer."""

from __future__ import annotations

import threading

import pytest

from holdfast.runtime import NeverPeriodic, ThreadPeriodic
from tests.patience import PATIENCE_S


def test_work_is_repeated_in_another_thread() -> None:
    threads: list[int] = []
    is_enough = threading.Event()

    def work() -> None:
        threads.append(threading.get_ident())
        if len(threads) == 3:
            is_enough.set()

    with ThreadPeriodic().repeat(work, 0.001):
        assert is_enough.wait(PATIENCE_S)
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_the_end_of_the_block_waits_for_work_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the block would otherwise be beside it: a worker deletes its heartbeat there."""
    began, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []
    join = threading.Thread.join

    def work() -> None:
        began.set()
        assert may_end.wait(PATIENCE_S)
        ended.append(True)

    def release(thread: threading.Thread, timeout: float | None = None) -> None:
        may_end.set()
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", release)
    with ThreadPeriodic().repeat(work, 0.001):
        assert began.wait(PATIENCE_S)
    done = list(ended)
    may_end.set()
    assert done == [True]


def test_work_begins_after_the_first_interval() -> None:
    done: list[bool] = []
    with ThreadPeriodic().repeat(lambda: done.append(True), 10 * PATIENCE_S):
        pass
    with NeverPeriodic().repeat(lambda: done.append(True), 0.0):
        pass
    assert not done
