"""Let threads, and short work that must not end halfway, end before Ctrl-C or SIGTERM ends the command."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]


class Stopped(Exception):
    """Work was given up, because a thread has noticed that it was asked to stop."""


@dataclass
class Stop:
    """Whether threads are asked to stop. Not an event: its lock would block a signal handler that interrupts `set`."""

    asked: bool = False

    def check(self) -> None:
        """Give the work in hand up if this was asked.

        Raises:
            Stopped: it was.
        """
        if self.asked:
            raise Stopped


@contextlib.contextmanager
def stop_threads_first() -> Iterator[Stop]:
    """Yield a `Stop` that Ctrl-C and SIGTERM set; the first of them takes its usual effect when the block has ended.

    An exception that a signal raises halfway through the start of a thread, or in the wait for threads, would leave
    some of them behind. So the block has to end soon after it is asked to; an error that ends it gives way to the
    signal. A second signal takes effect at once, for impatient users. Other threads than the main thread get no
    signals, and signals that were ignored stay so.
    """
    stop = Stop()
    arrived: list[int] = []
    handlers = _handlers()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.asked = True
        arrived.append(number)
        if len(arrived) > 1:
            handlers[number](number, frame)

    def end_as_signaled() -> None:
        if arrived:
            handlers[arrived[0]](arrived[0], None)

    try:
        with contextlib.ExitStack() as restoring:
            for number, handler in handlers.items():
                restoring.callback(signal.signal, number, handler)
                signal.signal(number, handle)
            yield stop
    except Exception:
        end_as_signaled()
        raise
    end_as_signaled()


@contextlib.contextmanager
def hold_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM take effect when the block has ended, which must not take long."""
    arrived: list[int] = []
    handlers = _handlers()
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: arrived.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if arrived:
            handlers[arrived[0]](arrived[0], None)


def _handlers() -> dict[int, _Handler]:
    """Return what handles the signals that end a command; nothing in other threads than the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    return {number: handler for number, handler in before.items() if callable(handler)}
