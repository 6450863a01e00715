"""What a domain supplies so that its histories can be told: the words for its calls, and for what there is."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.checker.kernel.calls import Alternative, Call, Fault
from holdfast.checker.kernel.world import DIES, View

__all__ = ["Act", "Event", "Narrator", "Thing", "Weight"]


class Weight(enum.IntEnum):
    """How much a call matters."""

    READ = 0
    """Changes nothing: counted."""
    SMALL = 1
    """Bookkeeping: told where a run of calls has nothing better."""
    WORK = 2
    """Told."""
    TURN = 3
    """Changes what others see: told in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One call of a history, or a death before it.

    Attributes:
        number: from 1.
        alternative: how the call ended; None if its actor died before it.
    """

    number: int
    actor: str
    call: Call
    alternative: Alternative | None
    before: View
    after: View

    @property
    def fault(self) -> Fault | None:
        """What went wrong."""
        return Fault.CRASH if self.alternative is None else self.alternative.fault

    @property
    def label(self) -> str:
        """Which way it went."""
        return DIES if self.alternative is None else self.alternative.label

    @property
    def reply(self) -> object:
        """The value or the error that the actor got."""
        if self.alternative is None:
            return None
        return self.alternative.reply.error or self.alternative.reply.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A call in words without its subject: ``renames`` + ``a`` + `` into place``.

    Attributes:
        verb: present tense, third person.
        things: what it is done to; those of equal acts of a run are told together.
        plural: what several things are called, so that more than two are counted.
        tail: the rest, with the space or the comma in front.
    """

    verb: str
    things: tuple[str, ...] = ()
    plural: str = ""
    tail: str = ""
    weight: Weight = Weight.WORK


@dataclass(frozen=True, slots=True, order=True)
class Thing:
    """Something that there is after a call.

    Attributes:
        group: of things that are shown together: ``visible files``.
        name: unique in its group.
        text: what it is or holds.
    """

    group: str
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrator:
    """The words of a domain.

    Attributes:
        act: a call in words; of a death, the call that is not made.
        fault: what went wrong, as it follows on the words of the act: ``, but the reply is lost``. Never for a death.
        holds: what there is, in a few short lines: title to text. The titles are always the same.
        things: what there is, one by one.
    """

    act: Callable[[Event], Act]
    fault: Callable[[Event], str]
    holds: Callable[[View], Mapping[str, str]]
    things: Callable[[View], Sequence[Thing]]
