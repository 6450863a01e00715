"""Define calls of actors on shared resources, the faults that may happen, and the possible outcomes of a call.

A *resource* is something that actors share, such as a store. `Resource.alternatives` takes a resource's state and a
call and returns every possible result. States and replies are values that never change. So the exploration can return
to any state, and recognizes equal states.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from holdfast.errors import HoldfastError


class Fault(str, enum.Enum):
    """A kind of fault, such as a crash or a lost reply; a world limits how often each kind may happen."""

    CRASH = "crash"
    """An actor dies permanently between two calls."""
    PARTITION = "partition"
    """An actor is cut off from the driver, or the driver from actors that wait for it; all still reach the store."""
    LOST_REPLY = "lost reply"
    """A call takes effect, and its caller gets no reply."""
    FAILURE = "failure"
    """A call fails and has no effect."""
    STALE_LISTING = "stale listing"
    """A listing does not show an existing object."""
    CONTENTION = "contention"
    """A conditional write is refused because another write is in flight, and no object exists afterwards."""
    CLOCK = "clock"
    """A lease or a waiting time expires although its holder is still alive, and only slow."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an actor on a simulated resource: the resource's name, the operation, and immutable arguments."""

    resource: str
    operation: str
    args: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply that the caller of a simulated call gets: a value, or an error that is raised."""

    value: object = None
    error: HoldfastError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One possible result of a call on a simulated resource.

    Attributes:
        state: the state of the resource afterwards.
        label: the name of this outcome, for the scheduler's choices; unique among a call's alternatives, and empty for
            the outcome without a fault.
        fault: the fault that happens if the call ends in this way, or None.
    """

    state: object
    reply: Reply = Reply()
    label: str = ""
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write access of a call, for conflict detection: to one key, or to all keys with a prefix.

    Attributes:
        removes: whether the call only makes sure that the key does not exist, and does not report whether it did: such
            calls commute with each other. Implies `writes`.
    """

    space: str
    key: str
    writes: bool = False
    below: bool = False
    removes: bool = False

    def overlaps(self, other: Access) -> bool:
        """Check whether the two accesses may touch the same key."""
        if self.space != other.space:
            return False
        if self.below and other.below:
            return self.key.startswith(other.key) or other.key.startswith(self.key)
        if self.below:
            return other.key.startswith(self.key)
        return self.key.startswith(other.key) if other.below else self.key == other.key


Footprint = frozenset[Access]
"""All read and write accesses that a call may make, whatever its outcome."""


def may_conflict(one: Footprint, other: Footprint) -> bool:
    """Check whether two calls may fail to commute: both access the same key, and at least one of them writes it.

    The order of two removals does not matter: see `Access.removes`.
    """
    return any((a.writes or b.writes) and not (a.removes and b.removes) and a.overlaps(b) for a in one for b in other)


class Resource(Protocol):
    """A simulated resource that actors share, such as a store, a database or the messages of a cluster."""

    def initial_state(self) -> object:
        """Return the state of the resource in which every history (execution) starts."""
        ...

    def state_key(self, state: object) -> Hashable:
        """Return a hashable key of a state; states that no actor and no property can distinguish have equal keys."""
        ...

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        """Return all possible outcomes of a call in a state, the one without a fault first; empty if it blocks."""
        ...

    def footprint(self, call: Call) -> Footprint:
        """Return the accesses that a call may make, for partial-order reduction.

        Superfluous accesses only cost time; a missing one makes the exploration skip interleavings that differ."""
        ...

    def find_unblockers(self, state: object, call: Call) -> tuple[str, frozenset[Fault]] | None:
        """Return which actor's death and which faults can unblock a blocked call.

        Returns:
            The actor and the faults; None if any step of another actor may unblock it.
        """
        ...

    def state_after_death(self, state: object, actor: str) -> object:
        """Return the state of the resource after an actor crashed.

        A death may add possibilities for other actors, but must not remove any, except by changes in the footprint of
        the call that the dead actor would have made next. Then a death can be moved to an earlier position in a
        history, as that call can.
        """
        ...


T = TypeVar("T")

_ATOMS = frozenset({str, bytes, int, float, bool, type(None)})
_FIELDS: dict[type, tuple[str, ...]] = {}


def canonical_key(value: object) -> Hashable:
    """Return a hashable key for a value: equal for equal values, also for errors and for dataclasses with mappings."""
    kind = type(value)
    if kind in _ATOMS or isinstance(value, enum.Enum):
        return value
    if isinstance(value, tuple | list):
        return tuple(map(canonical_key, value))
    if isinstance(value, Mapping):
        return ("", *sorted((key, canonical_key(each)) for key, each in value.items()))
    if isinstance(value, BaseException):
        return (kind.__name__, str(value))
    if isinstance(value, frozenset):
        return frozenset(map(canonical_key, value))
    fields = _FIELDS.get(kind)
    if fields is None:
        assert dataclasses.is_dataclass(value), f"a {kind.__name__} is not a value: make it a frozen dataclass"
        fields = _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(value))
    return (kind.__name__, *[canonical_key(getattr(value, name)) for name in fields])


class ValueNumbering(Generic[T]):
    """Assigns consecutive numbers, from 0, to values; values with equal keys get the same number."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def number(self, key: Hashable, value: T) -> int:
        """Return the number of the value with this key; a key that is new gets the next number."""
        number = self._numbers.setdefault(key, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number
