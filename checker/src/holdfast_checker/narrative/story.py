"""Describe a counterexample in numbered sentences: the calls of each actor, faults, states, and the violation.

The code here knows no domain: a `Narrator` supplies the words. The story's document contains every call.
"""

from __future__ import annotations

import dataclasses
import enum
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.counterexample import Counterexample, replay_choices
from holdfast_checker.kernel.world import World
from holdfast_checker.narrative.sentences import DescribedCall, Narrator, describe_call, split_passages, tell_passage

_TEXT = 100
"""Maximum number of characters of a file that a story shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailedCall:
    """One call of a story, with all details.

    Attributes:
        arguments, reply: JSON values; bytes are represented by their length and the first few of them.
        words: a description of the call.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence of a story.

    Attributes:
        holds: the state after the sentence, as short texts by title.
        changes: the titles whose text has changed since the sentence before.
    """

    number: int
    text: str
    calls: tuple[DetailedCall, ...]
    holds: Mapping[str, str]
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A counterexample described in numbered sentences, with the property that it violates.

    Attributes:
        title: a sentence that says which property breaks in which world.
        summary: summary of the world.
        property_name, property_title, meaning: name, title and meaning of the property that breaks.
        actors: all actors of the world, in order.
        verdict: what broke.
    """

    title: str
    world: str
    summary: str
    property_name: str
    property_title: str
    meaning: str
    actors: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    verdict: str
    seed: int | None = None

    def lines(self, *, details: bool = False, width: int = 110) -> list[str]:
        """Return the story as lines of plain text.

        Args:
            details: whether to show every call in full, in addition.
            width: maximum number of characters of a line.
        """
        found = _wrap_text(self.title, "", width)
        found += _wrap_text(f"World: {self.world}{f' - {self.summary}' if self.summary else ''}", "", width)
        if self.meaning:
            found += _wrap_text(f"{self.property_name}: {self.meaning}", "", width)
        for sentence in self.sentences:
            found += _wrap_text(sentence.text, f"{sentence.number:>3}. ", width)
            for title in sentence.changes:
                found += _wrap_text(f"{title}: {sentence.holds[title]}", "     -> ", width)
            if details:
                for call in sentence.calls:
                    found += _wrap_text(_format_call_in_full(call), f"     {call.number:>4}  ", width)
        found += _wrap_text(
            f"Broken: {property_heading(self.property_name, self.property_title)} - {self.verdict}", "", width
        )
        return found

    def to_json_value(self) -> dict[str, object]:
        """Return the story as a JSON value, with every call and all details.

        Guarantee: equal stories have equal documents, with fields in the same order; at most 100 bytes of a file are
        shown.
        """
        return dataclasses.asdict(self)


def tell_story(world: World, counterexample: Counterexample, narrator: Narrator) -> Story:
    """Describe a counterexample in sentences; the step in the last sentence violates the property.

    Raises:
        InvalidRequestError: the counterexample does not fit the world, or it breaks nothing.
    """
    history = replay_choices(world, counterexample.choices)
    verdict = dict(history.broken).get(counterexample.property)
    if verdict is None:
        raise InvalidRequestError(
            "the property holds in this history: run the check again",
            property=counterexample.property,
            world=world.name,
        )
    sentences: list[Sentence] = []
    before: Mapping[str, str] = narrator.holds(history.space.view(history.states[0]))
    for number, passage in enumerate(split_passages(history, narrator), start=1):
        holds = dict(narrator.holds(passage[-1].event.after))
        sentences.append(
            Sentence(
                number=number,
                text=tell_passage(passage, narrator),
                calls=tuple(_describe_call_in_detail(moment, narrator) for moment in passage),
                holds=holds,
                changes=tuple(title for title, text in holds.items() if before.get(title) != text),
            )
        )
        before = holds
    found = next((one for one in world.properties if one.name == counterexample.property), None)
    title = "" if found is None else found.title
    return Story(
        title=f"{world.name} breaks {property_heading(counterexample.property, title)}",
        world=world.name,
        summary=world.summary,
        property_name=counterexample.property,
        property_title=title,
        meaning="" if found is None else found.meaning,
        actors=tuple(actor.name for actor in world.actors),
        sentences=tuple(sentences),
        verdict=verdict,
        seed=counterexample.seed,
    )


# --- calls in full ----------------------------------------------------------------------------------------------------
def _describe_call_in_detail(moment: DescribedCall, narrator: Narrator) -> DetailedCall:
    event = moment.event
    return DetailedCall(
        number=event.number,
        actor=event.actor,
        resource=event.call.resource,
        operation=event.call.operation,
        arguments=[_to_json_value(each) for each in event.call.args],
        reply=_to_json_value(event.reply),
        label=event.label,
        fault=None if event.fault is None else event.fault.value,
        words=describe_call(moment, narrator),
    )


def _to_json_value(value: object) -> object:
    """Convert an argument or a reply of a call to a JSON value."""
    if value is None or isinstance(value, bool | int | float) or type(value) is str:
        return value
    if isinstance(value, enum.Enum):
        return _to_json_value(value.value)
    if isinstance(value, bytes):
        return {"bytes": len(value), "begin": value[:_TEXT].decode(errors="replace")}
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted((_to_json_value(each) for each in value), key=str)
    if isinstance(value, tuple | list):
        return [_to_json_value(each) for each in value]
    if dataclasses.is_dataclass(value):
        fields = {field.name: _to_json_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return fields or type(value).__name__
    return str(value)


def _format_call_in_full(call: DetailedCall) -> str:
    arguments = ", ".join(map(_shorten_value, call.arguments))
    way = f" [{call.label}]" if call.label else ""
    return f"{call.actor}: {call.resource}.{call.operation}({arguments}) = {_shorten_value(call.reply)}{way}"


def _shorten_value(value: object) -> str:
    if isinstance(value, dict):
        if "bytes" in value:
            return f"{value['bytes']} bytes"
        if "error" in value:
            return f"{value['error']}: {value['message']}"
        return "{" + ", ".join(f"{key}: {_shorten_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shorten_value, value))}]"
    return repr(value)


# --- text -------------------------------------------------------------------------------------------------------------
def property_heading(name: str, title: str) -> str:
    """Return the name of a property followed by its title; only one of them if they say the same."""
    return f"{name} {title}" if title and title.replace(" ", "-") != name else name


def _wrap_text(text: str, indent: str, width: int) -> list[str]:
    hanging = " " * len(indent)
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )
