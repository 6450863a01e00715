"""Describe a world: actors, resources, fault budgets, and properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.checker.kernel.calls import Call, Fault, Resource
from holdfast.checker.kernel.process import Actor, Remembers

__all__ = ["DIES", "Choice", "Property", "View", "World"]


DIES = "dies"
"""The label of a step in which the actor crashes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The scheduler's choice: whose call comes next, and the label of the way in which it ends."""

    actor: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """What properties may inspect: the states of all resources."""

    states: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A condition that must hold.

    Attributes:
        name: a short and constant name, such as ``C4``.
        title: a title of a few words.
        meaning: the condition, in one sentence.
        step: given the views before and after a step and the actor's name, returns what the step broke, in words, or
            None.
        end: given the view of a state in which no actor moves any more without a fault, returns what does not hold, in
            words, or None.
    """

    name: str
    title: str
    meaning: str
    step: Callable[[View, View, str], str | None] | None = None
    end: Callable[[View], str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A world: everything that an exploration needs to know.

    Attributes:
        name: for reports, and for counterexamples, which are replayed in the world of this name.
        summary: one sentence: who acts, and what can go wrong.
        budgets: how often each fault may happen; a fault that is not listed never does.
        observed: says whether a property looks at something that a call may change. Steps with such calls are never
            reordered.
        remembers: given a process's past and its next call, returns the part of the past that the process still needs,
            or None if it needs all of it. Histories that are equal in this part are merged. Without `remembers`, no
            histories are merged.
    """

    name: str
    summary: str
    actors: tuple[Actor, ...]
    resources: Mapping[str, Resource]
    properties: tuple[Property, ...]
    budgets: Mapping[Fault, int]
    observed: Callable[[Call], bool]
    remembers: Remembers | None = None
