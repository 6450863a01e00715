"""Define the words for calls and states that are needed to tell a history.

This package knows no domain; a domain, such as committers, supplies the words as a `Narrator`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast_checker.kernel.calls import Alternative, Call, Fault
from holdfast_checker.kernel.world import DIES, View


class Weight(enum.IntEnum):
    """How much a call matters in a story."""

    READ = 0
    """The call changes nothing; a story only counts it."""
    SMALL = 1
    """Bookkeeping; a story tells the call if the calls around it are not more important."""
    WORK = 2
    """A story always tells the call."""
    TURN = 3
    """The call changes what others see; a story tells it at its position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One call of a history, or the death of an actor before the call.

    Attributes:
        number: number of the call in the history, from 1.
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
        """Return the fault of the call; None if it has none."""
        return Fault.CRASH if self.alternative is None else self.alternative.fault

    @property
    def label(self) -> str:
        """Return the label that says how the call ended."""
        return DIES if self.alternative is None else self.alternative.label

    @property
    def reply(self) -> object:
        """Return the value or the error that the actor got."""
        if self.alternative is None:
            return None
        return self.alternative.reply.error or self.alternative.reply.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The description of a call, without its subject: ``renames`` + ``a`` + `` into place``.

    Attributes:
        verb: present tense, third person.
        things: the objects of the verb; if an actor's consecutive acts differ only in their things, these are listed
            together.
        plural: a plural noun for the things; if it is given, more than two things are counted instead of listed.
        tail: the rest of the sentence, including the leading space or comma.
    """

    verb: str
    things: tuple[str, ...] = ()
    plural: str = ""
    tail: str = ""
    weight: Weight = Weight.WORK


@dataclass(frozen=True, slots=True, order=True)
class Thing:
    """Something that exists after a call.

    Attributes:
        group: name of the group of things with which it is shown, such as ``visible files``.
        name: name of the thing, unique in its group.
        text: what the thing is, or what it contains.
    """

    group: str
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrator:
    """The words of one domain.

    Attributes:
        act: puts a call into words; for a death, the call that is not made.
        fault: describes the fault of a call, to be appended to the words of the act: ``, but the reply is lost``. Never
            called for a death.
        holds: describes the state in a few short lines, by title. The titles are always the same.
        things: lists everything that exists.
    """

    act: Callable[[Event], Act]
    fault: Callable[[Event], str]
    holds: Callable[[View], Mapping[str, str]]
    things: Callable[[View], Sequence[Thing]]
