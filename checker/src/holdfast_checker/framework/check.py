"""Check a subject: explore scenes, walk through random histories, and keep the first violation of each property.

Worked composition::

    check = Check(find_subject("file-v2"))
    for scene in check.subject.scenes.values():
        print(check.explore([scene]))
    for violation in check.ranked():
        print(*check.story(check.shrink(violation)).lines(), sep="\\n")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast_checker.framework.subject import GoalTracker, Scene, Subject
from holdfast_checker.kernel.counterexample import Counterexample, replay
from holdfast_checker.kernel.explore import Budget, Exploration, explore
from holdfast_checker.kernel.shrink import shrink
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.kernel.walk import Walks, walk
from holdfast_checker.kernel.world import World
from holdfast_checker.narrative.story import Story, tell

_HISTORIES_EACH = 20
"""Number of random histories of one random scene, before another one is drawn."""

_REPORT_EVERY = 1000
"""Number of states between two progress reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A property that broke, and the first history in which it did.

    Attributes:
        history: number of the random history; None if exploration found it.
        is_shrunk: whether the history was shrunk.
    """

    scene: Scene
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
        scenes: number of scenes.
        complete: whether every history of every scene was explored, or one that is equivalent to it.
        goals, reached: number of goals that histories had to reach, and of those that at least one history reached.
        broken: names of the properties that broke.
        missing: goals that no history reached, and faults that never happened, as (scene, goal): the check covers less
            than it should. Empty if the exploration is incomplete, or if only some properties are judged.
    """

    family: str
    scenes: int = 0
    complete: bool = True
    histories: int = 0
    states: int = 0
    seconds: float = 0.0
    goals: int = 0
    reached: int = 0
    broken: tuple[str, ...] = ()
    missing: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class WalkReport:
    """The result of random histories.

    Attributes:
        scene: the scene of all histories; None if scenes were drawn.
        next: number of the history to continue with.
        scenes: number of scenes.
        steps: number of steps in all histories together.
        depth: number of steps in the longest history.
        ends: number of different final states.
        broken: names of the properties that broke.
        reached: goals that at least one history reached.
    """

    scene: Scene | None
    seed: int
    first: int
    next: int
    scenes: int = 0
    histories: int = 0
    steps: int = 0
    depth: int = 0
    ends: int = 0
    seconds: float = 0.0
    broken: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()


class Check:
    """A check of one subject, with the first violation of each property.

    Args:
        properties: names of the properties to judge; empty for all. If names are given, the check ends once all of
            these properties have broken.
        until: called often; stops exploring and shrinking by returning true.
        progress: called with the name of a scene and what was done in it.

    Attributes:
        violations: the first violation of each property, by the property's name.
    """

    def __init__(
        self,
        subject: Subject[Any],
        properties: Sequence[str] = (),
        *,
        until: Callable[[], bool] = lambda: False,
        progress: Callable[[str, str], None] = lambda scene, done: None,
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

    def explore(self, scenes: Iterable[Scene], budget: Budget = Budget()) -> SceneReport:
        """Explore every history of the scenes of a family, within the budget for each of them."""
        report = SceneReport(family="")
        for scene in scenes:
            report.family = scene.family
            if self.is_over:
                report.complete = False
                break
            self._explore(scene, budget, report)
        return report

    def _explore(self, scene: Scene, budget: Budget, report: SceneReport) -> None:
        tracker = GoalTracker(scene.reached, self.subject.goals)
        world = self._world(scene, tracker)
        reported = 0

        def progress(now: Exploration) -> None:
            nonlocal reported
            if now.states >= reported + _REPORT_EVERY:
                reported = now.states
                self._progress(scene.name, f"{now.states:,} states{self._so_far(now)}")

        self._progress(scene.name, "")
        found = explore(world, budget=budget, until=self._stops(world), progress=progress)
        for one in found.findings.values():
            self._add(scene, Counterexample(world.name, one.property, one.broke, one.choices))
        report.scenes += 1
        report.complete &= found.complete
        report.histories += found.histories
        report.states += found.states
        report.seconds += found.seconds
        report.goals += len(tracker.wanted)
        report.reached += len(tracker.wanted) - len(tracker.missing)
        report.broken = self._in_order({*report.broken, *found.findings})
        if found.complete and not self.properties:
            never = [fault.value for fault in scene.budgets if fault not in found.faults]
            report.missing += [(scene.name, name) for name in (*tracker.missing, *never)]

    def walk(self, scene: Scene | None, seed: int, *, first: int = 0, budget: Budget) -> WalkReport:
        """Walk through random histories of a scene, or of scenes that are drawn from the seed if it is None."""
        report = WalkReport(scene=scene, seed=seed, first=first, next=first)
        while True:
            rest = None if budget.histories is None else budget.histories - report.histories
            chosen = scene
            if chosen is None:
                assert self.subject.draw is not None, "the subject has one scene for walks"
                chosen = self.subject.draw(seed, report.next // _HISTORIES_EACH)
                rest = min(_HISTORIES_EACH - report.next % _HISTORIES_EACH, rest or _HISTORIES_EACH)
            seconds = None if budget.seconds is None else max(budget.seconds - report.seconds, 0.0)
            self._walk(chosen, report, Budget(seconds=seconds, histories=rest))
            if self.is_over or budget.is_spent(seconds=report.seconds, histories=report.histories):
                return report

    def _walk(self, scene: Scene, report: WalkReport, budget: Budget) -> None:
        tracker = GoalTracker(self.subject.goals, self.subject.goals)
        world = self._world(scene, tracker)
        numbers: dict[str, int] = {}
        before = report.histories

        def progress(now: Walks) -> None:
            for name in now.findings:
                numbers.setdefault(name, now.next - 1)
            self._progress(scene.name, f"{before + now.histories:,} histories{self._so_far(now)}")

        found = walk(
            world, seed=report.seed, first=report.next, budget=budget, until=self._stops(world), progress=progress
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
        report.broken = self._in_order({*report.broken, *found.findings})
        report.reached = tuple(name for name in self.subject.goals if name in {*report.reached, *tracker.reached})

    def shrink(self, violation: Violation) -> Violation:
        """Shrink the history of a violation, and store the result in place of the given violation."""
        if violation.is_shrunk or self._until():
            return violation
        smaller = shrink(self._world(violation.scene), violation.counterexample, until=self._until)
        self.violations[violation.name] = replace(violation, counterexample=smaller, is_shrunk=True)
        return self.violations[violation.name]

    def story(self, violation: Violation) -> Story:
        """Tell the story of a violation."""
        world = self._world(violation.scene)
        return tell(world, violation.counterexample, self.subject.narrate(world))

    def ranked(self) -> list[Violation]:
        """Return the violations, the most harmful ones first."""
        return [self.violations[name] for name in self._in_order(self.violations)]

    def _so_far(self, now: Exploration | Walks) -> str:
        broken = self._in_order({*self.violations, *now.findings})
        return f", violated so far: {', '.join(broken)}" if broken else ""

    def _in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=[BROKEN_CODE, *self.subject.properties].index))

    def _stops(self, world: World) -> Callable[[Exploration | Walks], bool]:
        """Return whether to stop: once all properties of the world have broken, there is nothing left to find."""
        breakable = {one.name for one in world.properties if one.title and (one.step or one.end)}
        return lambda now: self._until() or now.findings.keys() >= breakable

    def _world(self, scene: Scene, tracker: GoalTracker | None = None) -> World:
        return self.subject.build(replace(scene, properties=self.properties or scene.properties), tracker)

    def _add(self, scene: Scene, counterexample: Counterexample, history: int | None = None) -> None:
        found = Violation(scene=scene, counterexample=counterexample, history=history)
        self.violations.setdefault(counterexample.property, found)


def replay_again(counterexample: Counterexample, subject: Subject[Any]) -> Story | None:
    """Replay a saved history with the current code.

    Returns:
        The story of the history up to the step that breaks the property, or None if the property holds now. If the
        saved history ends before the current code does, and the property is judged at the end, the replay continues
        without faults.

    Raises:
        InvalidRequestError: the scene or property does not exist, or the history no longer fits the code.
    """
    [scene, *_others] = subject.find_scenes(counterexample.world.partition("/")[2])
    world: World = subject.build(scene, None)
    if counterexample.property not in (BROKEN_CODE, *(one.name for one in world.properties)):
        world = subject.build(replace(scene, properties=(subject.find_property(counterexample.property),)), None)
    replay(world, counterexample.choices)
    try:
        again = shrink(world, counterexample, replays=0)
    except InvalidRequestError:
        return None
    return tell(world, again, subject.narrate(world))
