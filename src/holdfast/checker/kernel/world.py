"""A world: actors, resources, budgets of faults, and properties. Its states are tuples of small numbers.

A state holds the number of each resource's state, of each actor's place, and what is left of each budget. A step is
one actor's next call, in one of the ways in which it may end, or that actor's death.
"""

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
    """What the scheduler chose: whose call, and the label of the way in which it ended."""

    actor: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """What properties may look at: the states of all resources."""

    states: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """Something that has to hold.

    Attributes:
        name: short and constant: ``C4``.
        title: a few words.
        meaning: one sentence.
        step: from the views before and after a step and the actor's name, what broke, in words, or None.
        end: the same for a state in which nobody acts any more unless something goes wrong.
    """

    name: str
    title: str
    meaning: str
    step: Callable[[View, View, str], str | None] | None = None
    end: Callable[[View], str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is explored.

    Attributes:
        name: for reports and for counterexamples, which are replayed in the world of their name.
        summary: one sentence: who acts and what may go wrong.
        budgets: how often each fault may happen; a fault that is not named never does.
        observed: whether a property looks at something that a call may change. Steps with such calls are never
            reordered.
        remembers: from the call that an actor is about to make and its past, what of that can still matter to it; None
            if all of it can. Histories that do not differ in that are taken for one. None: nobody forgets anything.
    """

    name: str
    summary: str
    actors: tuple[Actor, ...]
    resources: Mapping[str, Resource]
    properties: tuple[Property, ...]
    budgets: Mapping[Fault, int]
    observed: Callable[[Call], bool]
    remembers: Remembers | None = None
