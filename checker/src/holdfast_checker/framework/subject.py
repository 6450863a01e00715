"""Define what the checker needs to know about a part of the product: scenes (worlds), properties, coverage goals.

A *scene* is a short description of a world. A *goal* is something that at least one history of a scene must reach: a
property says what must never happen, and a world in which nothing happens violates no property.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.guarantees import GuaranteeAnswer
from holdfast.runtime import SeededRandom
from holdfast.wording import suggest_nearest
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import Property, View, World
from holdfast_checker.narrative.sentences import Narrator

FAULTY: Mapping[Fault, int] = {Fault.CRASH: 1, Fault.LOST_REPLY: 1, Fault.FAILURE: 1}
"""One fault of each kind that a call on a database may meet."""

_DRAWN = re.compile(r"drawn-(\d+)-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The declaration of a small simulated world to check; each kind of subject adds fields of its own.

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


@dataclass(frozen=True, slots=True)
class Rule:
    """A property that is checked in all worlds of a subject, before it is bound to one world.

    Attributes:
        step, end: see `Property`. Both take the context of a world first, such as its setting.
    """

    name: str
    title: str
    meaning: str
    step: Callable[..., str | None] | None = None
    end: Callable[..., str | None] | None = None

    def bind(self, context: Any) -> Property:
        """Bind the rule to one world: return a `Property` whose functions get that world's context first."""
        step = None if self.step is None else partial(self.step, context)
        end = None if self.end is None else partial(self.end, context)
        return Property(name=self.name, title=self.title, meaning=self.meaning, step=step, end=end)


def index_by_name(*named: Any) -> dict[str, Any]:
    """Return a dict of the given rules or scenes, by their attribute `name`."""
    return {one.name: one for one in named}


class VerdictCache:
    """Caches the verdicts of properties, since many states of a world differ in nothing that a property looks at."""

    @cached_property
    def _verdicts(self) -> dict[Hashable, str | None]:
        return {}

    def get_cached_verdict(self, key: Hashable, judge: Callable[[], str | None]) -> str | None:
        """Return the cached verdict for a key; if there is none, call `judge` and cache its result.

        A verdict is None, or a description of the violation."""
        if key not in self._verdicts:
            self._verdicts[key] = judge()
        return self._verdicts[key]


@dataclass(frozen=True, slots=True)
class Goal:
    """A coverage goal: a situation that at least one execution of a scene must reach, so that the check is not vacuous.

    Attributes:
        meaning: what is reached, in a few words.
        end: whether the final state of a history shows it.
        step: whether a step reaches it, given the views before and after the step and the name of the actor.

    Both functions take the context of the world first.
    """

    meaning: str
    end: Callable[[Any, View], bool] | None = None
    step: Callable[[Any, View, View, str], bool] | None = None


class GoalTracker:
    """Records which coverage goals the executions of a world reach.

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
        """Return the names of the wanted goals that no execution has reached so far."""
        return tuple(name for name in self.wanted if name not in self.reached)

    def as_property(self, context: Any) -> Property:
        """Return a property that is never violated, and records the reached goals when the checker evaluates it."""

        def note_step(before: View, after: View, actor: str) -> None:
            for name in self.missing:
                reaches = self.goals[name].step
                if reaches is not None and reaches(context, before, after, actor):
                    self.reached.add(name)

        def note_end(view: View) -> None:
            for name in self.missing:
                reaches = self.goals[name].end
                if reaches is not None and reaches(context, view):
                    self.reached.add(name)

        is_stepwise = any(self.goals[name].step is not None for name in self.wanted)
        return Property(name="goals", title="", meaning="", step=note_step if is_stepwise else None, end=note_end)


def properties_of_scene(
    scene: Scene, rules: Mapping[str, Rule], context: Any, tracker: GoalTracker | None = None
) -> tuple[Property, ...]:
    """Return the properties to check in the world of a scene, with the one that tracks coverage goals, if any.

    Unexpected exceptions of the code under test are always reported, whichever properties a scene has.
    """
    names = rules if scene.properties is None else scene.properties
    wanted = [rules[name].bind(context) for name in names if name in rules]
    return tuple(wanted if tracker is None else [*wanted, tracker.as_property(context)])


@dataclass(frozen=True, kw_only=True)
class Subject(Generic[S]):
    """A part of the product that the checker can check: its scenes (worlds), properties, coverage goals, narrator.

    Attributes:
        name: what users type.
        title: what is checked, in a few words.
        build: builds the world of a scene; a tracker records the goals that histories reach.
        narrate: returns functions that describe a world's calls and states.
        rules: the properties by name, the one whose violation is the most harmful first.
        goals: by name.
        scenes, small, others: the quick scenes; larger ones, which take minutes; and those that are explored only if
            they are named.
        find: builds an unlisted scene from a name such as ``crash+recovery``; None for an invalid name.
        walk: the scene of random walks, unless another one is named; None to draw scenes at random.
        declared: returns what `holdfast committers` declares about a property; None for a subject without declarations.
    """

    name: str
    title: str
    build: Callable[[S, GoalTracker | None], World]
    narrate: Callable[[World], Narrator]
    rules: Mapping[str, Rule]
    goals: Mapping[str, Goal]
    scenes: Mapping[str, S]
    small: Mapping[str, S]
    others: Mapping[str, S] = field(default_factory=dict)
    find: Callable[[str], S | None] = lambda name: None
    walk: S | None = None
    declared: Callable[[str], GuaranteeAnswer | None] | None = None

    @cached_property
    def families(self) -> Mapping[str, tuple[S, ...]]:
        """Return all scenes by the name of their family: the part of a scene's name before the slash."""
        found: dict[str, tuple[S, ...]] = {}
        for scene in {**self.scenes, **self.others, **self.small}.values():
            found[scene.family] = (*found.get(scene.family, ()), scene)
        return found

    def random_scene(self, seed: int, number: int) -> S:
        """Return a scene that depends only on the seed and the number: a quick scene, with more faults allowed."""
        chance = SeededRandom(SeededRandom.derive(seed, number))
        scene = chance.pick(tuple(self.scenes.values()))
        budgets = {fault: chance.pick((1, 2)) for fault in FAULTY if chance.happens(0.4)}
        return replace(scene, name=f"drawn-{seed}-{number}", budgets={**scene.budgets, **budgets}, reached=())

    def find_scenes(self, name: str) -> tuple[S, ...]:
        """Return the scene with this name, or all scenes of the family with this name; ``-`` and ``_`` are equivalent.

        Raises:
            InvalidRequestError: the name is unknown; the message suggests the most similar name.
        """
        wanted = _normalize(name)
        drawn = _DRAWN.fullmatch(wanted)
        if drawn:
            return (self.random_scene(int(drawn[1]), int(drawn[2])),)
        every = {_normalize(scene.name): (scene,) for members in self.families.values() for scene in members}
        found = every.get(wanted) or {_normalize(each): members for each, members in self.families.items()}.get(wanted)
        if found is None and (scene := self.find(name)) is not None:
            return (scene,)
        if found is None:
            members = self.families.get(wanted.partition("/")[0], ())
            known = [one.name for one in members] if "/" in wanted and members else list(self.families)
            raise InvalidRequestError(f"unknown scene: {suggest_nearest(name, known, listed_by=LIST)}", scene=name)
        return found

    def find_property(self, name: str) -> str:
        """Return the canonical name of a property: ``T1`` for ``t1``.

        Raises:
            InvalidRequestError: the name is unknown; the message suggests the most similar name.
        """
        return find_name(name, self.rules, "property")


LIST = "holdfast check --list"


def find_name(name: str, known: Iterable[str], what: str) -> str:
    """Return the known name that equals `name`, ignoring case and the difference between ``-`` and ``_``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    names = tuple(known)
    found = {_normalize(each): each for each in names}.get(_normalize(name))
    if found is None:
        raise InvalidRequestError(f"unknown {what}: {suggest_nearest(name, names, listed_by=LIST)}", **{what: name})
    return found


def _normalize(name: str) -> str:
    return name.strip().lower().replace("_", "-")
