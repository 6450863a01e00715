"""Check transactions: explore scenes, walk through random histories, and store the first violation of each property.

Worked composition::

    check = TransactionCheck()
    for scene in SCENES.values():
        print(check.explore(scene))
    for violation in check.violations.values():
        print(*check.story(check.shrink(violation)).lines(), sep="\\n")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget, Exploration, explore
from holdfast_checker.kernel.replay import replay
from holdfast_checker.kernel.shrink import shrink
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.kernel.walk import Walks, walk
from holdfast_checker.kernel.world import World
from holdfast_checker.narrative.narrator import Narrator
from holdfast_checker.narrative.story import Story, tell
from holdfast_checker.transactions.drawing import ANY, draw
from holdfast_checker.transactions.goals import GOALS, Goal, GoalTracker
from holdfast_checker.transactions.names import find_property, find_scenes
from holdfast_checker.transactions.narration import narrator
from holdfast_checker.transactions.properties import PROPERTIES
from holdfast_checker.transactions.worlds import build_world

_HISTORIES_EACH = 20
"""Number of random histories of one random scene, before another one is drawn."""

_REPORT_EVERY = 1000
"""Number of states between two progress reports."""


class Described(Protocol):
    """A scene: a description of a world."""

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> str: ...

    @property
    def properties(self) -> tuple[str, ...]: ...

    @property
    def reached(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is checked: transactions, or what is built on them.

    Attributes:
        build: builds the world of a scene, with a tracker of goals or without one.
        narrator: returns the words of the worlds.
        properties: the names of the properties, the most important one first.
        goals: by name.
        find_scenes: returns the scenes with a name, or the family with this name.
        find_property: returns the canonical name of a property.
        any: a placeholder for random walks, in whose place `draw` draws scenes, given a seed and a number.
    """

    build: Callable[[Any, GoalTracker | None], World]
    narrator: Callable[[], Narrator]
    properties: Sequence[str]
    goals: Mapping[str, Goal]
    find_scenes: Callable[[str], Sequence[Described]]
    find_property: Callable[[str], str]
    any: Described
    draw: Callable[[int, int], Described]


TRANSACTIONS = Subject(
    build=build_world,
    narrator=narrator,
    properties=tuple(PROPERTIES),
    goals=GOALS,
    find_scenes=find_scenes,
    find_property=find_property,
    any=ANY,
    draw=draw,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A property that broke, and the first history in which it did.

    Attributes:
        is_shrunk: whether the history was shrunk.
        history: number of the random history; None if exploration found it.
    """

    scene: Described
    counterexample: Counterexample
    history: int | None = None
    is_shrunk: bool = False

    @property
    def name(self) -> str:
        """Return the name of the property."""
        return self.counterexample.property


@dataclass(slots=True, kw_only=True)
class SceneReport:
    """The result of exploring scenes of one family.

    Attributes:
        complete: whether every history of every scene was explored, or one that is equivalent to it.
        reached: number of goals that at least one history reached; `goals` is the number of all.
        missing: goals that no history of a scene reached, as (scene, goal), if the scene was explored completely.
    """

    family: str
    scenes: int = 0
    complete: bool = True
    histories: int = 0
    states: int = 0
    seconds: float = 0.0
    goals: int = 0
    broken: set[str] = field(default_factory=set)
    missing: list[tuple[str, str]] = field(default_factory=list)

    @property
    def reached(self) -> int:
        return self.goals - len(self.missing)


@dataclass(slots=True, kw_only=True)
class WalkReport:
    """The result of random histories.

    Attributes:
        next: number of the history to continue with.
        scenes: number of random scenes.
    """

    seed: int
    first: int
    next: int
    scenes: int = 0
    histories: int = 0
    steps: int = 0
    depth: int = 0
    ends: int = 0
    seconds: float = 0.0
    broken: set[str] = field(default_factory=set)


class TransactionCheck:
    """A check of transactions, with the first violation of each property.

    Args:
        properties: names of the properties to judge; empty for all. If names are given, the check ends once all of
            these properties have broken.
        until: called often; stops exploring and shrinking by returning true.
        progress: called with the name of the scene and what was done in it, to report progress.
        subject: what is checked.

    Attributes:
        violations: the first violation of each property, by the property's name.
    """

    def __init__(
        self,
        properties: Sequence[str] = (),
        *,
        until: Callable[[], bool] = lambda: False,
        progress: Callable[[str, str], None] = lambda scene, done: None,
        subject: Subject = TRANSACTIONS,
    ) -> None:
        self.subject = subject
        self.properties = tuple(properties)
        self.violations: dict[str, Violation] = {}
        self._until = until
        self._progress = progress

    @property
    def is_over(self) -> bool:
        """Check whether the check has ended: all wanted properties broke, or `until` returned true."""
        return self._until() or (bool(self.properties) and self.violations.keys() >= set(self.properties))

    def explore(self, scenes: Iterable[Described], budget: Budget = Budget()) -> SceneReport:
        """Explore every history of the scenes of a family, within the budget for each of them."""
        report = SceneReport(family="")
        for scene in scenes:
            report.family = scene.family
            if self.is_over:
                report.complete = False
                break
            self._explore(scene, budget, report)
        return report

    def _explore(self, scene: Described, budget: Budget, report: SceneReport) -> None:
        tracker = GoalTracker(scene.reached, goals=self.subject.goals)
        world = self._world(scene, tracker)
        reported = 0

        def progress(now: Exploration) -> None:
            nonlocal reported
            if now.states >= reported + _REPORT_EVERY:
                reported = now.states
                self._progress(scene.name, f"{now.states:,} states")

        self._progress(scene.name, "")
        found = explore(world, budget=budget, until=lambda now: self._until(), progress=progress)
        for one in found.findings.values():
            self._add(scene, Counterexample(world.name, one.property, one.broke, one.choices))
        report.scenes += 1
        report.complete &= found.complete
        report.histories += found.histories
        report.states += found.states
        report.seconds += found.seconds
        report.goals += len(tracker.wanted)
        report.broken |= found.findings.keys()
        if found.complete:
            report.missing += [(scene.name, name) for name in tracker.missing]

    def walk(self, scene: Described, seed: int, *, first: int = 0, budget: Budget) -> WalkReport:
        """Walk through random histories of a scene, or of random scenes if the scene stands for any."""
        report = WalkReport(seed=seed, first=first, next=first)
        while True:
            rest = None if budget.histories is None else budget.histories - report.histories
            chosen = scene
            if scene is self.subject.any:
                chosen = self.subject.draw(seed, report.next // _HISTORIES_EACH)
                rest = min(_HISTORIES_EACH - report.next % _HISTORIES_EACH, rest or _HISTORIES_EACH)
            seconds = None if budget.seconds is None else max(budget.seconds - report.seconds, 0.0)
            self._walk(chosen, report, Budget(seconds=seconds, histories=rest))
            if self.is_over or budget.is_spent(seconds=report.seconds, histories=report.histories):
                return report

    def _walk(self, scene: Described, report: WalkReport, budget: Budget) -> None:
        world = self._world(scene)
        numbers: dict[str, int] = {}
        before = report.histories

        def progress(now: Walks) -> None:
            for name in now.findings:
                numbers.setdefault(name, now.next - 1)
            self._progress(scene.name, f"{before + now.histories:,} histories")

        found = walk(
            world,
            seed=report.seed,
            first=report.next,
            budget=budget,
            until=lambda now: self._until() or bool(now.findings),
            progress=progress,
        )
        for name, counterexample in found.findings.items():
            self._add(scene, counterexample, numbers[name])
        report.next = found.next
        report.scenes += 1
        report.histories += found.histories
        report.steps += found.steps
        report.depth = max(report.depth, found.depth)
        report.ends += found.ends
        report.seconds += found.seconds
        report.broken |= found.findings.keys()

    def shrink(self, violation: Violation) -> Violation:
        """Shrink the history of a violation, and store the result in place of the given violation."""
        if violation.is_shrunk or self._until():
            return violation
        smaller = shrink(self._world(violation.scene), violation.counterexample, until=self._until)
        self.violations[violation.name] = replace(violation, counterexample=smaller, is_shrunk=True)
        return self.violations[violation.name]

    def story(self, violation: Violation) -> Story:
        """Tell the story of a violation."""
        return tell(self._world(violation.scene), violation.counterexample, self.subject.narrator())

    def ranked(self) -> list[Violation]:
        """Return the violations, the worst ones first."""
        order = [*self.subject.properties, BROKEN_CODE]
        return sorted(self.violations.values(), key=lambda one: order.index(one.name))

    def _world(self, scene: Described, tracker: GoalTracker | None = None) -> World:
        return self.subject.build(_judging(scene, self.properties or scene.properties), tracker)

    def _add(self, scene: Described, counterexample: Counterexample, history: int | None = None) -> None:
        found = Violation(scene=scene, counterexample=counterexample, history=history)
        self.violations.setdefault(counterexample.property, found)


def _judging(scene: Described, properties: tuple[str, ...]) -> Any:
    """Return a scene, which is a data class, with other properties."""
    found: Any = scene
    return replace(found, properties=properties)


def replay_again(counterexample: Counterexample, subject: Subject = TRANSACTIONS) -> Story | None:
    """Replay a saved history with the current code.

    Returns:
        The story of the history up to the step that breaks the property, or None if the property holds now.

    Raises:
        InvalidRequestError: the world or property does not exist, or the history no longer fits the code.
    """
    [scene] = subject.find_scenes(counterexample.world.partition("/")[2])
    name = counterexample.property
    properties = scene.properties if name == BROKEN_CODE else (subject.find_property(name),)
    world = subject.build(_judging(scene, properties), None)
    replay(world, counterexample.choices)
    try:
        again = shrink(world, counterexample, replays=0)
    except InvalidRequestError:
        return None
    return tell(world, again, subject.narrator())
