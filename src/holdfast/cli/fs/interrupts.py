"""Let threads, and short work that must not end halfway, end before Ctrl-C or SIGTERM ends the command."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]


class StopRequested(Exception):
    """Raised in a worker thread that gives up its work because Ctrl-C or SIGTERM arrived."""


@dataclass
class StopFlag:
    """A flag that asks threads to stop, set by a signal handler.

    It is no `threading.Event`, whose lock would block a signal handler that interrupts `set`.
    """

    asked: bool = False

    def check(self) -> None:
        """Check whether the threads are asked to stop.

        Raises:
            StopRequested: the flag is set.
        """
        if self.asked:
            raise StopRequested


@contextlib.contextmanager
def stop_threads_first() -> Iterator[StopFlag]:
    """Yield a `StopFlag` that Ctrl-C and SIGTERM set; the first signal takes its usual effect after the block.

    An exception that a signal raises while threads are started or awaited would leave some of them running. So the
    block has to end soon after the flag is set; if it ends with an error, the signal takes precedence. A second signal
    takes effect at once. Only the main thread gets signals, and signals that were ignored stay ignored.
    """
    stop = StopFlag()
    arrived: list[int] = []
    handlers = _find_signal_handlers()

    def handle_signal(number: int, frame: FrameType | None) -> None:
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
                signal.signal(number, handle_signal)
            yield stop
    except Exception:
        end_as_signaled()
        raise
    end_as_signaled()


@contextlib.contextmanager
def delay_signals() -> Iterator[None]:
    """Delay the effect of Ctrl-C and SIGTERM to the end of the block, which must be short."""
    arrived: list[int] = []
    handlers = _find_signal_handlers()
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: arrived.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if arrived:
            handlers[arrived[0]](arrived[0], None)


def _find_signal_handlers() -> dict[int, _Handler]:
    """Return what handles the signals that end a command; nothing in other threads than the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    return {number: handler for number, handler in before.items() if callable(handler)}
