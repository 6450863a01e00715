"""Check one committer: explore scenes, walk through random histories, and store the first violation of each property.

Worked composition::

    check = CheckRun(find_committer("file-v2"))
    for scene in SCENES.values():
        print(check.explore(scene))
    for violation in check.ranked():
        print(*check.story(check.shrink(violation)).lines(), sep="\\n")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from holdfast.commit import Committer
from holdfast_checker.committers.check_report import (
    Progress,
    SceneReport,
    Violation,
    WalkReport,
    declared,
    in_order,
    ranked,
)
from holdfast_checker.committers.features import draw
from holdfast_checker.committers.goals import GOALS, GoalTracker
from holdfast_checker.committers.narration.job_narrator import job_narrator
from holdfast_checker.committers.scenes import ANY
from holdfast_checker.committers.worlds import Scene, build_world
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget, Exploration, explore
from holdfast_checker.kernel.replay import replay
from holdfast_checker.kernel.shrink import shrink
from holdfast_checker.kernel.walk import Walks, walk
from holdfast_checker.kernel.world import World
from holdfast_checker.narrative.story import Story, tell

_HISTORIES_EACH = 20
"""Number of random histories with one combination of features, before another combination is drawn."""

_REPORT_EVERY = 1000
"""Number of states between two progress reports."""


class CheckRun:
    """A check of one committer, with the first violation of each property.

    Args:
        properties: names of the properties to judge; empty for all. If names are given, the check ends once all of
            these properties have broken.
        until: called often; stops exploring and shrinking by returning true.
        progress: called every thousand states, and after each random history, to report progress.

    Attributes:
        violations: the first violation of each property, by the property's name.
    """

    def __init__(
        self,
        committer: Committer,
        properties: Sequence[str] = (),
        *,
        until: Callable[[], bool] = lambda: False,
        progress: Callable[[Progress], None] = lambda now: None,
    ) -> None:
        self.committer = committer
        self.properties = tuple(properties)
        self.violations: dict[str, Violation] = {}
        self._until = until
        self._progress = progress

    @property
    def is_over(self) -> bool:
        """Check whether the check has ended: all wanted properties broke, or `until` returned true."""
        all_broke = bool(self.properties) and self.violations.keys() >= set(self.properties)
        return all_broke or self._until()

    def explore(self, scene: Scene, budget: Budget = Budget()) -> SceneReport:
        """Explore every history of a scene, within the budget."""
        tracker = GoalTracker(scene.reached)
        world = self._world(scene, tracker)
        reported = 0

        def progress(now: Exploration) -> None:
            nonlocal reported
            if now.states >= reported + _REPORT_EVERY:
                reported = now.states
                self._progress(Progress(scene=scene.name, states=now.states, broken=self._broken(now.findings)))

        def until(now: Exploration) -> bool:
            return self._until() or now.findings.keys() >= _breakable(world)

        self._progress(Progress(scene=scene.name, broken=self._broken()))
        result = explore(world, budget=budget, until=until, progress=progress)
        for one in result.findings.values():
            self._add(scene, world, Counterexample(world.name, one.property, one.broke, one.choices))
        return SceneReport(
            scene=scene,
            complete=result.complete,
            histories=result.histories,
            states=result.states,
            seconds=result.seconds,
            broken=in_order(result.findings),
            goals=tracker.wanted,
            reached=tuple(name for name in tracker.wanted if name in tracker.reached),
            missing=_missing(scene, tracker, result) if result.complete and not self.properties else (),
        )

    def walk(self, scene: Scene, seed: int, *, first: int = 0, budget: Budget) -> WalkReport:
        """Walk through random histories of a scene, or of combinations of features if the scene is `ANY`."""
        report = WalkReport(scene=scene, seed=seed, first=first, next=first)
        while True:
            left = Budget(
                seconds=None if budget.seconds is None else max(budget.seconds - report.seconds, 0.0),
                histories=None if budget.histories is None else budget.histories - report.histories,
            )
            drawn = scene
            if scene is ANY:
                drawn = draw(seed, report.next // _HISTORIES_EACH)
                rest = _HISTORIES_EACH - report.next % _HISTORIES_EACH
                left = replace(left, histories=min(rest, left.histories or rest))
            report = self._walk_on(drawn, report, left)
            if self.is_over or budget.is_spent(seconds=report.seconds, histories=report.histories):
                return report

    def _walk_on(self, scene: Scene, report: WalkReport, budget: Budget) -> WalkReport:
        """Add random histories of `scene` to the report."""
        tracker = GoalTracker(GOALS)
        world = self._world(scene, tracker)
        numbers: dict[str, int] = {}

        def progress(now: Walks) -> None:
            for name in now.findings:
                numbers.setdefault(name, now.next - 1)
            histories = report.histories + now.histories
            self._progress(Progress(scene=scene.name, histories=histories, broken=self._broken(now.findings)))

        def until(now: Walks) -> bool:
            return self._until() or now.findings.keys() >= _breakable(world)

        result = walk(world, seed=report.seed, first=report.next, budget=budget, until=until, progress=progress)
        for name, counterexample in result.findings.items():
            self._add(scene, world, counterexample, numbers[name])
        return replace(
            report,
            next=result.next,
            histories=report.histories + result.histories,
            steps=report.steps + result.steps,
            ends=report.ends + result.ends,
            depth=max(report.depth, result.depth),
            seconds=report.seconds + result.seconds,
            broken=in_order({*report.broken, *result.findings}),
            scenes=report.scenes + 1,
            reached=tuple(name for name in GOALS if name in tracker.reached or name in report.reached),
        )

    def ranked(self) -> list[Violation]:
        """Return the violations, the most harmful first."""
        return ranked(self.violations.values())

    def shrink(self, violation: Violation) -> Violation:
        """Shrink the history of a violation, and store the result in place of the given violation."""
        if violation.is_shrunk or self._until():
            return violation
        world = self._world(violation.scene)
        smaller = shrink(world, violation.counterexample, until=self._until)
        measured = self._measured(violation.scene, world, smaller, violation.history)
        self.violations[violation.name] = replace(measured, is_shrunk=True)
        return self.violations[violation.name]

    def story(self, violation: Violation) -> Story:
        """Tell the story of a violation."""
        world = self._world(violation.scene)
        return tell(world, violation.counterexample, job_narrator(world))

    def _world(self, scene: Scene, tracker: GoalTracker | None = None) -> World:
        return build_world(self.committer, replace(scene, properties=self.properties or scene.properties), tracker)

    def _broken(self, more: Iterable[str] = ()) -> tuple[str, ...]:
        return in_order({*self.violations, *more})

    def _add(self, scene: Scene, world: World, counterexample: Counterexample, history: int | None = None) -> None:
        if counterexample.property not in self.violations:
            self.violations[counterexample.property] = self._measured(scene, world, counterexample, history)

    def _measured(self, scene: Scene, world: World, counterexample: Counterexample, history: int | None) -> Violation:
        name = counterexample.property
        judged = next((one for one in world.properties if one.name == name), None)
        steps = replay(world, counterexample.choices).steps
        return Violation(
            scene=scene,
            counterexample=counterexample,
            title=name if judged is None else judged.title,
            meaning="no step ends with an unexpected exception" if judged is None else judged.meaning,
            answer=declared(self.committer.name, name),
            actors=len({step.actor for step in steps}),
            faults=sum(step.fault is not None for step in steps),
            steps=len(steps),
            history=history,
        )


def _breakable(world: World) -> set[str]:
    """Return the properties that can break in a world: once all of them have, there is nothing left to find."""
    return {one.name for one in world.properties if one.title and (one.step or one.end)}


def _missing(scene: Scene, tracker: GoalTracker, result: Exploration) -> tuple[str, ...]:
    never = [fault.value for fault in scene.budgets if fault not in result.faults]
    return (*tracker.missing, *never)
