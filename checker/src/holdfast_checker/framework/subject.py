"""Define what a check needs to know about its subject, such as a committer or a namespace: scenes, goals, properties.

A *scene* is a short description of a world. A *goal* is something that at least one history of a scene must reach: a
property says what must never happen, and a world in which nothing happens violates no property.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.guarantees import Answer
from holdfast.wording import nearest
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import Property, View, World
from holdfast_checker.narrative.sentences import Narrator

_DRAWN = re.compile(r"drawn-(\d+)-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A short description of a world; each kind of subject adds what its worlds need.

    Attributes:
        name: up to a slash, the name of the family of scenes that belong together.
        summary: who acts, and what can go wrong.
        budgets: how often each fault may happen.
        properties: names of the properties to judge; None for all.
        reached: names of the goals that some history must reach.
    """

    name: str
    summary: str = ""
    budgets: Mapping[Fault, int] = field(default_factory=dict)
    properties: tuple[str, ...] | None = None
    reached: tuple[str, ...] = ("all",)

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]


S = TypeVar("S", bound=Scene)
_Judge = Callable[..., "str | None"]


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that a history may reach.

    Attributes:
        meaning: what is reached, in a few words.
        end: whether the final state of a history shows it.
        step: whether a step reaches it, given the views before and after the step and the name of the actor.

    Both functions take the context first: see `GoalTracker.watching`.
    """

    meaning: str
    end: Callable[[Any, View], bool] | None = None
    step: Callable[[Any, View, View, str], bool] | None = None


class GoalTracker:
    """Notes which goals the histories of a world reach, as a property that is never violated.

    Args:
        wanted: names of the goals to look for; those that are not in `goals` are ignored.
        goals: by name.
    """

    def __init__(self, wanted: Iterable[str], goals: Mapping[str, Goal]) -> None:
        self.goals = goals
        self.wanted = tuple(name for name in wanted if name in goals)
        self.reached: set[str] = set()

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the goals that no history has reached so far."""
        return tuple(name for name in self.wanted if name not in self.reached)

    def watching(self, context: Callable[[View], Any] = lambda view: None) -> Property:
        """Return the property, which has no title.

        Args:
            context: returns what the goals need to know in addition to a view.
        """

        def step(before: View, after: View, actor: str) -> None:
            for name in self.missing:
                reaches = self.goals[name].step
                if reaches is not None and reaches(context(after), before, after, actor):
                    self.reached.add(name)

        def end(view: View) -> None:
            for name in self.missing:
                reaches = self.goals[name].end
                if reaches is not None and reaches(context(view), view):
                    self.reached.add(name)

        is_stepwise = any(self.goals[name].step is not None for name in self.wanted)
        return Property(name="goals", title="", meaning="", step=step if is_stepwise else None, end=end)


@dataclass(frozen=True, kw_only=True)
class Subject(Generic[S]):
    """What is checked, and how.

    Attributes:
        name: what users type.
        title: what is checked, in a few words.
        build: builds the world of a scene; a tracker records the goals that histories reach.
        narrate: returns the words for a world.
        properties: names of the properties, the one whose violation is the most harmful first.
        goals: by name.
        scenes, small, others: the quick scenes; larger ones, which take minutes; and those that are explored only if
            they are named.
        find: returns a scene whose name follows a rule; None if it does not.
        draw: returns random scene `number` of a seed.
        walk: the scene of random walks, unless another one is named; None to draw scenes.
        many: for each family of several scenes, what happens in them.
        declared: returns what `holdfast committers` declares about a property; None for a subject without declarations.
    """

    name: str
    title: str
    build: Callable[[S, GoalTracker | None], World]
    narrate: Callable[[World], Narrator]
    properties: Sequence[str]
    goals: Mapping[str, Goal]
    scenes: Mapping[str, S]
    small: Mapping[str, S]
    others: Mapping[str, S] = field(default_factory=dict)
    find: Callable[[str], S | None] = lambda name: None
    draw: Callable[[int, int], S] | None = None
    walk: S | None = None
    many: Mapping[str, str] = field(default_factory=dict)
    declared: Callable[[str], Answer | None] | None = None

    @cached_property
    def all_scenes(self) -> Mapping[str, S]:
        """Return all scenes that have a name of their own."""
        return {**self.scenes, **self.others, **self.small}

    @cached_property
    def families(self) -> Mapping[str, tuple[S, ...]]:
        """Return the scenes that belong together, such as all pairs, by the name of the family."""
        found: dict[str, tuple[S, ...]] = {}
        for scene in self.all_scenes.values():
            found[scene.family] = (*found.get(scene.family, ()), scene)
        return found

    @cached_property
    def described(self) -> Mapping[str, Property]:
        """Return the properties by name, to show their titles and meanings."""
        scene = next(iter(self.scenes.values()))
        return {one.name: one for one in self.build(scene, None).properties}

    def find_scenes(self, name: str) -> tuple[S, ...]:
        """Return the scene with this name, or all scenes of the family with this name; ``-`` and ``_`` are equivalent.

        Raises:
            InvalidRequestError: the name is unknown; the message suggests the most similar name.
        """
        wanted = _key(name)
        by_key = {_key(each): scene for each, scene in self.all_scenes.items()}
        scene = by_key.get(wanted) or self._drawn(wanted) or self.find(name)
        if scene is not None:
            return (scene,)
        members = {_key(each): found for each, found in self.families.items()}
        if wanted in members:
            return members[wanted]
        family, slash, _rest = wanted.partition("/")
        known = [one.name for one in members[family]] if slash and family in members else list(self.families)
        raise InvalidRequestError(f"unknown scene: {nearest(name, known, listed_by=LIST)}", scene=name)

    def _drawn(self, name: str) -> S | None:
        found = _DRAWN.fullmatch(name)
        return self.draw(int(found[1]), int(found[2])) if found and self.draw is not None else None

    def find_property(self, name: str) -> str:
        """Return the canonical name of a property: ``T1`` for ``t1``.

        Raises:
            InvalidRequestError: the name is unknown; the message suggests the most similar name.
        """
        return find_name(name, self.properties, "property")


LIST = "holdfast check --list"


def find_name(name: str, known: Iterable[str], what: str) -> str:
    """Return the known name that is spelled like this; ``-`` and ``_`` are equivalent, and so are large and small.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    names = tuple(known)
    found = {_key(each): each for each in names}.get(_key(name))
    if found is None:
        raise InvalidRequestError(f"unknown {what}: {nearest(name, names, listed_by=LIST)}", **{what: name})
    return found


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def judges_steps(
    name: str, title: str, meaning: str
) -> Callable[[Callable[..., str | None]], Callable[[Any], Property]]:
    """Make the maker of a property from a function that judges steps.

    The function takes a context, such as the setting of a world, the views before and after the step, and the name of
    the actor, and returns what the step broke, or None. The maker takes the context.
    """

    def decorate(judge: _Judge) -> Callable[[Any], Property]:
        return lambda context: Property(name=name, title=title, meaning=meaning, step=partial(judge, context))

    return decorate


def judges_ends(
    name: str, title: str, meaning: str
) -> Callable[[Callable[..., str | None]], Callable[[Any], Property]]:
    """Make the maker of a property from a function that judges the ends of histories: see `judges_steps`."""

    def decorate(judge: _Judge) -> Callable[[Any], Property]:
        return lambda context: Property(name=name, title=title, meaning=meaning, end=partial(judge, context))

    return decorate


def judged(scene: Scene, known: Mapping[str, Callable[..., Property]]) -> list[Callable[..., Property]]:
    """Return the functions that make the properties which a scene judges."""
    return [known[name] for name in (known if scene.properties is None else scene.properties)]
