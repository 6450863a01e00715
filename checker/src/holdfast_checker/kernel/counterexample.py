"""Encode counterexamples as JSON that can be replayed: it contains the scheduler's choices, and what they broke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.commit.json_fields import count_field, guarded, json_line, json_object, require, text_field
from holdfast_checker.kernel.world import Choice

_FORMAT = "holdfast-counterexample/1"


@dataclass(frozen=True)
class Counterexample:
    """A history whose last step breaks a property.

    Attributes:
        world: the name of the world; the history can be replayed only there.
        property: name of the property.
        broke: a description of what broke.
        choices: for each step from the start, whose call came next, and how the call ended.
        seed: the seed of the random history that broke the property; None if exploration found it.
    """

    world: str
    property: str
    broke: str
    choices: tuple[Choice, ...]
    seed: int | None = None


def encode(counterexample: Counterexample) -> bytes:
    """Encode a counterexample as one line of JSON with sorted fields.

    Guarantee: equal counterexamples have equal bytes, and `decode` returns what was encoded.
    """
    record: dict[str, object] = {
        "broke": counterexample.broke,
        "choices": [[choice.actor, choice.label] for choice in counterexample.choices],
        "format": _FORMAT,
        "property": counterexample.property,
        "seed": counterexample.seed,
        "world": counterexample.world,
    }
    return json_line(record)


def decode(data: bytes, name: str = "counterexample") -> Counterexample:
    """Decode a counterexample, and check each field: the file may have been edited.

    Args:
        name: where the data come from, for the error.

    Raises:
        CorruptDataError: the data are not a counterexample.
    """
    return guarded(name, lambda: _decode(json_object(data)))


def _decode(value: dict[str, Any]) -> Counterexample:
    require(value["format"] == _FORMAT, f"the format is not {_FORMAT}")
    choices = value["choices"]
    require(isinstance(choices, list), "choices is not a list")
    return Counterexample(
        world=text_field(value, "world"),
        property=text_field(value, "property"),
        broke=text_field(value, "broke"),
        choices=tuple(map(_decode_choice, choices)),
        seed=None if value.get("seed") is None else count_field(value, "seed"),
    )


def _decode_choice(value: object) -> Choice:
    require(isinstance(value, list) and len(value) == 2, "a choice is not a pair")
    assert isinstance(value, list)
    actor, label = value
    require(isinstance(actor, str) and bool(actor), "a choice names no actor")
    require(isinstance(label, str), "the label of a choice is not a text")
    return Choice(actor, label)
