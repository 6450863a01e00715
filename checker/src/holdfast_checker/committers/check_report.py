"""Report what a check of a committer has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.guarantees import GUARANTEES, Answer
from holdfast_checker.committers.properties import PART_OF, PROPERTIES
from holdfast_checker.committers.worlds import Scene
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.state_space import BROKEN_CODE

_HARM = (
    (BROKEN_CODE,),
    ("C1", "C2", "C3", "C6", "replaced-data", "log-order"),  # rows are wrong, and the job is reported as committed
    ("C5", "C7", "C8", "C9"),  # rows are wrong after a failure
    ("C4", "whole-reads"),  # rows are visible too early
    ("C10", "no-leftovers"),  # a user has to clean up
)
"""The names of the properties, grouped by how harmful a violation is, the worst first."""

_RANKS = {name: (group, at) for group, names in enumerate(_HARM) for at, name in enumerate(names)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a check.

    Attributes:
        states: number of states explored so far in this scene.
        histories: number of random histories of this scene so far; 0 for an exploration.
        broken: names of the properties that broke so far, in this scene or an earlier one.
    """

    scene: str
    states: int = 0
    histories: int = 0
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A property that broke, and the first history in which it did.

    Attributes:
        answer: what `holdfast committers` declares about the property for this committer; None if it declares nothing.
        actors, faults, steps: numbers of actors, faults and steps in the history.
        history: number of the random history; None if exploration found it.
        is_shrunk: whether the history was shrunk.
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
    is_shrunk: bool = False

    @property
    def name(self) -> str:
        """Return the name of the property."""
        return self.counterexample.property

    @property
    def is_declared(self) -> bool:
        """Check whether the committer is declared to violate the property, at least under some circumstance."""
        return self.answer is not None and (not self.answer.holds or bool(self.answer.unless))


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneReport:
    """The result of exploring a scene.

    Attributes:
        complete: whether every history was explored, or one that is equivalent to it.
        histories: number of histories of the scene; 0 if the exploration is not complete.
        broken: names of the properties that broke.
        goals: names of the goals that at least one history of the scene must reach.
        reached: goals that at least one history reached.
        missing: goals that no history reached, and faults that never happened, in a complete exploration: if there are
            any, the check covers less than it should. Empty if the exploration is incomplete, or if only some
            properties are judged.
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
    """The result of random histories.

    Attributes:
        next: number of the history to continue with.
        steps: number of steps in all histories together.
        ends: number of different final states.
        depth: number of steps in the longest history.
        scenes: number of scenes; more than one if combinations of features are drawn.
        reached: goals that at least one history reached.
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
    """Return what `holdfast committers` declares about a property; None if it declares nothing."""
    wanted = PART_OF.get(name, name)
    row = next((row for row in GUARANTEES if row.name == wanted), None)
    return None if row is None else row.answers.get(committer)


def ranked(violations: Iterable[Violation]) -> list[Violation]:
    """Sort violations: the most harmful first, and among equally harmful ones those with the fewest faults."""
    return sorted(violations, key=lambda one: (_RANKS[one.name][0], one.faults, _RANKS[one.name]))


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort names of properties in the order of `PROPERTIES`."""
    order = [BROKEN_CODE, *PROPERTIES]
    return tuple(sorted(names, key=order.index))
