"""Processes that write to one file take turns, whatever happens to one of them."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import AccessDeniedError, UnavailableError
from holdfast.runtime import SystemClock
from holdfast.transactions.sqlite.ticket_queue import TicketQueue, _ProcessQueues
from tests.children import Child, run_in_children
from tests.clocks import SimulatedClock
from tests.patience import PATIENCE_S, wait_until

CLOCK = SystemClock()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "queue")


def _drawn(path: str) -> int:
    """Return how many tickets were drawn so far."""
    return _counter(path, 0)


def _counter(path: str, position: int) -> int:
    """Read a counter; to open the file and close it would release the locks of this process."""
    return int.from_bytes(os.pread(TicketQueue.of(path)._descriptor, 8, position), "big")


def test_the_threads_of_a_process_take_turns(path: str) -> None:
    inside, most = Counter[str](), Counter[str]()

    def work() -> None:
        for _ in range(50):
            with TicketQueue.of(path).turn(CLOCK, PATIENCE_S):
                inside["now"] += 1
                most["now"] = max(most["now"], inside["now"])
                inside["now"] -= 1

    threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE_S)
        assert not one.is_alive()
    assert most["now"] == 1
    assert _drawn(path) == 300


def test_processes_are_served_in_the_order_of_their_tickets(path: str, tmp_path: Path) -> None:
    """Each of eight processes gets its share: nobody is served twice while another one waits."""
    order = tmp_path / "order"

    def work(number: int) -> None:
        queue = TicketQueue.of(path)
        with order.open("ab", buffering=0) as stream:
            for _ in range(25):
                with queue.turn(CLOCK, PATIENCE_S):
                    before = order.stat().st_size
                    stream.write(bytes([number]))
                    assert order.stat().st_size == before + 1, "somebody else is inside"

    run_in_children(8, work)
    served = order.read_bytes()
    assert Counter(served) == dict.fromkeys(range(8), 25)
    assert _drawn(path) == 200


def test_who_waits_is_not_overtaken(path: str) -> None:
    """A process that comes again and again gets its turn after those that came before."""
    queue = TicketQueue.of(path)
    with queue.turn(CLOCK, PATIENCE_S):
        waiting = Child(lambda: _served(path))
        wait_until(lambda: _drawn(path) == 2, "the child does not draw a ticket")
    with queue.turn(CLOCK, PATIENCE_S):
        assert _counter(path, 8) == 2
    assert waiting.result() == 1


def test_who_has_had_the_latest_ticket_is_not_served_before_others(path: str) -> None:
    """A process that is alone takes its next ticket in one step, unless others have drawn or served meanwhile."""
    assert [_served(path) for _ in range(3)] == [0, 1, 2]
    assert Child(lambda: _served(path)).result() == 3
    assert [_served(path) for _ in range(2)] == [4, 5]
    descriptor = TicketQueue.of(path)._descriptor
    os.pwrite(descriptor, (3).to_bytes(8, "big"), 8)
    with TicketQueue.of(path).turn(CLOCK, PATIENCE_S):
        assert _counter(path, 8) == 6
        waiting = Child(lambda: _served(path))
        wait_until(lambda: _drawn(path) == 8, "the child does not draw a ticket")
    assert waiting.result() == 7


def test_a_process_that_is_alone_does_not_wait_in_the_queue(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _served(path)
    monkeypatch.setattr(TicketQueue, "_draw_ticket", lambda *_args: pytest.fail("it draws a ticket"))
    assert [_served(path) for _ in range(3)] == [1, 2, 3]


def _served(path: str) -> int:
    """Take a turn; return the number of its ticket."""
    with TicketQueue.of(path).turn(CLOCK, PATIENCE_S):
        return _counter(path, 8)


@pytest.mark.parametrize("state", ["holding", "waiting"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_does_not_block_the_queue(path: str, state: str, number: signal.Signals) -> None:
    queue = TicketQueue.of(path)
    if state == "holding":
        victim = _holder(path)
        victim.signal(number)
    else:
        with queue.turn(CLOCK, PATIENCE_S):
            victim = Child(lambda: _served(path))
            wait_until(lambda: _drawn(path) == 2, "the child does not draw a ticket")
            victim.signal(number)
            assert victim.wait()[1] == -number
    with queue.turn(CLOCK, PATIENCE_S):
        pass
    if state == "holding":
        assert victim.wait()[1] == -number


def _holder(path: str) -> Child[None]:
    """Start a process that takes a turn and keeps it."""

    def hold() -> None:
        with TicketQueue.of(path).turn(CLOCK, PATIENCE_S):
            threading.Event().wait(PATIENCE_S)

    ticket = _drawn(path)
    child = Child(hold)
    wait_until(lambda: _drawn(path) > ticket, "the child does not draw a ticket")
    wait_until(lambda: os.fstat(TicketQueue.of(path)._descriptor).st_size >= 16, "the child is not served")
    return child


@pytest.mark.parametrize("state", ["holding", "waiting"])
def test_a_stopped_process_is_passed_over(path: str, state: str) -> None:
    """Ctrl-Z once stopped all other writers, until each gave up after a minute."""
    if state == "holding":
        stopped = _holder(path)
    else:
        with TicketQueue.of(path).turn(CLOCK, PATIENCE_S):
            stopped = Child(lambda: _served(path))
            wait_until(lambda: _drawn(path) == 2, "the child does not draw a ticket")
            stopped.signal(signal.SIGSTOP)
    if state == "holding":
        stopped.signal(signal.SIGSTOP)
    try:
        clock = SimulatedClock(step_s=0.3)  # so nobody waits
        for expected in range(3):
            waits = len(clock.waits)
            with TicketQueue.of(path).turn(clock, 60.0):
                pass
            assert len(clock.waits) == waits or not expected, "whoever was passed over once is not waited for again"
    finally:
        stopped.signal(signal.SIGKILL)
    assert stopped.wait()[1] == -signal.SIGKILL


def test_a_long_queue_that_moves_is_no_stalled_one(path: str) -> None:
    """Who waits for long, while others are served, does not overtake the rest of them."""
    holder = _holder(path)
    descriptor = TicketQueue.of(path)._descriptor

    class Moving(SimulatedClock):
        """At each wait, somebody is served; after the tenth, the queue is empty."""

        def sleep(self, duration_s: float) -> None:
            super().sleep(duration_s)
            os.pwrite(descriptor, (_counter(path, 8) + 1).to_bytes(8, "big"), 8)
            if len(self.waits) == 10:
                holder.signal(signal.SIGKILL)
                wait_until(lambda: TicketQueue.of(path)._are_tickets_released(0, 1), "the child does not end")

    clock = Moving(step_s=0.3)
    try:
        with TicketQueue.of(path).turn(clock, 60.0):
            waits = len(clock.waits)
    finally:
        holder.signal(signal.SIGKILL)
        holder.wait()
    assert waits == 10


def test_a_process_that_was_passed_over_goes_on(path: str) -> None:
    with TicketQueue.of(path).turn(CLOCK, PATIENCE_S):
        stopped = Child(lambda: _served(path))
        wait_until(lambda: _drawn(path) == 2, "the child does not draw a ticket")
        stopped.signal(signal.SIGSTOP)
    with TicketQueue.of(path).turn(SimulatedClock(step_s=0.3), 60.0):
        stopped.signal(signal.SIGCONT)
    assert stopped.result() == 1


def test_a_process_that_was_stopped_while_it_drew_is_passed_over(path: str) -> None:
    queue = TicketQueue.of(path)
    with queue.turn(CLOCK, PATIENCE_S):
        pass

    def draw() -> None:
        descriptor = os.open(path, os.O_RDWR)
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, 0)
        os.pwrite(descriptor, b"", 0)
        Path(f"{path}-locked").touch()
        threading.Event().wait(PATIENCE_S)

    stopped = Child(draw)
    wait_until(lambda: os.path.exists(f"{path}-locked"), "the child does not lock")
    try:
        assert not queue._try_take_next_ticket()
        with queue.turn(SimulatedClock(step_s=0.3), 60.0):
            pass
    finally:
        stopped.signal(signal.SIGKILL)
    assert stopped.wait()[1] == -signal.SIGKILL


class InterruptError(BaseException):
    """What Ctrl-C raises."""


def test_an_interrupt_leaves_no_ticket_behind(path: str) -> None:
    """A ticket that an interrupted call had drawn once blocked all other processes, while this one lived."""
    queue = TicketQueue.of(path)
    holder = _holder(path)

    class Interrupting(SystemClock):
        def sleep(self, duration_s: float) -> None:
            raise InterruptError

    with pytest.raises(InterruptError), queue.turn(Interrupting(), PATIENCE_S):
        pass
    holder.signal(signal.SIGKILL)
    holder.wait()
    assert Child(lambda: _served(path)).result() == 2
    with queue.turn(CLOCK, PATIENCE_S):
        pass


def test_an_error_inside_ends_the_turn(path: str) -> None:
    queue = TicketQueue.of(path)
    with pytest.raises(KeyError), queue.turn(CLOCK, PATIENCE_S):
        raise KeyError
    assert Child(lambda: _served(path)).result() == 1


def test_a_wait_has_an_end(path: str) -> None:
    queue = TicketQueue.of(path)
    begun, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with queue.turn(CLOCK, PATIENCE_S):
            begun.set()
            is_over.wait(PATIENCE_S)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE_S)
    with pytest.raises(UnavailableError, match="another thread"), queue.turn(CLOCK, 0.01):
        pass
    is_over.set()
    thread.join(PATIENCE_S)
    holder = _holder(path)
    with pytest.raises(UnavailableError, match="other processes"), queue.turn(SimulatedClock(step_s=0.01), 0.5):
        pass
    holder.signal(signal.SIGKILL)
    holder.wait()


def test_a_queue_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(AccessDeniedError, match="the queue beside the database file"):
        TicketQueue.of(str(tmp_path / "none" / "queue"))


@pytest.mark.parametrize("found", [b"\xff" * 16, b"\x7f" + b"\xff" * 15, b"\0\0\xff" + b"\xff" * 13, b"short"])
def test_garbage_in_the_file_stops_nobody(path: str, found: bytes) -> None:
    """The queue is about fairness only, and anything may have written into its file."""
    Path(path).write_bytes(found)
    queue = TicketQueue.of(path)
    for _ in range(3):
        with queue.turn(CLOCK, PATIENCE_S):
            assert 0 < _drawn(path) <= 2**48

    def work(number: int) -> None:
        for _ in range(10):
            with TicketQueue.of(path).turn(CLOCK, PATIENCE_S):
                pass

    run_in_children(3, work)


def test_a_file_that_fails_lets_everybody_go_on(path: str) -> None:
    def use() -> int:
        queue = TicketQueue.of(path)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        turns = 0
        for _ in range(3):
            with queue.turn(CLOCK, PATIENCE_S):
                turns += 1
        return turns

    assert Child(use).result() == 3
    with TicketQueue.of(path).turn(CLOCK, PATIENCE_S):
        assert _drawn(path) == 1


def test_a_queue_that_was_closed_lets_its_users_go_on(path: str) -> None:
    queue = TicketQueue.of(path)
    os.unlink(path)
    TicketQueue.of(f"{path}-2")  # closes those of deleted files
    for _ in range(2):
        with queue.turn(CLOCK, PATIENCE_S):
            queue.close_without_waiting()


def test_a_file_has_one_queue_while_it_exists(path: str) -> None:
    queues = [TicketQueue.of(f"{path}-{number}") for number in range(3)]
    assert [TicketQueue.of(f"{path}-{number}") for number in range(3)] == queues
    with queues[0].turn(CLOCK, PATIENCE_S):
        assert _drawn(f"{path}-0") == 1


def test_threads_that_come_at_once_open_a_file_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped, opened = os.open, []

    def slow_open(name: str, *given: Any) -> int:
        opened.append(name)
        threading.Event().wait(0.05)
        return shipped(name, *given)

    monkeypatch.setattr(os, "open", slow_open)
    with ThreadPoolExecutor(3) as threads:
        assert len(set(threads.map(TicketQueue.of, [f"{path}-new"] * 3))) == 1
    assert opened.count(f"{path}-new") == 1


def test_the_queues_of_a_parent_are_closed_in_its_child(path: str) -> None:
    queues = _ProcessQueues()
    queue = queues.of(path)
    queues.after_fork(is_ready=True)  # as in a child
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(queue._descriptor)
    assert queues.of(path) is not queue


def test_a_queue_that_has_started_anew_is_waited_for(path: str) -> None:
    """Its file is another one, or was damaged: its tickets are smaller than those that were passed over."""
    queue = TicketQueue.of(path)
    queue._passed = 1000
    is_inside = threading.Event()

    def enter() -> None:
        with queue.turn(CLOCK, PATIENCE_S):
            is_inside.set()

    holder = _holder(path)
    with ThreadPoolExecutor(1) as threads:
        entering = threads.submit(enter)
        try:
            assert not is_inside.wait(0.2)
        finally:
            holder.signal(signal.SIGKILL)
            holder.wait()
        entering.result(PATIENCE_S)
