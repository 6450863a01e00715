"""Replay a history from the choices of the scheduler, and encode counterexamples as JSON that can be replayed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.commit.codec import (
    decode_record,
    encode_json_line,
    parse_json_object,
    read_count_field,
    read_text_field,
    require_valid,
)
from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.state_space import State, StateSpace, Step
from holdfast_checker.kernel.world import Choice, World

_FORMAT = "holdfast-counterexample/1"


@dataclass(frozen=True)
class Counterexample:
    """An execution of a world that violates a property, stored as the choices of the scheduler.

    Attributes:
        world: the name of the world; the history can be replayed only there.
        property: name of the property.
        broke: a description of the violation.
        choices: for each step from the start, whose call came next, and how the call ended.
        seed: the seed of the random history that broke the property; None if exploration found it.
    """

    world: str
    property: str
    broke: str
    choices: tuple[Choice, ...]
    seed: int | None = None


def encode_counterexample(counterexample: Counterexample) -> bytes:
    """Encode a counterexample as one line of JSON.

    Guarantee: equal counterexamples have equal bytes, and `decode_counterexample` returns what was encoded.
    """
    choices = [[choice.actor, choice.label] for choice in counterexample.choices]
    fields = {**vars(counterexample), "format": _FORMAT, "choices": choices}
    return encode_json_line(dict(sorted(fields.items())))


def decode_counterexample(data: bytes, name: str = "counterexample") -> Counterexample:
    """Decode a counterexample from its JSON, and validate each field, since the file may have been edited.

    Args:
        name: where the data come from, for the error.

    Raises:
        CorruptDataError: the data are not a counterexample.
    """
    return decode_record(name, lambda: _decode_json_value(parse_json_object(data)))


def _decode_json_value(value: dict[str, Any]) -> Counterexample:
    require_valid(value["format"] == _FORMAT, f"the format is not {_FORMAT}")
    require_valid(isinstance(value["choices"], list), "the choices are no list")
    choices = [Choice(actor, label) for actor, label in value["choices"]]
    texts = (text for choice in choices for text in (choice.actor, choice.label))
    require_valid(all(isinstance(text, str) for text in texts), "a choice is no pair of texts")
    require_valid(all(choice.actor for choice in choices), "a choice names no actor")
    return Counterexample(
        world=read_text_field(value, "world"),
        property=read_text_field(value, "property"),
        broke=read_text_field(value, "broke"),
        choices=tuple(choices),
        seed=None if value.get("seed") is None else read_count_field(value, "seed"),
    )


@dataclass(frozen=True)
class ReplayedExecution:
    """The result of replaying an execution from the scheduler's choices: steps, states, and violated properties.

    Attributes:
        space: the state space that explains the numbers in `states`.
        states: the states from the initial one on; one more than `steps`.
        broken: the properties that the last step violates and, if no actor can take another step, those that do not
            hold at the end; each as (name of the property, explanation).
    """

    space: StateSpace
    states: list[State]
    steps: list[Step]
    broken: tuple[tuple[str, str], ...]

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Return the scheduler's choices that the replay carried out, without those that it skipped."""
        actors = self.space.world.actors
        return tuple(Choice(actors[step.actor].name, step.label) for step in self.steps)


def replay_choices(world: World, choices: Iterable[Choice], *, lenient: bool = False) -> ReplayedExecution:
    """Re-execute a world step by step, following the given choices of the scheduler.

    Guarantee: the same choices give the same history; if the code under test has changed, the same history or an error.

    Args:
        lenient: whether to skip choices that cannot be taken, instead of raising an error.

    Raises:
        InvalidRequestError: a choice cannot be taken: the history belongs to another world or to other code.
    """
    space = StateSpace(world)
    actors = {actor.name: number for number, actor in enumerate(world.actors)}
    states, steps = [space.initial_state()], list[Step]()
    for choice in choices:
        actor = actors.get(choice.actor)
        ways = [] if actor is None else space.steps_of_actor(states[-1], actor)
        step = next((way for way in ways if way.label == choice.label), None)
        if step is not None:
            steps.append(step)
            states.append(step.target)
        elif not lenient:
            raise InvalidRequestError(
                "the history does not fit this world and this version of the code: look for a new one",
                world=world.name,
                step=len(steps) + 1,
                actor=choice.actor,
                label=choice.label,
            )
    return ReplayedExecution(space, states, steps, _violations_of_last_step(space, states, steps))


def _violations_of_last_step(space: StateSpace, states: list[State], steps: list[Step]) -> tuple[tuple[str, str], ...]:
    broken = space.violations_of_step(states[-2], steps[-1]) if steps else ()
    if space.is_final(states[-1]):
        broken += space.violations_at_end(states[-1])
    return broken
