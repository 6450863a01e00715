"""Turn the calls of a counterexample into sentences: decide which calls share a sentence, and word it.

Consecutive calls of one actor become one sentence, which tells the calls that matter and counts the others. A *passage*
is the calls that one sentence tells.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast_checker.kernel.calls import Alternative, Call, Fault
from holdfast_checker.kernel.counterexample import ReplayedExecution
from holdfast_checker.kernel.world import DIES, View


class CallImportance(enum.IntEnum):
    """How important a call is in the description of a counterexample."""

    READ = 0
    """The call changes nothing; a story only counts it."""
    SMALL = 1
    """Bookkeeping; a story tells the call if the calls around it are not more important."""
    WORK = 2
    """A story always tells the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent:
    """One call of a replayed execution with its outcome, or the crash of an actor before its next call.

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
        """Return the fault that was injected into the call; None if there was none."""
        return Fault.CRASH if self.alternative is None else self.alternative.fault

    @property
    def label(self) -> str:
        """Return the label of the call's result; empty for the ordinary one."""
        return DIES if self.alternative is None else self.alternative.label

    @property
    def reply(self) -> object:
        """Return the value that the actor got from the call, or the error."""
        if self.alternative is None:
            return None
        return self.alternative.reply.error or self.alternative.reply.value


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPhrase:
    """The phrase for a call in a sentence, without the actor: verb, objects, rest, as in ``renames a into place``.

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
    weight: CallImportance = CallImportance.WORK


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrator:
    """A set of functions that put the calls, faults and states of one kind of world into words.

    Attributes:
        act: puts a call into words; if the actor crashes first, the call that is not made.
        fault: describes the fault of a call, to be appended to the words of the act: ``, but the reply is lost``. Never
            called for a crash.
        holds: describes the state in a few short lines, by title. The titles are always the same.
    """

    act: Callable[[CallEvent], CallPhrase]
    fault: Callable[[CallEvent], str]
    holds: Callable[[View], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class DescribedCall:
    """A call of a replayed execution, with the words that describe it."""

    event: CallEvent
    act: CallPhrase


Passage: TypeAlias = list[DescribedCall]
"""The calls that one sentence describes."""


def split_passages(history: ReplayedExecution, narrator: Narrator) -> list[Passage]:
    """Divide a replayed execution into passages, the groups of calls that share a sentence.

    A passage ends when the actor changes, or at a fault.

    The last call, which violates the property, gets a passage of its own if its passage has other calls to tell of.

    Guarantee: every call is in one passage, in order.
    """
    actors = history.space.world.actors
    views = [history.space.view(state) for state in history.states]
    found: list[Passage] = []
    for number, step in enumerate(history.steps, start=1):
        event = CallEvent(
            number=number,
            actor=actors[step.actor].name,
            call=step.call,
            alternative=step.alternative,
            before=views[number - 1],
            after=views[number],
        )
        last = found[-1][-1].event if found else None
        if last is None or last.actor != event.actor or last.fault is not None:
            found.append([])
        found[-1].append(DescribedCall(event, narrator.act(event)))
    if found and any(moment.act.weight is CallImportance.WORK for moment in found[-1][:-1]):
        found[-1:] = [found[-1][:-1], found[-1][-1:]]
    return found


# --- words ------------------------------------------------------------------------------------------------------------
def tell_passage(passage: Passage, narrator: Narrator) -> str:
    """Return one sentence that describes a group of consecutive calls of one actor; only the last may have a fault."""
    *calm, last = passage
    if last.event.fault is None:
        return f"{last.event.actor} {_describe_calls(passage)}."
    words = [*([_describe_calls(calm)] if calm else []), describe_call(last, narrator)]
    return f"{last.event.actor} {'; it '.join(words)}."


def describe_call(moment: DescribedCall, narrator: Narrator) -> str:
    """Return the words that describe one call and its fault, without the actor."""
    event, words = moment.event, _join_call_phrases([moment.act])
    if event.alternative is None:
        return f"{DIES} before it {words}"
    return words if event.fault is None else words + narrator.fault(event)


def _describe_calls(part: Passage) -> str:
    """Describe an actor's consecutive calls without faults: the important ones in words, others by their number."""
    weight = max(moment.act.weight for moment in part)
    if weight is CallImportance.READ:
        return f"reads ({len(part)} call{'s' if len(part) > 1 else ''})"
    alike: dict[tuple[str, str, str], list[CallPhrase]] = {}
    told = [moment.act for moment in part if moment.act.weight == weight]
    for act in told:
        alike.setdefault((act.verb, act.plural, act.tail), []).append(act)
    text = _join_words([_join_call_phrases(acts) for acts in alike.values()])
    rest = len(part) - len(told)
    return f"{text} (and {rest} more call{'s' if rest > 1 else ''})" if rest else text


def _join_call_phrases(acts: Sequence[CallPhrase]) -> str:
    """Join phrases of calls that differ only in their objects into one phrase."""
    first = acts[0]
    things = [thing for act in acts for thing in act.things]
    distinct = list(dict.fromkeys(things))
    if first.plural and (len(distinct) > 2 or len(distinct) < len(things)):
        distinct = [f"{len(things)} {first.plural}"]
    return f"{first.verb}{' ' if distinct else ''}{_join_words(distinct)}{first.tail}"


def _join_words(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
