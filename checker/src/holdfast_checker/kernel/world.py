"""Define simulated worlds: their actors (processes), shared resources, fault budgets, and properties.

Run a process as a plain function of the shipped code that can be suspended before any call.

A process is rerun from its start each time: calls that it made before get their recorded replies, and the first new
call raises `ProcessStopped`. That is not an `Exception`, so no handler of the code under test catches it, and every
further call raises it again. So the replies that a process got describe its state completely. `process_tree` stores the
tree of all histories of a process, and computes each node of the tree once.

The code must be a function of its replies: no clock, no random numbers, no threads, no iteration order of sets. If a
process makes other calls after the same replies, `NondeterminismError` is raised.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast_checker.kernel.calls import Call, Fault, Reply, Resource


class ProcessStopped(BaseException):
    """Raised inside a simulated process to suspend it; not an `Exception`, so that its handlers do not catch it."""


class NondeterminismError(AssertionError):
    """Raised if a simulated process makes different calls after the same replies.

    Look for clocks, random numbers, threads, and the iteration order of sets in the code under test."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A process in a simulated world, with its program.

    Attributes:
        name: a short and unique name, such as ``driver`` or ``task 0 attempt 1``.
        program: what the process does, from its start to its end; it accesses the world only through its port.
        mortal: whether it may crash.
    """

    name: str
    program: Callable[[Port], object]
    mortal: bool = True


class Port:
    """The connection of a simulated process to its world: the process makes all its calls through it.

    Args:
        number: number of the actor, from 0; makes its tokens differ from those of other actors.
        answer: returns the reply to a call, given its index and the call, or None to stop the process there.
    """

    def __init__(self, name: str, number: int, answer: Callable[[int, Call], Reply | None]) -> None:
        self.name = name
        self._number = number
        self._answer = answer
        self._calls = 0
        self._tokens = 0
        self._stopped = False

    def call(self, call: Call) -> object:
        """Make a call on a resource of the world: return the value of its reply, or raise the error in it."""
        if self._stopped:
            raise ProcessStopped
        reply = self._answer(self._calls, call)
        self._calls += 1
        if reply is None:
            self._stopped = True
            raise ProcessStopped
        if reply.error is not None:
            raise copy.copy(reply.error)  # a copy: tracebacks must not accumulate on a value
        return reply.value

    def close(self) -> None:
        """Refuse further calls, since the process has ended."""
        self._stopped = True

    def token(self) -> str:
        """Create an id of twelve hexadecimal digits that no other actor creates; it is the same in every run."""
        self._tokens += 1
        return f"{self._number + 1:04x}{self._tokens:08x}"


DIES = "dies"
"""The label of a step in which the actor crashes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of the scheduler: which actor takes the next step, and the label of the step's outcome."""

    actor: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """The states of all resources of a world, as properties inspect them."""

    states: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A condition that must hold in every step, or at the end, of each history of a world.

    Attributes:
        name: a short and constant name, such as ``C4``.
        title: a title of a few words.
        meaning: the condition, in one sentence.
        step: given the views before and after a step and the actor's name, describes what the step broke, or returns
            None.
        end: given the view of a state in which no actor can move anymore without a fault, describes what does not hold,
            or returns None.
    """

    name: str
    title: str
    meaning: str
    step: Callable[[View, View, str], str | None] | None = None
    end: Callable[[View], str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A simulated world to explore: its actors, resources, fault budgets and properties.

    Attributes:
        name: for reports, and for counterexamples, which are replayed in the world of this name.
        summary: one sentence: who acts, and what can go wrong.
        budgets: how often each fault may happen; a fault that is not listed never does.
        observed: says whether a property looks at something that a call may change. Steps with such calls are never
            reordered.
    """

    name: str
    summary: str
    actors: tuple[Actor, ...]
    resources: Mapping[str, Resource]
    properties: tuple[Property, ...]
    budgets: Mapping[Fault, int]
    observed: Callable[[Call], bool]
