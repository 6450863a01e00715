"""Limit how long calls run, by a timer signal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

_AGAIN_S = 1.0
_SHORTEST_S = 0.0005
"""A timer may ring a little early, and one of less than a microsecond is none."""


class TimeIsUp(BaseException):
    """Raised inside a call whose time limit has passed. Not an `Exception`, which code could catch by accident."""


class Alarm:
    """Limits how long calls run, by this process's timer signal (``SIGALRM``), which also interrupts endless loops.

    Works in the main thread only; in other threads calls run without a limit. A call into C is not interrupted.

    The signal is repeated every second: the call may catch `TimeIsUp`, or the system may deliver the signal to another
    thread; Python 3.11 then notifies the main thread only when that other thread does something else (`ceval.c`,
    COMPUTE_EVAL_BREAKER). So a call may end a second late.

    An instance belongs to one thread. A timer that other code has set is lost. A call that uses the signal itself may
    lose its own limit, but not that of the next call.

    Args:
        is_on: False to limit nothing, in simulations.

    Source: signal(2), setitimer(2); "Signals and threads" in the manual of Python's `signal`.
    """

    def __init__(self, *, is_on: bool = True) -> None:
        self._is_on = is_on
        self._is_ready = False
        self._deadline_s: float | None = None  # of the block that runs
        self._is_up = False
        self._shields = 0

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Keep the signal handler installed during a ``with`` block, so that many limited calls in it cost less."""
        if self._is_ready or not self._can_use_alarm_signal():
            yield
            return
        before = signal.signal(signal.SIGALRM, self._handle_alarm)
        self._is_ready = True
        try:
            yield
        finally:
            self._is_ready = False
            self._deadline_s = None
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)

    def run_with_time_limit(self, duration_s: float, call: Callable[[], T]) -> T:
        """Run `call` and return its result; raise `TimeIsUp` inside it once it has run for `duration_s` seconds, or at
        its end if it has caught the exception. Limited calls must not be nested. Without an alarm signal, as in threads
        other than the main one, there is no limit."""
        if not self._can_use_alarm_signal():
            return call()
        self._is_up = False
        self._shields = 0
        with nullcontext() if self._is_ready else self.ready():
            # A ring between any two of these statements raises; the outer block ends it all the same. A context manager
            # would leave out its end then, and the timer would ring again for whatever runs next.
            try:
                try:
                    self._deadline_s = time.monotonic() + duration_s
                    self._arm_timer(duration_s)
                    result = call()
                finally:
                    self._deadline_s = None
            finally:
                self._deadline_s = None
        if self._is_up:
            raise TimeIsUp
        return result

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Postpone `TimeIsUp` to the end of a ``with`` block inside a limited call: for code that would leave a broken
        connection if it was interrupted."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._is_up and self._deadline_s is not None and not self._shields:
            raise TimeIsUp

    def _can_use_alarm_signal(self) -> bool:
        return self._is_on and threading.current_thread() is threading.main_thread()

    def _arm_timer(self, duration_s: float) -> None:
        """Let the timer ring in time; the block before may have changed both the timer and what handles its signal."""
        if signal.getsignal(signal.SIGALRM) != self._handle_alarm:
            signal.signal(signal.SIGALRM, self._handle_alarm)
        # A timer that rings too early is set again then: so it is not set anew for each block.
        left_s, again_s = signal.getitimer(signal.ITIMER_REAL)
        if not again_s or left_s > duration_s:
            self._set(duration_s)

    def _set(self, duration_s: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, max(duration_s, _SHORTEST_S), _AGAIN_S)

    def _handle_alarm(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self._deadline_s is None:
            return
        left_s = self._deadline_s - now_s
        if left_s > _SHORTEST_S:
            if left_s < _AGAIN_S:
                self._set(left_s)
            return
        self._is_up = True
        if not self._shields:
            raise TimeIsUp
