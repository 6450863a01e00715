"""A counterexample as numbered sentences: who does what, what goes wrong, what there is then, and what broke.

Knows no domain; a `Teller` has its words. A history of a hundred calls becomes a page: consecutive calls of one actor
are one sentence that says what matters and counts the rest, and where that is not short enough, the least interesting
neighbours are told together. The end is never told together with anything: it is what the story is about.
"""

from __future__ import annotations

import dataclasses
import enum
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.checker.kernel.calls import Alternative, Call, Fault
from holdfast.checker.kernel.counterexample import Counterexample
from holdfast.checker.kernel.replay import Replay, replay
from holdfast.checker.kernel.world import DIES, View, World
from holdfast.errors import InvalidRequestError

__all__ = ["SENTENCES", "Act", "Event", "Sentence", "Story", "Teller", "Thing", "ToldCall", "Weight", "tell"]

SENTENCES = 15
"""No story has more: what is longer is not read."""

_END = 3
"""So many sentences at the end are told by themselves."""

_TEXT = 100
"""Characters of a file that a story shows."""

_FORMAT = "holdfast-story/1"


# --- what a domain supplies -------------------------------------------------------------------------------------------
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
class Teller:
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


# --- stories ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ToldCall:
    """One call in full.

    Attributes:
        arguments, reply: as JSON has them; of bytes their number and a beginning.
        words: the call in words.
        things: what there is after it.
    """

    number: int
    actor: str
    resource: str
    operation: str
    arguments: Sequence[object]
    reply: object
    label: str
    fault: str | None
    words: str
    things: tuple[Thing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence.

    Attributes:
        holds: what there is after it: title to text.
        changes: the titles of what was different before.
        faults: those that happen in it; more than one only where a story would be too long.
    """

    number: int
    actors: tuple[str, ...]
    text: str
    calls: tuple[ToldCall, ...]
    holds: Mapping[str, str]
    changes: tuple[str, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A counterexample, told.

    Attributes:
        title: what breaks where.
        summary: of the world.
        property_name, property_title, meaning: which property, and what it asks.
        actors: all of the world, in its order.
        verdict: what broke.
        start: what there is before the first call.
    """

    title: str
    world: str
    summary: str
    property_name: str
    property_title: str
    meaning: str
    actors: tuple[str, ...]
    start: tuple[Thing, ...]
    sentences: tuple[Sentence, ...]
    verdict: str
    seed: int | None = None

    @property
    def calls(self) -> list[ToldCall]:
        """All calls, in order."""
        return [call for sentence in self.sentences for call in sentence.calls]

    def lines(self, *, details: bool = False, width: int = 110) -> list[str]:
        """The story as plain text.

        Args:
            details: show every call in full, too.
            width: characters of a line.
        """
        found = _wrap(self.title, "", width)
        found += _wrap(f"World: {self.world}{f' - {self.summary}' if self.summary else ''}", "", width)
        if self.meaning:
            found += _wrap(f"{self.property_name}: {self.meaning}", "", width)
        for sentence in self.sentences:
            found += _wrap(sentence.text, f"{sentence.number:>3}. ", width)
            for title in sentence.changes:
                found += _wrap(f"{title}: {sentence.holds[title]}", "     -> ", width)
            if details:
                for call in sentence.calls:
                    found += _wrap(_in_full(call), f"     {call.number:>4}  ", width)
        found += _wrap(f"Broken: {_heading(self.property_name, self.property_title)} - {self.verdict}", "", width)
        return found

    def document(self) -> dict[str, object]:
        """The story as JSON has it, with every call in full.

        Guarantee: equal stories have equal documents, in the same order; of a file's bytes, at most 100 are shown.
        """
        numbers: dict[Thing, int] = {}

        def refer(things: Sequence[Thing]) -> list[int]:
            return [numbers.setdefault(thing, len(numbers)) for thing in things]

        start = refer(self.start)
        calls: list[dict[str, object]] = []
        for sentence in self.sentences:
            for call in sentence.calls:
                fields = {field.name: getattr(call, field.name) for field in dataclasses.fields(call)}
                calls.append({**fields, "sentence": sentence.number, "things": refer(call.things)})
        return {
            "format": _FORMAT,
            "title": self.title,
            "world": {"name": self.world, "summary": self.summary, "actors": list(self.actors)},
            "property": {"name": self.property_name, "title": self.property_title, "meaning": self.meaning},
            "seed": self.seed,
            "sentences": [
                {
                    "number": sentence.number,
                    "actors": list(sentence.actors),
                    "text": sentence.text,
                    "calls": [call.number for call in sentence.calls],
                    "holds": dict(sentence.holds),
                    "changes": list(sentence.changes),
                    "faults": list(sentence.faults),
                }
                for sentence in self.sentences
            ],
            "verdict": self.verdict,
            "calls": calls,
            "start": start,
            "things": [{"group": thing.group, "name": thing.name, "text": thing.text} for thing in numbers],
        }


def tell(world: World, counterexample: Counterexample, teller: Teller) -> Story:
    """The story of a counterexample: at most `SENTENCES` sentences, the last of which breaks the property.

    Raises:
        InvalidRequestError: the counterexample does not fit the world, or nothing breaks in it.
    """
    history = replay(world, counterexample.choices)
    verdict = dict(history.broken).get(counterexample.property)
    if verdict is None:
        raise InvalidRequestError(
            "the property holds in this history: look for a new one", property=counterexample.property, world=world.name
        )
    start = history.line.view(history.states[0])
    sentences: list[Sentence] = []
    holds: Mapping[str, str] = teller.holds(start)
    for number, scene in enumerate(_scenes(_moments(history, teller)), start=1):
        sentences.append(_sentence(number, scene, teller, holds))
        holds = sentences[-1].holds
    found = next((one for one in world.properties if one.name == counterexample.property), None)
    title = "" if found is None else found.title
    return Story(
        title=f"{world.name} breaks {_heading(counterexample.property, title)}",
        world=world.name,
        summary=world.summary,
        property_name=counterexample.property,
        property_title=title,
        meaning="" if found is None else found.meaning,
        actors=tuple(actor.name for actor in world.actors),
        start=tuple(teller.things(start)),
        sentences=tuple(sentences),
        verdict=verdict,
        seed=counterexample.seed,
    )


# --- from calls to sentences ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Moment:
    event: Event
    act: Act

    @property
    def weight(self) -> Weight:
        return self.act.weight if self.event.fault is None else Weight.TURN


_Scene = list[_Moment]
"""What one sentence tells."""


def _moments(history: Replay, teller: Teller) -> list[_Moment]:
    actors = history.line.world.actors
    views = [history.line.view(state) for state in history.states]
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
    return [_Moment(event, teller.act(event)) for event in events]


def _scenes(moments: Sequence[_Moment]) -> list[_Scene]:
    """One actor's calls up to another's, or to a fault; the last call by itself where the calls before it matter."""
    scenes: list[_Scene] = []
    for moment in moments:
        last = scenes[-1][-1].event if scenes else None
        if last is None or last.actor != moment.event.actor or last.fault is not None:
            scenes.append([])
        scenes[-1].append(moment)
    if scenes and any(moment.weight >= Weight.WORK for moment in scenes[-1][:-1]):
        scenes[-1:] = [scenes[-1][:-1], scenes[-1][-1:]]
    while len(scenes) > SENTENCES:
        first = min(range(len(scenes) - _END - 1), key=lambda at: _loss(scenes[at], scenes[at + 1]))
        scenes[first : first + 2] = [scenes[first] + scenes[first + 1]]
    return scenes


def _loss(one: _Scene, other: _Scene) -> tuple[int, int, int]:
    """How much is lost if both are told in one sentence."""
    weights = (max(moment.weight for moment in scene) for scene in (one, other))
    return sum(weights), len(_actors(one + other)), len(one + other)


def _actors(scene: _Scene) -> tuple[str, ...]:
    return tuple(dict.fromkeys(moment.event.actor for moment in scene))


def _sentence(number: int, scene: _Scene, teller: Teller, before: Mapping[str, str]) -> Sentence:
    holds = dict(teller.holds(scene[-1].event.after))
    return Sentence(
        number=number,
        actors=_actors(scene),
        text=_tell_scene(scene, teller),
        calls=tuple(_told_call(moment, teller) for moment in scene),
        holds=holds,
        changes=tuple(title for title, text in holds.items() if before.get(title) != text),
        faults=tuple(moment.event.fault.value for moment in scene if moment.event.fault is not None),
    )


def _tell_scene(scene: _Scene, teller: Teller) -> str:
    parts: list[tuple[str, str]] = []
    for part in _parts(scene):
        parts.append((part[0].event.actor, _predicate(part, teller)))
    actors = [actor for actor, _ in parts]
    if len(set(actors)) == len(parts) > 1 and len({predicate for _, predicate in parts}) == 1:
        return f"{actors[0]} {parts[0][1]}; so {'does' if len(parts) == 2 else 'do'} {_list(actors[1:])}."
    return "; ".join(f"{actor} {predicate}" for actor, predicate in parts) + "."


def _parts(scene: _Scene) -> list[_Scene]:
    """By actor; in their order as soon as something turns in it."""
    found: list[_Scene] = []
    ordered = any(moment.weight is Weight.TURN for moment in scene)
    for moment in scene:
        mine = [part for part in (found[-1:] if ordered else found) if part[0].event.actor == moment.event.actor]
        if mine:
            mine[0].append(moment)
        else:
            found.append([moment])
    return found


def _predicate(part: _Scene, teller: Teller) -> str:
    """What one actor does, each fault behind the call that it hits."""
    clauses: list[str] = []
    calm: _Scene = []
    for moment in part:
        if moment.event.fault is None:
            calm.append(moment)
            continue
        if calm:
            clauses.append(_calm(calm))
            calm = []
        clauses.append(_words(moment, teller))
    if calm:
        clauses.append(_calm(calm))
    return "; it ".join(clauses)


def _words(moment: _Moment, teller: Teller) -> str:
    """One call in words, with what went wrong."""
    event, words = moment.event, _act([moment.act])
    if event.alternative is None:
        return f"{DIES} before it {words}"
    return words if event.fault is None else words + teller.fault(event)


def _calm(part: _Scene) -> str:
    """What an actor does where nothing goes wrong: what matters, and how many calls there are besides."""
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
    """Acts that differ in their things alone."""
    first = acts[0]
    things = [thing for act in acts for thing in act.things]
    distinct = list(dict.fromkeys(things))
    if first.plural and (len(distinct) > 2 or len(distinct) < len(things)):
        distinct = [f"{len(things)} {first.plural}"]
    return f"{first.verb}{' ' if distinct else ''}{_list(distinct)}{first.tail}"


def _list(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# --- calls in full ----------------------------------------------------------------------------------------------------
def _told_call(moment: _Moment, teller: Teller) -> ToldCall:
    event = moment.event
    return ToldCall(
        number=event.number,
        actor=event.actor,
        resource=event.call.resource,
        operation=event.call.operation,
        arguments=[_plain(each) for each in event.call.args],
        reply=_plain(event.reply),
        label=event.label,
        fault=None if event.fault is None else event.fault.value,
        words=_words(moment, teller),
        things=tuple(teller.things(event.after)),
    )


def _plain(value: object) -> object:
    """A value as JSON has it."""
    if value is None or isinstance(value, bool | int | float) or type(value) is str:
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, bytes):
        return {"bytes": len(value), "begin": value[:_TEXT].decode(errors="replace")}
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted((_plain(each) for each in value), key=str)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if dataclasses.is_dataclass(value):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return fields or type(value).__name__
    return str(value)


def _in_full(call: ToldCall) -> str:
    arguments = ", ".join(map(_brief, call.arguments))
    way = f" [{call.label}]" if call.label else ""
    return f"{call.actor}: {call.resource}.{call.operation}({arguments}) = {_brief(call.reply)}{way}"


def _brief(value: object) -> str:
    if isinstance(value, dict):
        if "bytes" in value:
            return f"{value['bytes']} bytes"
        if "error" in value:
            return f"{value['error']}: {value['message']}"
        return "{" + ", ".join(f"{key}: {_brief(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_brief, value))}]"
    return repr(value)


# --- text -------------------------------------------------------------------------------------------------------------
def _heading(name: str, title: str) -> str:
    return f"{name} {title}" if title and title.replace(" ", "-") != name else name


def _wrap(text: str, indent: str, width: int) -> list[str]:
    hanging = " " * len(indent)
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )
