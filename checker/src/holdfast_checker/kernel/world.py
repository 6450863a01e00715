"""Describe a world: actors, resources, fault budgets, and properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast_checker.kernel.calls import Call, Fault, Resource
from holdfast_checker.kernel.process import Actor, Remembers

DIES = "dies"
"""The label of a step in which the actor crashes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of the scheduler: which actor takes the next step, and the label of the step's outcome."""

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
        step: given the views before and after a step and the actor's name, describes what the step broke, or returns
            None.
        end: given the view of a state in which no actor can move anymore without a fault, describes what does not hold,
            or returns None.
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
