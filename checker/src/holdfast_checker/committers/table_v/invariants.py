"""Find out whether C1 to C10 hold, and whether replaced data survive, by exploring the scenes of `holdfast check`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.commit import Committer
from holdfast.guarantees import (
    ANOTHER_ENDS,
    BOTH_COMMIT,
    COMMIT_BEGUN,
    DISPLACED,
    STAGED,
    STILL_WRITING,
    TWO_DRIVERS,
    Answer,
)
from holdfast_checker.committers.properties import PART_OF
from holdfast_checker.committers.scenes import SCENES
from holdfast_checker.committers.table_v.attributes import Explored
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget, Exploration, explore
from holdfast_checker.kernel.state_space import BROKEN_CODE

_BESIDE = frozenset({"speculation", "partition", "crash", "lost-reply", "failure", "cancel"})
"""Scenes in which two attempts at a task may commit."""

CIRCUMSTANCES: Mapping[str, frozenset[str]] = {
    BOTH_COMMIT: _BESIDE,
    DISPLACED: _BESIDE,
    STILL_WRITING: _BESIDE | {"asking"},
    COMMIT_BEGUN: frozenset(SCENES),
    TWO_DRIVERS: frozenset({"second-driver", "slow-driver"}),
    ANOTHER_ENDS: frozenset({"second-driver", "slow-driver", "other-job"}),
    STAGED: frozenset({"crash", "lost-reply", "failure", "second-driver", "overwrite", "reader"}),
}
"""For each circumstance, the scenes in which it occurs. It does not explain violations in other scenes."""


def invariant_worlds(rows: Sequence[str]) -> int:
    """Return the number of worlds to explore for a committer's answers to these rows."""
    return len(SCENES) if rows else 0


@dataclass(slots=True)
class _Seen:
    """What the scenes explored so far have shown about one row."""

    properties: tuple[str, ...]
    is_denied: bool
    broke: list[Counterexample] = field(default_factory=list)
    states: int = 0
    histories: int = 0
    complete: bool = True

    @property
    def is_settled(self) -> bool:
        """Check whether this row needs no more scenes: it is declared not to hold, and a counterexample was found."""
        return self.is_denied and bool(self.broke)


def explore_invariants(
    committer: Committer,
    rows: Sequence[str],
    *,
    progress: Callable[[Exploration], None] = lambda found: None,
    budget: Budget = Budget(),
) -> dict[str, Explored]:
    """Answer rows of `GUARANTEES` for a committer; each scene is explored once.

    A guarantee that is declared not to hold is judged until it is violated once; all other guarantees are judged in
    every scene.

    Args:
        rows: names of the rows.
        progress: called after each scene, to report progress.
        budget: the budget of each scene. If it runs out in a scene, good answers are not complete.
    """
    answers = committer.guarantees
    seen = {row: _Seen(_properties(row), not answers[row].holds) for row in rows}
    for scene in SCENES.values() if rows else ():
        open_ = [one for one in seen.values() if not one.is_settled]
        asked = tuple(name for one in open_ for name in one.properties)
        found = Exploration(world=f"{committer.name}/{scene.name}", complete=True)
        if asked:
            world = build_world(committer, replace(scene, properties=asked))
            found = explore(world, budget=budget, until=_have_broken(asked))
        for one in open_:
            _note(one, found)
        progress(found)
    return {row: _answer(one, answers[row]) for row, one in seen.items()}


def _have_broken(properties: Sequence[str]) -> Callable[[Exploration], bool]:
    wanted = set(properties)
    return lambda now: now.findings.keys() >= wanted


def _properties(row: str) -> tuple[str, ...]:
    return (row, *(part for part, whole in PART_OF.items() if whole == row))


def _note(seen: _Seen, found: Exploration) -> None:
    seen.states += found.states
    seen.histories += found.histories
    seen.complete = seen.complete and found.complete
    broke = (found.findings.get(name) for name in (*seen.properties, BROKEN_CODE))
    seen.broke += [
        Counterexample(found.world, one.property, one.broke, one.choices) for one in broke if one is not None
    ]


def _answer(seen: _Seen, declared: Answer) -> Explored:
    """Derive the answer: bad if the row broke in a scene that no declared circumstance explains, good otherwise."""
    scenes = {one.world.partition("/")[2] for one in seen.broke}
    here = tuple(one for one in declared.circumstances if scenes & CIRCUMSTANCES.get(one, frozenset()))
    expected = frozenset[str]().union(*(CIRCUMSTANCES[one] for one in here))
    beyond = [one for one in seen.broke if one.world.partition("/")[2] not in expected]
    shown = next(iter([*beyond, *seen.broke]), None)
    return Explored(
        holds=not beyond,
        circumstances=("", *here) if beyond else here,
        because="nothing was found against it" if shown is None else shown.broke,
        counterexample=shown,
        states=seen.states,
        histories=seen.histories,
        complete=seen.complete or bool(beyond),
    )
