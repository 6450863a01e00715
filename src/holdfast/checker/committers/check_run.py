"""Checking one committer: through its scenes, at random through a large one, and what broke first of each property.

Worked composition::

    session = Session(find_committer("file-v2"))
    for scene in SCENES.values():
        print(session.explore(scene))
    for found in session.ranked():
        print(*session.story(session.ease(found)).lines(), sep="\\n")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.checker.committers.features import draw
from holdfast.checker.committers.goals import GOALS, Reaching
from holdfast.checker.committers.names import find_property, find_world
from holdfast.checker.committers.narrator import job_teller
from holdfast.checker.committers.properties import PROPERTIES
from holdfast.checker.committers.questions import ASKED
from holdfast.checker.committers.scenes import ANY
from holdfast.checker.committers.worlds import Scene, build_world
from holdfast.checker.kernel.counterexample import Counterexample
from holdfast.checker.kernel.explore import Budget, Exploration, explore
from holdfast.checker.kernel.replay import replay
from holdfast.checker.kernel.shrink import shrink
from holdfast.checker.kernel.walk import Walks, walk
from holdfast.checker.kernel.world import World
from holdfast.checker.narrative.story import Story, tell
from holdfast.commit import Committer
from holdfast.errors import InvalidRequestError
from holdfast.guarantees import GUARANTEES, Answer

__all__ = [
    "BROKEN_CODE",
    "PART_OF",
    "Progress",
    "SceneReport",
    "Session",
    "Violation",
    "WalkReport",
    "declared",
    "replay_again",
]

BROKEN_CODE = "code"
"""What the kernel calls it when the code under test ends with an error that is none of ours."""

PART_OF = {"no-leftovers": "C9", "whole-reads": "C4"}
"""Properties of the checker that are a part of what a row of `GUARANTEES` declares."""

_HARM = (
    (BROKEN_CODE,),
    ("C1", "C2", "C3", "C6", "replaced-data", "log-order"),  # rows are wrong, and the job is reported as committed
    ("C5", "C7", "C8", "C9"),  # rows are wrong after something failed
    ("C4", "whole-reads"),  # rows are seen too early
    ("C10", "no-leftovers"),  # somebody has to clean up
)
"""What breaks, the worst first."""

_RANKS = {name: (group, at) for group, names in enumerate(_HARM) for at, name in enumerate(names)}

_HISTORIES_EACH = 20
"""So many random histories of a combination of features, then another one is drawn."""

_TELL_EVERY = 1000
"""States between two words of progress."""


# --- what is reported -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a session is.

    Attributes:
        states, histories: of this scene, by now; histories only of random ones.
        broken: properties that broke by now, in any scene.
    """

    scene: str
    states: int = 0
    histories: int = 0
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A property that broke, and the first history in which it did.

    Attributes:
        answer: what is declared of the committer; None if nothing is.
        actors, faults, steps: how much goes on in the history.
        history: number of the random history that it is; None if it was found by going through all.
        eased: whether the history was shrunk.
    """

    scene: Scene
    counterexample: Counterexample
    title: str
    meaning: str
    answer: Answer | None
    actors: int
    faults: int
    steps: int
    history: int | None = None
    eased: bool = False

    @property
    def name(self) -> str:
        """The property's."""
        return self.counterexample.property

    @property
    def is_declared(self) -> bool:
        """Whether the committer is declared not to hold it, at least in some circumstance."""
        return self.answer is not None and (not self.answer.holds or bool(self.answer.unless))


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneReport:
    """What going through a scene has shown.

    Attributes:
        complete: every history was looked at, equivalent ones once.
        histories: how many there are; 0 if not all were looked at.
        broken: names of properties.
        goals: what histories of the scene have to reach.
        reached: what some history has reached.
        missing: what none has, and faults that never happened, although every history was looked at: what is
            checked here does less than it should. Empty if not all was looked at, or only some properties are judged.
    """

    scene: Scene
    complete: bool
    histories: int
    states: int
    seconds: float
    broken: tuple[str, ...]
    goals: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkReport:
    """What random histories have shown.

    Attributes:
        next: number of the history to go on with.
        steps: of all histories.
        ends: different ends.
        depth: steps of the longest history.
        scenes: how many different ones: more than one if features are drawn.
        reached: goals that some history has reached.
    """

    scene: Scene
    seed: int
    first: int
    next: int
    histories: int = 0
    steps: int = 0
    ends: int = 0
    depth: int = 0
    seconds: float = 0.0
    broken: tuple[str, ...] = ()
    scenes: int = 0
    reached: tuple[str, ...] = ()


def declared(committer: str, name: str) -> Answer | None:
    """What `holdfast committers` says of a property; None if it says nothing."""
    wanted = PART_OF.get(name, name)
    row = next((row for row in GUARANTEES if row.name == wanted), None)
    return None if row is None else row.answers.get(committer)


# --- sessions ---------------------------------------------------------------------------------------------------------
class Session:
    """Looks at one committer and remembers the first history in which each property broke.

    Args:
        properties: names of those that are judged; empty for all. If some are named, it ends when they all broke.
        until: stop looking, and stop easing, when this holds; asked often.
        progress: told every thousand states, and after each random history.
    """

    def __init__(
        self,
        committer: Committer,
        properties: Sequence[str] = (),
        *,
        until: Callable[[], bool] = lambda: False,
        progress: Callable[[Progress], None] = lambda looking: None,
    ) -> None:
        self.committer = committer
        self.properties = tuple(properties)
        self.found: dict[str, Violation] = {}
        self._until = until
        self._progress = progress

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to look for, or somebody wants it to stop."""
        wanted = bool(self.properties) and self.found.keys() >= set(self.properties)
        return wanted or self._until()

    def explore(self, scene: Scene, budget: Budget = Budget()) -> SceneReport:
        """Go through every history of a scene, as far as the budget goes."""
        reaching = Reaching(scene.reached)
        world = self._world(scene, reaching)
        told = 0

        def progress(now: Exploration) -> None:
            nonlocal told
            if now.states >= told + _TELL_EVERY:
                told = now.states
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
            broken=_in_order(result.findings),
            goals=reaching.wanted,
            reached=tuple(name for name in reaching.wanted if name in reaching.reached),
            missing=_missing(scene, reaching, result) if result.complete and not self.properties else (),
        )

    def walk(self, scene: Scene, seed: int, *, first: int = 0, budget: Budget) -> WalkReport:
        """Go through random histories of a scene, from start to end; of `ANY`, of combinations of features."""
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
        """The report with more histories, of that scene."""
        reaching = Reaching(GOALS)
        world = self._world(scene, reaching)
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
            broken=_in_order({*report.broken, *result.findings}),
            scenes=report.scenes + 1,
            reached=tuple(name for name in GOALS if name in reaching.reached or name in report.reached),
        )

    def ranked(self) -> list[Violation]:
        """What broke: the worst first, and of what is equally bad that first for which the fewest faults are needed."""
        return sorted(self.found.values(), key=lambda one: (_RANKS[one.name][0], one.faults, _RANKS[one.name]))

    def ease(self, found: Violation) -> Violation:
        """The same with less going on; remembered in its place."""
        if found.eased or self._until():
            return found
        world = self._world(found.scene)
        easier = shrink(world, found.counterexample, until=self._until)
        self.found[found.name] = replace(self._measured(found.scene, world, easier, found.history), eased=True)
        return self.found[found.name]

    def story(self, found: Violation) -> Story:
        """What happened, told."""
        world = self._world(found.scene)
        return tell(world, found.counterexample, job_teller(world))

    def _world(self, scene: Scene, reaching: Reaching | None = None) -> World:
        return build_world(self.committer, replace(scene, properties=self.properties or scene.properties), reaching)

    def _broken(self, more: Iterable[str] = ()) -> tuple[str, ...]:
        return _in_order({*self.found, *more})

    def _add(self, scene: Scene, world: World, counterexample: Counterexample, history: int | None = None) -> None:
        if counterexample.property not in self.found:
            self.found[counterexample.property] = self._measured(scene, world, counterexample, history)

    def _measured(self, scene: Scene, world: World, counterexample: Counterexample, history: int | None) -> Violation:
        name = counterexample.property
        judged = next((one for one in world.properties if one.name == name), None)
        steps = replay(world, counterexample.choices).steps
        return Violation(
            scene=scene,
            counterexample=counterexample,
            title=name if judged is None else judged.title,
            meaning="no step ends with an error that is none of ours" if judged is None else judged.meaning,
            answer=declared(self.committer.name, name),
            actors=len({step.actor for step in steps}),
            faults=sum(step.fault is not None for step in steps),
            steps=len(steps),
            history=history,
        )


# --- saved counterexamples --------------------------------------------------------------------------------------------
def replay_again(counterexample: Counterexample) -> Story | None:
    """A saved history, gone through again with the present code.

    Returns:
        Its story up to where the property breaks, or None if it holds by now. Where the saved history is at its end and
        the code by now does more, and the property is about ends, it goes on to the end, and nothing more goes wrong.

    Raises:
        InvalidRequestError: there is no such world or property, or the history does not fit the code any more.
    """
    name = counterexample.property
    known = name == BROKEN_CODE or name in ASKED
    world = find_world(counterexample.world, () if known else (find_property(name),))
    replay(world, counterexample.choices)
    try:
        again = shrink(world, counterexample, replays=0)
    except InvalidRequestError:
        return None
    return tell(world, again, job_teller(world))


def _breakable(world: World) -> set[str]:
    """Names of the properties that may break: when all have, there is nothing left to look for."""
    return {one.name for one in world.properties if one.title and (one.step or one.end)}


def _missing(scene: Scene, reaching: Reaching, result: Exploration) -> tuple[str, ...]:
    never = [fault.value for fault in scene.budgets if fault not in result.faults]
    return (*reaching.missing, *never)


# --- order ------------------------------------------------------------------------------------------------------------
def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    order = [BROKEN_CODE, *PROPERTIES]
    return tuple(sorted(names, key=order.index))
