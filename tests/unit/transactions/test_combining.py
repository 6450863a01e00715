"""Every caller gets its own answer or an error, and nobody waits for somebody who has gone."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import pytest

from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.runtime import SystemClock
from holdfast.transactions import combining
from holdfast.transactions.combining import Combiner
from tests.interrupts import InterruptError, interrupted_at
from tests.patience import PATIENCE_S, wait_until


def _in_threads(count: int, work: Callable[[int], object]) -> list[object]:
    """Run something in threads; return the results, or the errors; fail if a thread hangs."""
    results: list[object] = [None] * count

    def run(number: int) -> None:
        try:
            results[number] = work(number)
        except (Exception, InterruptError) as error:  # noqa: BLE001  # the test looks at them
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE_S)
        assert not one.is_alive(), "a thread hangs"
    return results


def _double(requests: list[int]) -> list[int]:
    return [2 * one for one in requests]


def test_a_single_caller() -> None:
    combiner = Combiner(_double, limit=3)
    assert [combiner.submit(number) for number in range(5)] == [0, 2, 4, 6, 8]


class _SlowCount(set[object]):
    """Gives other threads time to come between the count and what is done with it."""

    def __len__(self) -> int:
        count = super().__len__()
        threading.Event().wait(0.02)
        return count


def test_there_is_one_leader_also_if_all_come_at_once() -> None:
    leading = _SlowCount()
    at_once: list[int] = []

    def run(requests: list[int]) -> list[int]:
        at_once.append(len(list(leading)))
        return requests

    combiner = Combiner(run, limit=10)
    inner: Any = combiner
    inner._leading = leading
    assert _in_threads(4, combiner.submit) == [0, 1, 2, 3]
    assert set(at_once) == {1}


def test_a_leader_gathers_until_the_callers_of_the_last_batch_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combining, "_LONGEST_GATHERING_S", PATIENCE_S)  # it is woken
    batches: list[list[int]] = []

    def run(requests: list[int]) -> list[int]:
        batches.append(requests)
        return requests

    combiner = Combiner(run, limit=10, clock=SystemClock())
    inner: Any = combiner
    inner._last_size, inner._last_s = 2, PATIENCE_S

    def work(number: int) -> int:
        if number:
            wait_until(lambda: inner._gathering is not None, "nobody gathers")
        return combiner.submit(number)

    assert _in_threads(2, work) == [0, 1]
    assert batches == [[0, 1]]


class _SlowList(list[object]):
    """Tells when it has been read, and gives other threads time before the reader goes on."""

    def __init__(self, is_read: threading.Event) -> None:
        super().__init__()
        self.is_read = is_read

    def __iter__(self) -> Iterator[object]:
        yield from super().__iter__()
        self.is_read.set()
        threading.Event().wait(0.1)


def test_who_comes_while_a_leader_leaves_is_not_forgotten() -> None:
    is_read = threading.Event()

    def run(requests: list[int]) -> list[int]:
        if 0 in requests:
            inner._queue = _SlowList(is_read)
        return requests

    combiner = Combiner(run, limit=10)
    inner: Any = combiner

    def work(number: int) -> int:
        assert number == 0 or is_read.wait(PATIENCE_S)
        return combiner.submit(number)

    assert _in_threads(2, work) == [0, 1]


class Gate:
    """A run function whose first call waits until it is opened, so that others queue up."""

    def __init__(self, run: Callable[[list[int]], Sequence[int]] = _double) -> None:
        self._run = run
        self.batches: list[list[int]] = []
        self.is_busy = threading.Event()
        self.opened = threading.Event()

    def __call__(self, requests: list[int]) -> Sequence[int]:
        self.batches.append(requests)
        self.is_busy.set()
        assert self.opened.wait(PATIENCE_S)
        return self._run(requests)


def _queue_up(combiner: Combiner[int, int], gate: Gate, count: int) -> list[object]:
    """Let one caller lead, and the others come one after the other while it works; return their results."""
    combiner_queue: Any = combiner

    def work(number: int) -> int:
        if number:
            assert gate.is_busy.wait(PATIENCE_S)
            wait_until(lambda: len(combiner_queue._queue) == number - 1, "the caller before does not come")
        else:
            threading.Thread(target=open_when_all_wait, daemon=True).start()
        return combiner.submit(number)

    def open_when_all_wait() -> None:
        wait_until(lambda: len(combiner_queue._queue) == count - 1, "not all come")
        gate.opened.set()

    return _in_threads(count, work)


def test_who_gets_the_lead_has_it_when_it_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow_wake(entry: Any, wake: Callable[[Any], None] = combining._wake) -> None:
        wake(entry)
        threading.Event().wait(0.02)

    monkeypatch.setattr(combining, "_wake", slow_wake)
    gate = Gate()
    assert _queue_up(Combiner(gate, limit=1), gate, 4) == [0, 2, 4, 6]


def test_those_who_wait_share_a_run() -> None:
    gate = Gate()
    combiner = Combiner(gate, limit=3)
    assert _queue_up(combiner, gate, 6) == [0, 2, 4, 6, 8, 10]
    assert gate.batches == [[0], [1, 2, 3], [4, 5]]


def test_a_batch_ends_where_it_is_told() -> None:
    gate = Gate()
    combiner = Combiner(gate, limit=10, take=lambda requests: min(2, len(requests)))
    _queue_up(combiner, gate, 6)
    assert gate.batches == [[0], [1, 2], [3, 4], [5]]


def test_an_error_of_the_run_reaches_its_batch_alone() -> None:
    def run(requests: list[int]) -> list[int]:
        if 1 in requests:
            raise UnavailableError("away") from ValueError("the cause")
        return requests

    gate = Gate(run)
    results = _queue_up(Combiner(gate, limit=2), gate, 5)
    assert [results[number] for number in (0, 3, 4)] == [0, 3, 4]
    errors = [results[1], results[2]]
    assert all(isinstance(one, UnavailableError) and isinstance(one.__cause__, ValueError) for one in errors)
    assert errors[0] is not errors[1], "threads must not share a traceback"


def test_a_run_that_answers_too_little_is_an_error() -> None:
    combiner: Combiner[int, int] = Combiner(lambda requests: [], limit=2)
    with pytest.raises(ValueError):
        combiner.submit(1)


@pytest.mark.parametrize("leaders", [1, 2, 5])
def test_thousands_of_rounds(leaders: int) -> None:
    """No wake-up is lost, each request is run once, and each caller gets the answer to its own request."""
    ran: Counter[tuple[int, int]] = Counter()
    busy, most = Counter[str](), Counter[str]()

    def run(requests: list[tuple[int, int]]) -> list[tuple[int, int]]:
        busy["now"] += 1
        most["now"] = max(most["now"], busy["now"])
        ran.update(requests)
        busy["now"] -= 1
        return requests

    combiner = Combiner(run, limit=4, take=lambda requests: max(1, len(requests) - 1), leaders=leaders)

    def work(number: int) -> bool:
        return all(combiner.submit((number, turn)) == (number, turn) for turn in range(500))

    assert _in_threads(12, work) == [True] * 12
    assert len(ran) == sum(ran.values()) == 12 * 500
    assert most["now"] <= leaders


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("leaders", [1, 2])
def test_an_interrupt_at_any_line_stops_nobody_else(leaders: int, repeats: bool) -> None:
    """Ctrl-C once took the lead, or a request, away with it, and the others waited forever."""
    line, is_within = 0, True
    while is_within:
        line += 1
        combiner = Combiner(_double, limit=2, leaders=leaders, repeats=repeats)
        came: list[bool] = []

        def work(
            number: int, combiner: Combiner[int, int] = combiner, came: list[bool] = came, line: int = line
        ) -> int:
            if number == 0:
                came.append(interrupted_at(line, lambda: [combiner.submit(7) for _ in range(3)], combining))
                return 0
            for _ in range(3):
                assert combiner.submit(number) == 2 * number
            return combiner.submit(number)

        for number, result in enumerate(_in_threads(4, work)):
            assert result == 2 * number or (isinstance(result, OutcomeUnknownError) and not repeats)
        assert combiner.submit(5) == 10
        is_within = came[0]
    assert line > 50


def test_an_interrupted_run_tells_the_others_that_the_outcome_is_unknown() -> None:
    def run(requests: list[int]) -> list[int]:
        if requests == [1, 2]:
            raise InterruptError
        return requests

    gate = Gate(run)
    results = _queue_up(Combiner(gate, limit=2), gate, 5)
    assert isinstance(results[1], InterruptError), "the leader was interrupted itself"
    assert isinstance(results[2], OutcomeUnknownError)
    assert [results[number] for number in (0, 3, 4)] == [0, 3, 4]


def test_an_interrupted_run_that_can_be_repeated_is_repeated() -> None:
    interrupts = [InterruptError()]

    def run(requests: list[int]) -> list[int]:
        if 1 in requests:
            raise interrupts.pop()
        return requests

    gate = Gate(run)
    results = _queue_up(Combiner(gate, limit=2, repeats=True), gate, 5)
    assert isinstance(results[1], InterruptError)
    assert [results[number] for number in (0, 2, 3, 4)] == [0, 2, 3, 4]


def test_a_signal_ends_the_wait_of_a_caller() -> None:
    """A signal handler runs in the main thread, which waits for another thread here, and gets the lead later."""
    gate = Gate()
    combiner = Combiner(gate, limit=1)
    results: list[int] = []
    leader = threading.Thread(target=lambda: results.append(combiner.submit(1)), daemon=True)
    leader.start()
    assert gate.is_busy.wait(PATIENCE_S)

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise InterruptError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptError):
            combiner.submit(99)
    finally:
        signal.signal(signal.SIGALRM, before)
    gate.opened.set()
    leader.join(PATIENCE_S)
    assert results == [2]
    assert _in_threads(3, combiner.submit) == [0, 2, 4]
    assert [99] not in gate.batches, "whoever was interrupted while it waited has withdrawn its request"


def test_a_child_starts_anew() -> None:
    """At the time of the fork, a thread of the parent leads, and others wait."""
    gate = Gate()
    combiner = Combiner(gate, limit=2)
    threads = [threading.Thread(target=combiner.submit, args=(number,), daemon=True) for number in range(3)]
    for one in threads:
        one.start()
    assert gate.is_busy.wait(PATIENCE_S)
    child = os.fork()
    if not child:
        gate.opened.set()
        os._exit(0 if _in_threads(4, combiner.submit) == [0, 2, 4, 6] else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.opened.set()
    for one in threads:
        one.join(PATIENCE_S)
        assert not one.is_alive()
