"""Search one part of the product for violations of its properties: exhaustively, or by random executions.

Worked composition::

    check = Check(find_subject("file-v2"))
    for scene in check.subject.scenes.values():
        print(check.explore([scene]))
    for violation in check.violations_by_harm():
        print(*check.tell_story(check.shrink(violation)).lines(), sep="\\n")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast_checker.framework.subject import GoalTracker, Scene, Subject
from holdfast_checker.kernel.counterexample import Counterexample, replay_choices
from holdfast_checker.kernel.explore import Budget, Exploration, explore_world
from holdfast_checker.kernel.shrink import shrink_counterexample
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.kernel.walk import WalkResults, run_random_histories
from holdfast_checker.kernel.world import World
from holdfast_checker.narrative.story import Story, tell_story

_HISTORIES_EACH = 20
"""Number of random histories of one random scene, before another one is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violated property, with the scene and the execution (counterexample) that violates it.

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
    """The result of exploring the scenes (small simulated worlds) of one family.

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
    states: int = 0
    seconds: float = 0.0
    goals: int = 0
    reached: int = 0
    broken: tuple[str, ...] = ()
    missing: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RandomHistoryReport:
    """The result of running random executions (histories).

    Attributes:
        scene: the scene of all histories; None if scenes were drawn.
        first: number of the first history.
        broken: names of the properties that broke.
        reached: goals that at least one history reached.
    """

    scene: Scene | None
    first: int
    walks: WalkResults
    broken: tuple[str, ...]
    reached: tuple[str, ...]


class Check:
    """Runs the checks of one subject (a part of the product), and keeps the first violation of each property.

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
    def may_stop(self) -> bool:
        """Check whether the search can stop: `until` returned true, or each property to judge is already violated."""
        return self._until() or (bool(self.properties) and self.violations.keys() >= set(self.properties))

    def explore(self, scenes: Iterable[Scene], budget: Budget = Budget()) -> SceneReport:
        """Explore all executions of each scene of a family; the budget limits each scene separately."""
        report = SceneReport(family="")
        for scene in scenes:
            report.family = scene.family
            if self.may_stop:
                report.complete = False
                break
            self._explore_scene(scene, budget, report)
        return report

    def _explore_scene(self, scene: Scene, budget: Budget, report: SceneReport) -> None:
        tracker = GoalTracker(scene.reached, self.subject.goals)
        world = self._build_world(scene, tracker)

        def show_states(now: Exploration) -> None:
            self._progress(scene.name, f"{now.states:,} states{self._progress_text(now)}")

        self._progress(scene.name, "")
        found = explore_world(world, budget=budget, until=self._make_stop_condition(world), progress=show_states)
        for one in found.findings.values():
            self.violations.setdefault(one.property, Violation(scene=scene, counterexample=one))
        report.scenes += 1
        report.complete &= found.complete
        report.states += found.states
        report.seconds += found.seconds
        report.goals += len(tracker.wanted)
        report.reached += len(tracker.wanted) - len(tracker.missing)
        report.broken = self._sort_by_harm({*report.broken, *found.findings})
        if found.complete and not self.properties:
            never = [fault.value for fault in scene.budgets if fault not in found.faults]
            report.missing += [(scene.name, name) for name in (*tracker.missing, *never)]

    def walk(self, scene: Scene | None, seed: int, *, first: int = 0, budget: Budget) -> RandomHistoryReport:
        """Run random executions of a scene, or, if it is None, of scenes that are drawn at random from the seed."""
        walks, tracker = WalkResults(seed=seed, next=first), GoalTracker(self.subject.goals, self.subject.goals)
        while True:
            self._run_executions_of_scene(
                scene or self.subject.random_scene(seed, walks.next // _HISTORIES_EACH), walks, tracker, budget, scene
            )
            if self.may_stop or budget.is_spent(seconds=walks.seconds, histories=walks.histories):
                reached = tuple(name for name in self.subject.goals if name in tracker.reached)
                return RandomHistoryReport(scene, first, walks, self._sort_by_harm(walks.findings), reached)

    def _run_executions_of_scene(
        self, scene: Scene, walks: WalkResults, tracker: GoalTracker, budget: Budget, only: Scene | None
    ) -> None:
        world = self._build_world(scene, tracker)
        stops = self._make_stop_condition(world)

        def is_over(now: WalkResults) -> bool:
            self._progress(scene.name, f"{now.histories:,} histories{self._progress_text(now)}")
            return stops(now) or (only is None and now.next % _HISTORIES_EACH == 0)

        for name, one in run_random_histories(world, walks, budget=budget, until=is_over).findings.items():
            self.violations.setdefault(name, Violation(scene=scene, counterexample=one, history=walks.numbers[name]))

    def shrink(self, violation: Violation) -> Violation:
        """Minimize the counterexample of a violation, keep the result in place of the given one, and return it."""
        if violation.is_shrunk or self._until():
            return violation
        smaller = shrink_counterexample(self._build_world(violation.scene), violation.counterexample, until=self._until)
        self.violations[violation.name] = replace(violation, counterexample=smaller, is_shrunk=True)
        return self.violations[violation.name]

    def tell_story(self, violation: Violation) -> Story:
        """Describe the counterexample of a violation in numbered sentences, as a `Story`."""
        world = self._build_world(violation.scene)
        return tell_story(world, violation.counterexample, self.subject.narrate(world))

    def violations_by_harm(self) -> list[Violation]:
        """Return all violations found so far, those of the most harmful properties first."""
        return [self.violations[name] for name in self._sort_by_harm(self.violations)]

    def _progress_text(self, now: Exploration | WalkResults) -> str:
        broken = self._sort_by_harm({*self.violations, *now.findings})
        return f", violated so far: {', '.join(broken)}" if broken else ""

    def _sort_by_harm(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=[BROKEN_CODE, *self.subject.rules].index))

    def _make_stop_condition(self, world: World) -> Callable[[Exploration | WalkResults], bool]:
        """Return the condition that ends a search: all properties of the world are violated."""
        breakable = {one.name for one in world.properties if one.title and (one.step or one.end)} or {BROKEN_CODE}
        return lambda now: self._until() or now.findings.keys() >= breakable

    def _build_world(self, scene: Scene, tracker: GoalTracker | None = None) -> World:
        return self.subject.build(replace(scene, properties=self.properties or scene.properties), tracker)


def replay_with_current_code(counterexample: Counterexample, subject: Subject[Any]) -> Story | None:
    """Replay a saved counterexample with the current code, and tell whether it still violates its property.

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
    replay_choices(world, counterexample.choices)
    try:
        again = shrink_counterexample(world, counterexample, replays=0)
    except InvalidRequestError:
        return None
    return tell_story(world, again, subject.narrate(world))
