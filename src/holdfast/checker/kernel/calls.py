"""What actors of a simulated world do: calls on resources, each with the ways in which it may end.

A resource is a value's life: `Resource.alternatives` takes a state and a call and says what may come of it. States and
replies are values; nothing is changed in place. So any state can be gone back to, and equal states are recognised.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.errors import HoldfastError

__all__ = ["Access", "Alternative", "Call", "Fault", "Footprint", "Reply", "Resource", "conflicts"]


class Fault(str, enum.Enum):
    """What can go wrong; each has a budget in a world."""

    CRASH = "crash"
    """An actor dies for ever between two calls."""
    PARTITION = "partition"
    """An actor is cut off from the driver, or the driver from those who wait for it; the store still hears it."""
    LOST_REPLY = "lost reply"
    """A call takes effect and its caller is not told."""
    FAILURE = "failure"
    """A call fails and has no effect."""
    STALE_LISTING = "stale listing"
    """A listing does not show something that is there."""
    CONTENTION = "contention"
    """A conditional write is refused because another one is said to be under way, and nothing is there afterwards."""
    CLOCK = "clock"
    """A lease or waiting time runs out although its holder lives: it is only slow."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call on a resource. `args` are values: the same call in the same state does the same."""

    resource: str
    operation: str
    args: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What the caller gets: a value, or an error that is raised."""

    value: object = None
    error: HoldfastError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One way in which a call may end.

    Attributes:
        label: which way, in words of a story; unique among the alternatives of a call. Empty: nothing special.
        fault: what it costs, or None.
        state: of the resource, afterwards.
    """

    state: object
    reply: Reply = Reply()
    label: str = ""
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """What a call may read or write: one key of a space, or every key that starts with it.

    Attributes:
        removes: whether all that the call does to it is to see to it that it is not there, and its caller is not told
            whether it was: such calls commute with each other. Implies `writes`.
    """

    space: str
    key: str
    writes: bool = False
    below: bool = False
    removes: bool = False

    def overlaps(self, other: Access) -> bool:
        """Whether both may touch the same thing."""
        if self.space != other.space:
            return False
        if self.below and other.below:
            return self.key.startswith(other.key) or other.key.startswith(self.key)
        if self.below:
            return other.key.startswith(self.key)
        return self.key.startswith(other.key) if other.below else self.key == other.key


Footprint = frozenset[Access]
"""All that a call may read or write, whichever way it ends."""


def conflicts(one: Footprint, other: Footprint) -> bool:
    """Whether the order of two calls may matter: they touch the same thing and one of them changes it."""
    return any((a.writes or b.writes) and not (a.removes and b.removes) and a.overlaps(b) for a in one for b in other)


class Resource(Protocol):
    """Something that actors share: a store, the messages of a cluster, a database."""

    def initial(self) -> object:
        """The state in which every history begins."""
        ...

    def key(self, state: object) -> Hashable:
        """Equal for states that no actor and no property can tell apart."""
        ...

    def alternatives(self, state: object, call: Call, actor: str) -> Sequence[Alternative]:
        """What may come of a call, the way without a fault first. Empty: the call has to wait in this state."""
        ...

    def footprint(self, call: Call) -> Footprint:
        """What the call may read or write. Must name too much rather than too little."""
        ...

    def waits_for(self, state: object, call: Call) -> tuple[str, frozenset[Fault]] | None:
        """The actor without whose death a call that has to wait will wait for ever, and the faults that end the wait
        all the same; None if anything may end it."""
        ...

    def bury(self, state: object, actor: str) -> object:
        """The state after an actor has died.

        May only let others do more than before, unless what it changes is in the footprint of the call that the actor
        would have made next: so a death can be moved forward like that call.
        """
        ...
