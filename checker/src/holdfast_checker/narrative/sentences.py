"""Turn calls into sentences: decide which calls are told together, and how.

Consecutive calls of one actor become one sentence, which tells the calls that matter and counts the others. If there
are still too many sentences, the least interesting neighbors are joined, but never those at the end, which are the
point of the story. A *passage* is the calls that one sentence tells.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast_checker.kernel.calls import Alternative, Call, Fault
from holdfast_checker.kernel.counterexample import Replay
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


SENTENCES = 15
"""The maximum number of sentences of a story: nobody reads more."""

_END = 3
"""Number of sentences at the end of a story that are never joined."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A call, and the words for it."""

    event: Event
    act: Act

    @property
    def weight(self) -> Weight:
        """Return how much the call matters; a call with a fault always matters."""
        return self.act.weight if self.event.fault is None else Weight.TURN


Passage: TypeAlias = list[Moment]
"""The calls that one sentence describes."""


def _moments(history: Replay, narrator: Narrator) -> list[Moment]:
    actors = history.space.world.actors
    views = [history.space.view(state) for state in history.states]
    events = (
        Event(
            number=number,
            actor=actors[step.actor].name,
            call=step.call,
            alternative=step.alternative,
            before=views[number - 1],
            after=views[number],
        )
        for number, step in enumerate(history.steps, start=1)
    )
    return [Moment(event, narrator.act(event)) for event in events]


def passages(history: Replay, narrator: Narrator) -> list[Passage]:
    """Divide a history into passages: each ends when the actor changes, or at a fault.

    The last call becomes a separate passage if earlier calls in its passage matter as well.

    Guarantee: every call is in one passage, in order; there are at most `SENTENCES` passages.
    """
    found: list[Passage] = []
    for moment in _moments(history, narrator):
        last = found[-1][-1].event if found else None
        if last is None or last.actor != moment.event.actor or last.fault is not None:
            found.append([])
        found[-1].append(moment)
    if found and any(moment.weight >= Weight.WORK for moment in found[-1][:-1]):
        found[-1:] = [found[-1][:-1], found[-1][-1:]]
    while len(found) > SENTENCES:
        first = min(range(len(found) - _END - 1), key=lambda at: _loss(found[at], found[at + 1]))
        found[first : first + 2] = [found[first] + found[first + 1]]
    return found


def _loss(one: Passage, other: Passage) -> tuple[int, int, int]:
    """Return how much detail is lost if two passages are merged into one sentence, for comparison."""
    weights = (max(moment.weight for moment in passage) for passage in (one, other))
    return sum(weights), len(actors_of(one + other)), len(one + other)


def actors_of(passage: Passage) -> tuple[str, ...]:
    """Return the actors in a passage, in the order of their first calls."""
    return tuple(dict.fromkeys(moment.event.actor for moment in passage))


# --- words ------------------------------------------------------------------------------------------------------------
def tell_passage(passage: Passage, narrator: Narrator) -> str:
    """Return one sentence that tells the calls of a passage."""
    parts: list[tuple[str, str]] = []
    for part in _parts(passage):
        parts.append((part[0].event.actor, _predicate(part, narrator)))
    actors = [actor for actor, _ in parts]
    if len(set(actors)) == len(parts) > 1 and len({predicate for _, predicate in parts}) == 1:
        return f"{actors[0]} {parts[0][1]}; so {'does' if len(parts) == 2 else 'do'} {_list(actors[1:])}."
    return "; ".join(f"{actor} {predicate}" for actor, predicate in parts) + "."


def _parts(passage: Passage) -> list[Passage]:
    """Divide a passage into parts by one actor each; keep the order of calls if one of them is a `Weight.TURN`."""
    found: list[Passage] = []
    ordered = any(moment.weight is Weight.TURN for moment in passage)
    for moment in passage:
        mine = [part for part in (found[-1:] if ordered else found) if part[0].event.actor == moment.event.actor]
        if mine:
            mine[0].append(moment)
        else:
            found.append([moment])
    return found


def _predicate(part: Passage, narrator: Narrator) -> str:
    """Say what one actor does, and put each fault after the call that it hits."""
    clauses: list[str] = []
    calm: Passage = []
    for moment in part:
        if moment.event.fault is None:
            calm.append(moment)
            continue
        if calm:
            clauses.append(_calm(calm))
            calm = []
        clauses.append(words_of(moment, narrator))
    if calm:
        clauses.append(_calm(calm))
    return "; it ".join(clauses)


def words_of(moment: Moment, narrator: Narrator) -> str:
    """Describe one call and its fault."""
    event, words = moment.event, _act([moment.act])
    if event.alternative is None:
        return f"{DIES} before it {words}"
    return words if event.fault is None else words + narrator.fault(event)


def _calm(part: Passage) -> str:
    """Say what an actor does if no fault happens: the calls that matter, and the number of the others."""
    weight = min(Weight.WORK, max(moment.weight for moment in part))
    if weight is Weight.READ:
        return f"reads ({len(part)} call{'s' if len(part) > 1 else ''})"
    alike: dict[tuple[str, str, str], list[Act]] = {}
    told = [moment.act for moment in part if moment.weight >= weight]
    for act in told:
        alike.setdefault((act.verb, act.plural, act.tail), []).append(act)
    text = _list([_act(acts) for acts in alike.values()])
    rest = len(part) - len(told)
    return f"{text} (and {rest} more call{'s' if rest > 1 else ''})" if rest else text


def _act(acts: Sequence[Act]) -> str:
    """Put acts that differ only in their things into one phrase."""
    first = acts[0]
    things = [thing for act in acts for thing in act.things]
    distinct = list(dict.fromkeys(things))
    if first.plural and (len(distinct) > 2 or len(distinct) < len(things)):
        distinct = [f"{len(things)} {first.plural}"]
    return f"{first.verb}{' ' if distinct else ''}{_list(distinct)}{first.tail}"


def _list(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
