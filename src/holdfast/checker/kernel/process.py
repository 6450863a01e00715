"""Processes that can be stopped, copied and gone back to, although they are plain functions of real code.

A process is run from its start each time: calls that it made before get the replies that they had, and at the first
new call it is left with `Stopped`, which is no `Exception`: no handler of the code under test can act on it, and every
further call is refused in the same way. So a process is wholly described by the replies that it has got. All its
histories form a tree; each place in it is computed once.

Where the world says what of its past can still matter to a process (`World.remembers`), histories that do not differ in
that are one place from there on. That is checked, too: whichever of them is run has to make the calls that the others
made.

The code must be a function of its replies: no clock, no chance, no threads, no order of sets. That is asserted: a
process that makes other calls for the same replies raises `NondeterminismError`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from holdfast.checker.kernel.calls import Call, Reply

__all__ = ["Actor", "NondeterminismError", "Past", "Port", "Remembers", "Stopped"]


@dataclass(frozen=True, slots=True)
class Past:
    """A call that a process has made, and what it was told; `mark` is equal for equal calls with equal replies."""

    call: Call
    reply: Reply
    mark: Hashable


Remembers = Callable[[Call, Sequence[Past]], Hashable | None]
"""From the call that a process is about to make and its past, all of the past that can still matter to it.

Equal keys: the same from here on. None: everything matters.
"""


class Stopped(BaseException):
    """The process is over for now. Not an `Exception`: nothing in it may run on."""


class NondeterminismError(AssertionError):
    """A process did something else after the same replies: look for clocks, chance, threads and the order of sets."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A process of a world.

    Attributes:
        name: short and unique: ``driver``, ``task 0 attempt 1``.
        program: what it does, from its start to its end; reaches the world through its port alone.
        mortal: whether it may crash.
    """

    name: str
    program: Callable[[Port], object]
    mortal: bool = True


class Port:
    """A process's only door to the world.

    Args:
        number: of the actor, from 0: makes its tokens unlike those of others.
        answer: gives the reply to the nth call, or None to stop the process.
    """

    def __init__(self, name: str, number: int, answer: Callable[[int, Call], Reply | None]) -> None:
        self.name = name
        self._number = number
        self._answer = answer
        self._calls = 0
        self._tokens = 0
        self._stopped = False

    def call(self, call: Call) -> object:
        """Make a call; returns its value or raises its error."""
        if self._stopped:
            raise Stopped
        reply = self._answer(self._calls, call)
        self._calls += 1
        if reply is None:
            self._stopped = True
            raise Stopped
        if reply.error is not None:
            raise copy.copy(reply.error)  # a fresh one: tracebacks must not pile up on a value
        return reply.value

    def close(self) -> None:
        """The process is over: whatever still has the port makes no more calls."""
        self._stopped = True

    def token(self) -> str:
        """Twelve hexadecimal digits that no other actor makes, the same in every run."""
        self._tokens += 1
        return f"{self._number + 1:04x}{self._tokens:08x}"
