"""Record histories of operations, for linearizability checks: invocation, response and outcome of each operation.

Time is a position in the history, not a clock time. All that a checker needs to know about real time is which operation
had ended before another one began. So consecutive invocations share a position, consecutive ends share the next one,
and histories that differ in nothing else are equal: a world with a `Recorder` has far fewer states than one that
numbers its events.

An operation ends with a value, or it fails and has no effect, or its outcome is unknown. In the last case, it may take
effect once, at any later time, or never. The outcome of an operation that has not ended, because its actor is still
running or dead, is unknown.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from holdfast.errors import ConflictError, HoldfastError, InvalidRequestError, UnavailableError, UnsupportedError
from holdfast_checker.kernel.calls import Access, Alternative, Call, Footprint, canonical_key
from holdfast_checker.kernel.world import Port, View

T = TypeVar("T")

HISTORY = "history"
"""The usual name of the resource of a world that records the operations: see `Recorder`."""

_NOTHING_HAPPENED = (ConflictError, InvalidRequestError, UnavailableError, UnsupportedError)
"""Errors that promise that nothing happened: see `holdfast.errors`. All other errors leave open what happened."""


class Outcome(enum.Enum):
    """How an operation of a history ended."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a recorded history: its invocation, its response, and its outcome.

    Attributes:
        who: the actor, which invokes one operation after the other.
        name, args: the operation and its arguments.
        invoked: the position of the operation's start in the history.
        ended: the position of the operation's end; None if it has not ended.
        value: the answer.
        notes: what the actor recorded during the operation, such as the reads and writes of a transaction.
    """

    who: str
    name: str
    args: tuple[object, ...] = ()
    invoked: int = 0
    ended: int | None = None
    outcome: Outcome = Outcome.UNKNOWN
    value: object = None
    notes: tuple[object, ...] = ()

    def precedes(self, other: Operation) -> bool:
        """Check whether this operation had ended before the other one began."""
        return self.ended is not None and self.ended < other.invoked

    def __str__(self) -> str:
        asked = f"{self.who}: {self.name}({', '.join(map(repr, self.args))})"
        return f"{asked} -> {self.value!r}" if self.outcome is Outcome.OK else f"{asked} -> {self.outcome.value}"


@dataclass(frozen=True, slots=True)
class History:
    """A recorded history of operations, ordered by positions; immutable: each method returns a new `History`."""

    operations: tuple[Operation, ...] = ()
    position: int = 0

    def invoke(self, who: str, name: str, args: tuple[object, ...] = ()) -> History:
        """Return the history extended by the invocation of an operation. Invocations have even positions."""
        position = self.position + self.position % 2
        found = (*self.operations, Operation(who=who, name=name, args=args, invoked=position))
        return History(tuple(sorted(found, key=lambda one: (one.invoked, one.who))), position)

    def add_notes(self, who: str, *notes: object) -> History:
        """Return the history with `notes`, such as reads and writes, appended to the actor's open operation."""
        last = self._open_operation(who)
        return self._with_change(last, replace(last, notes=(*last.notes, *notes)), self.position)

    def end(self, who: str, outcome: Outcome, value: object = None) -> History:
        """Return the history extended by the end of the actor's open operation. Ends have odd positions."""
        assert outcome is not Outcome.UNKNOWN, "an unknown outcome is not an event: the operation stays open"
        position = self.position + 1 - self.position % 2
        last = self._open_operation(who)
        return self._with_change(last, replace(last, outcome=outcome, value=value, ended=position), position)

    def _open_operation(self, who: str) -> Operation:
        last = next((one for one in reversed(self.operations) if one.who == who), None)
        assert last is not None and last.outcome is Outcome.UNKNOWN, f"{who} has no open operation"
        return last

    def _with_change(self, last: Operation, changed: Operation, position: int) -> History:
        return History(tuple(changed if one is last else one for one in self.operations), position)


class Recorder:
    """A resource that stores a `History`; actors call it when an operation begins and ends.

    The recorder's calls cannot fail, and they commute with those of other resources. `World.observed` need not include
    them: a violation found in a history remains when the history continues, and the footprints express which order of
    calls matters.
    """

    def initial_state(self) -> History:
        return History()

    def state_key(self, state: object) -> Hashable:
        return canonical_key(state)

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        history, args = cast("History", state), call.args[1:]
        if call.operation == "invoke":
            return [Alternative(state=history.invoke(actor, *cast("tuple[str, tuple[object, ...]]", args)))]
        if call.operation == "note":
            return [Alternative(state=history.add_notes(actor, *args))]
        if call.operation == "mark":
            return [Alternative(state=history.invoke(actor, str(args[0]), args[1:]).end(actor, Outcome.OK))]
        return [Alternative(state=history.end(actor, *cast("tuple[Outcome, object]", args)))]

    def footprint(self, call: Call) -> Footprint:
        """Return accesses for partial-order reduction: two invocations commute, or two ends, but not one of each."""
        who = str(call.args[0])
        if call.operation == "mark":
            return frozenset({Access(HISTORY, kind, writes=True, below=True) for kind in ("invoked/", "ended/")})
        if call.operation == "note":
            return frozenset({Access(HISTORY, f"notes/{who}", writes=True)})
        own, other = ("invoked", "ended") if call.operation == "invoke" else ("ended", "invoked")
        return frozenset({Access(HISTORY, f"{own}/{who}", writes=True), Access(HISTORY, f"{other}/", below=True)})

    def find_unblockers(self, state: object, call: Call) -> None:
        return None  # no call on a recorder blocks

    def state_after_death(self, state: object, actor: str) -> object:
        return state  # the operations of a dead actor stay open


def record_operation(
    port: Port,
    name: str,
    args: tuple[object, ...],
    act: Callable[[], T],
    *,
    answers: tuple[type[HoldfastError], ...] = (),
) -> T:
    """Call a function, and record its invocation, its result and its outcome as an operation of the history.

    Args:
        args: the arguments of the operation, as values.
        act: runs the operation, and returns its value.
        answers: errors that count as answers, such as "it exists already": the operation is ok, and its value is the
            name of the error's class. Any other error ends the operation as failed if the error promises that nothing
            happened; if not, the outcome is unknown.

    Raises:
        whatever `act` raises, after it was recorded.
    """
    who = port.name
    port.call(Call(HISTORY, "invoke", (who, name, args)))
    try:
        value = act()
    except answers as error:
        port.call(Call(HISTORY, "end", (who, Outcome.OK, type(error).__name__)))
        raise
    except _NOTHING_HAPPENED:
        port.call(Call(HISTORY, "end", (who, Outcome.FAILED, None)))
        raise
    port.call(Call(HISTORY, "end", (who, Outcome.OK, value)))
    return value


def record_event(port: Port, name: str, *args: object) -> None:
    """Record an event without duration in the history; it precedes all operations that begin later."""
    port.call(Call(HISTORY, "mark", (port.name, name, *args)))


def recorded_operations(view: View) -> tuple[Operation, ...]:
    """Return the operations recorded in a state of a world, by position; empty if the world has no recorder."""
    return cast("History", view.states[HISTORY]).operations if HISTORY in view.states else ()
