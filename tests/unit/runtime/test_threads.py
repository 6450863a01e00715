"""Threads: bounded, the first error ends a run, and none outlives its caller."""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from holdfast.runtime import (
    BackgroundExecutor,
    InlineExecutor,
    LoopThreads,
    Runner,
    SerialRunner,
    ThreadExecutor,
    ThreadRunner,
    repeat_in_thread,
)
from tests.patience import PATIENCE_S, wait_until

# --- background executor ----------------------------------------------------------------------------------------------
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


# --- runner -----------------------------------------------------------------------------------------------------------
RUNNERS = [SerialRunner(), ThreadRunner(1), ThreadRunner(4)]


def _runner_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("holdfast")]


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    assert _runner_threads() == []
    yield
    assert _runner_threads() == []


@pytest.mark.parametrize("runner", RUNNERS, ids=repr)
def test_results_come_in_the_order_of_the_items(runner: Runner) -> None:
    assert list(runner.map(lambda number: number * number, range(100))) == [number * number for number in range(100)]


@pytest.mark.parametrize("runner", RUNNERS, ids=repr)
def test_no_item_is_no_result(runner: Runner) -> None:
    assert list(runner.map(str, [])) == []


def test_a_slow_first_item_does_not_change_the_order() -> None:
    second_done = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert second_done.wait(PATIENCE_S)
        else:
            second_done.set()
        return number

    assert list(ThreadRunner(2).map(work, range(2))) == [0, 1]


@pytest.mark.parametrize(("runner", "ahead"), [(SerialRunner(), 1), (ThreadRunner(3), 6)], ids=repr)
def test_items_are_taken_only_as_results_are_consumed(runner: Runner, ahead: int) -> None:
    drawn = 0

    def endless() -> Iterator[int]:
        nonlocal drawn
        for number in itertools.count():
            drawn += 1
            yield number

    results = runner.map(lambda number: number, endless())
    assert drawn == 0
    for consumed in range(1, 20):
        assert next(results) == consumed - 1
        assert drawn <= consumed + ahead
    results.close()  # type: ignore[attr-defined]  # both runners are generators


@pytest.mark.parametrize("runner", RUNNERS, ids=repr)
def test_an_error_is_raised_as_it_is_and_ends_the_run(runner: Runner) -> None:
    error = ValueError("item 3")

    def work(number: int) -> int:
        if number == 3:
            raise error
        return number

    results = runner.map(work, range(1000))
    with pytest.raises(ValueError, match="item 3") as caught:
        list(results)
    assert caught.value is error
    assert list(results) == []


def test_the_first_error_in_time_wins_and_starts_nothing_further() -> None:
    """Item 0 is still running when item 1 fails: the items queued in the pool must not start."""
    failed = threading.Event()
    started: list[int] = []

    def work(number: int) -> int:
        started.append(number)
        if number == 0:
            assert failed.wait(PATIENCE_S)
            raise ValueError("the later error of the earlier item")
        failed.set()
        raise KeyError("the first error")

    with pytest.raises(KeyError, match="the first error"):
        list(ThreadRunner(2).map(work, range(100)))
    assert sorted(started) == [0, 1]


def test_items_in_flight_are_waited_for() -> None:
    both_started = threading.Barrier(2, timeout=PATIENCE_S)
    finished: list[int] = []

    def work(number: int) -> None:
        both_started.wait()
        if number == 0:
            raise ValueError("first")
        finished.append(number)

    with pytest.raises(ValueError, match="first"):
        list(ThreadRunner(2).map(work, range(2)))
    assert finished == [1]


def test_an_error_of_the_items_themselves_ends_the_run() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("the listing broke")

    with pytest.raises(OSError, match="the listing broke"):
        list(ThreadRunner(2).map(str, items()))


def test_an_abandoned_run_ends_its_threads() -> None:
    results = ThreadRunner(4).map(str, itertools.count())
    assert next(results) == "0"
    assert _runner_threads() != []
    del results
    gc.collect()
    assert _runner_threads() == []


def test_a_loop_that_is_left_waits_for_items_in_flight() -> None:
    started, left = threading.Event(), threading.Event()
    finished: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            started.set()
            assert left.wait(PATIENCE_S)
            finished.append(number)

    def leave() -> None:
        for _ in ThreadRunner(2).map(work, range(5)):
            assert started.wait(PATIENCE_S)
            left.set()
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        leave()
    assert finished == [1]


def test_the_garbage_collector_does_not_wait_for_a_run() -> None:
    """Defect: it may run halfway through the start of a thread, which holds locks that the end of a thread takes."""
    over = threading.Event()
    started: list[int] = []

    def work(number: int) -> None:
        started.append(number)
        if number > 0:
            over.wait(PATIENCE_S)

    results = ThreadRunner(1).map(work, itertools.count())
    next(results)
    wait_until(lambda: len(started) == 2, "item 1 does not start")
    cycle: list[object] = [results]
    cycle.append(cycle)
    del results, cycle
    gc.collect()
    assert _runner_threads() != []
    over.set()
    wait_until(lambda: not _runner_threads(), "the thread does not end")
    assert started == [0, 1]


def test_a_run_that_is_never_consumed_starts_no_thread() -> None:
    results = ThreadRunner(4).map(str, itertools.count())
    assert _runner_threads() == []
    del results


def test_fifty_runs_leave_the_thread_count_unchanged() -> None:
    """HADOOP-16570: a committer that kept a pool per job filled long-lived drivers with threads."""
    before = threading.active_count()
    for _ in range(50):
        assert len(list(ThreadRunner(8).map(str, range(20)))) == 20
        assert threading.active_count() == before


# --- periodic ---------------------------------------------------------------------------------------------------------
def test_work_is_repeated_in_another_thread() -> None:
    threads: list[int] = []
    is_enough = threading.Event()

    def work() -> None:
        threads.append(threading.get_ident())
        if len(threads) == 3:
            is_enough.set()

    with repeat_in_thread(work, 0.001):
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
    with repeat_in_thread(work, 0.001):
        assert began.wait(PATIENCE_S)
    done = list(ended)
    may_end.set()
    assert done == [True]


def test_work_begins_after_the_first_interval() -> None:
    done: list[bool] = []
    with repeat_in_thread(lambda: done.append(True), 10 * PATIENCE_S):
        pass
    assert not done


# --- threads for a loop -----------------------------------------------------------------------------------------------
def _count_own() -> int:
    return sum(1 for thread in threading.enumerate() if thread.name.startswith("holdfast-of a test"))


def test_the_loop_gets_what_its_calls_return_and_raise() -> None:
    threads = LoopThreads(3, "of a test")

    async def run() -> list[object]:
        calls: list[Callable[[], int]] = [lambda number=number: 1 // (number % 50) for number in range(500)]
        futures = [threads.run(call) for call in calls]
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), PATIENCE_S)

    found = asyncio.run(run())
    assert [type(one) for one in found] == [ZeroDivisionError if number % 50 == 0 else int for number in range(500)]
    threads.close()
    assert _count_own() == 0


def test_calls_that_wait_for_each_other_all_get_a_thread_of_the_loop() -> None:
    threads, together = LoopThreads(8, "of a test"), threading.Barrier(8)

    async def run() -> None:
        futures = [threads.run(lambda: together.wait(PATIENCE_S)) for _ in range(8)]
        await asyncio.wait_for(asyncio.gather(*futures), PATIENCE_S)

    asyncio.run(run())
    threads.close()
    assert _count_own() == 0


def test_threads_of_a_loop_end_what_they_accepted_before_they_close() -> None:
    threads, begun, done = LoopThreads(1, "of a test"), threading.Event(), []
    may_go_on = threading.Event()

    def first() -> None:
        begun.set()
        assert may_go_on.wait(PATIENCE_S)
        done.append(0)

    async def run() -> None:
        threads.run(first)
        for number in range(1, 20):
            threads.run(lambda number=number: done.append(number))
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert begun.wait(PATIENCE_S)
    may_go_on.set()
    threads.close()
    assert done == list(range(20))
    assert _count_own() == 0


def test_a_call_whose_caller_went_away_takes_no_result_from_another_one() -> None:
    threads, may_go_on = LoopThreads(2, "of a test"), threading.Event()
    futures: list[asyncio.Future[int]] = []

    def wait(number: int) -> int:
        assert may_go_on.wait(PATIENCE_S)
        return number

    def give_up(loop: object, problem: object) -> None:
        for future in futures:
            future.cancel(f"the loop has met {problem}")

    async def run() -> list[int]:
        asyncio.get_running_loop().set_exception_handler(give_up)
        futures.extend(threads.run(functools.partial(wait, number)) for number in range(9))
        futures.pop(4).cancel()
        may_go_on.set()
        return await asyncio.wait_for(asyncio.gather(*futures), PATIENCE_S)

    try:
        assert asyncio.run(run()) == [0, 1, 2, 3, 5, 6, 7, 8]
    finally:
        threads.close()


def test_threads_of_a_loop_that_never_ran_close() -> None:
    LoopThreads(2, "of a test").close()


def test_threads_of_a_loop_keep_nothing_of_a_call() -> None:
    class Big:
        """What a call has used."""

    threads = LoopThreads(2, "of a test")
    big = Big()
    kept = weakref.ref(big)

    async def run() -> None:
        nonlocal big
        await threads.run(lambda big=big: None)
        del big

    asyncio.run(run())
    gc.collect()
    wait_until(lambda: kept() is None, "the threads have let go of the call")
    threads.close()
