"""Find out by exploration which attributes of paper 000, Table V, a committer has.

An *attribute* is a row of the table. The paper leaves some questions open; they are interpreted as follows:

- *Speculative tasks*: two attempts run concurrently, without faults. When both are over, the output must be that of one
  attempt. The output is judged only then, because Stocator's losing attempt deletes what it wrote. Anything visible
  while an attempt is still writing is noted as a circumstance. So is the case in which both attempts commit, which can
  happen with Python data sources.
- *Recoverable job*: a driver dies after some tasks committed and while no task commit is running. The next attempt at
  the job takes over the committed tasks if it can (as Hadoop does for `file-v1`), runs the other tasks, and knows
  only what the tasks that it ran report: Hadoop's job history records which tasks committed, but not what they
  reported.
- *Abortable task*: the task is aborted before it is told to commit, as the paper requires of "an uncommitted task"
  (II.A). If an upload remains until the job ends, that is noted as a circumstance, since the S3A committers abort it
  then (VI).
- *Abortable job*: the paper says True even for `direct` and EMR, whose aborts undo nothing. So the attribute must mean
  that a job can be undone: by its abort, or by hand, using the names of the files. What the abort undoes by itself is
  noted as a circumstance.
- *Uncommitted output*: what an attempt writes before it is told to commit. The paper says False for EMR although its
  task commit publishes one file after the other, so that is noted as a circumstance.
- *Atomic task commit*: an attempt dies in its task commit. Then none or all of its files are visible; if none is, the
  next attempt and the job commit produce the right output. `direct` has published all files by then, so its task commit
  is atomic; the next attempt then adds its own files beside them, which other rows judge.
- *Atomic job commit*: judged by what the committer's intended readers see (see `experiments`). What a listing shows
  other readers is noted as a circumstance.
- *Partitioned executors*: an executor is cut off at any point, even in its task commit; C1, C2 and C6 must hold. The
  output of the late attempt may replace that of the accepted one. The paper allows this (VIII.C, XIV.A), so it is noted
  as a circumstance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from holdfast.commit import Committer
from holdfast.guarantees import (
    ANOTHER_ENDS,
    BOTH_COMMIT,
    COMMIT_BEGUN,
    DIES_UPLOADING,
    DISPLACED,
    IN_TASK_COMMIT,
    OTHER_READERS,
    PARTITIONED,
    STAGED,
    STILL_WRITING,
    TWO_DRIVERS,
    UNDONE_BY_HAND,
    Answer,
)
from holdfast_checker.committers.properties import PART_OF
from holdfast_checker.committers.scenes import SCENES
from holdfast_checker.committers.table_v.experiments import build_experiment
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget, Exploration, explore
from holdfast_checker.kernel.state_space import BROKEN_CODE


class Question(NamedTuple):
    """A question: a property that is judged in some worlds, and breaks if the answer is bad.

    Attributes:
        property: name of the property that breaks if the answer is bad.
        worlds: names of experiments.
        when: the circumstance about which the question asks; empty if it asks about none.
        decides: whether a bad answer makes the attribute bad, as the paper asks; if not, it names a circumstance in
            which a good attribute becomes bad.
    """

    property: str
    worlds: tuple[str, ...]
    when: str = ""
    decides: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """The answer that explorations give for one row.

    Attributes:
        holds: whether the committer has the attribute.
        circumstances: for each question that had a bad answer, `Question.when`; "" if the question is about none.
        because: the reason, in one sentence.
        counterexample: a history that shows the bad answer; None if there is none.
        states, histories: number of states and histories in the worlds of the questions.
        complete: whether the exploration was complete.
    """

    holds: bool
    circumstances: tuple[str, ...]
    because: str
    counterexample: Counterexample | None
    states: int
    histories: int
    complete: bool


def _asked(name: str, *worlds: str) -> Question:
    return Question(name, worlds, decides=True)


_SIDE_BY_SIDE, _ABORTS, _CUT_OFF = ("side-by-side",), ("aborts-itself", "is-aborted"), ("cut-off",)

ATTRIBUTES: Mapping[str, tuple[Question, ...]] = {
    "speculative-tasks": (
        _asked("speculative-tasks", *_SIDE_BY_SIDE),
        Question("speculative-tasks-two-commits", ("two-commits",), BOTH_COMMIT),
        Question("speculative-tasks-early", _SIDE_BY_SIDE, STILL_WRITING),
    ),
    "recoverable-job": (_asked("recoverable-job", "new-driver"),),
    "abortable-task": (
        _asked("abortable-task", *_ABORTS),
        Question("abortable-task-in-commit", _ABORTS, IN_TASK_COMMIT),
        Question("abortable-task-at-once", _ABORTS, DIES_UPLOADING),
    ),
    "abortable-job": (
        _asked("abortable-job", "given-up"),
        Question("abortable-job-by-itself", ("given-up",), UNDONE_BY_HAND),
    ),
    "uncommitted-output-observable": (
        _asked("uncommitted-output-observable", *_SIDE_BY_SIDE),
        Question("uncommitted-output-observable-in-commit", _SIDE_BY_SIDE, IN_TASK_COMMIT),
    ),
    "committed-output-observable": (_asked("committed-output-observable", *_SIDE_BY_SIDE),),
    "atomic-task-commit": (
        _asked("atomic-task-commit", "dies-in-commit"),
        Question("atomic-task-commit-two-commits", ("dies-beside",), BOTH_COMMIT),
    ),
    "atomic-job-commit": (
        _asked("atomic-job-commit", *_SIDE_BY_SIDE),
        Question("atomic-job-commit-listed", _SIDE_BY_SIDE, OTHER_READERS),
    ),
    "partitioned-executor": (
        _asked("partitioned-executor", *_CUT_OFF),
        Question("partitioned-executor-in-commit", _CUT_OFF, PARTITIONED, decides=True),
        Question("partitioned-executor-C3", _CUT_OFF, PARTITIONED),
    ),
}
"""For each row of Table V, in its order, the questions about it."""

_UNWANTED = frozenset({"uncommitted-output-observable", "committed-output-observable"})
"""Attributes that users do not want: a bad answer means that the committer has them."""


def worlds_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the experiments that the questions about some rows need."""
    return tuple(dict.fromkeys(world for name in names for one in ATTRIBUTES[name] for world in one.worlds))


_JUDGED_AT_DEATHS = frozenset({"dies-in-commit", "dies-beside"})
"""Worlds in which the question is what exists when an attempt dies.

No footprint contains a death, so these small worlds are explored without reduction.
"""


def explore_attributes(
    committer: Committer,
    names: Sequence[str] = tuple(ATTRIBUTES),
    *,
    progress: Callable[[Exploration], None] = lambda found: None,
    budget: Budget = Budget(),
) -> dict[str, Explored]:
    """Find out whether a committer has the given attributes; explore each world only once.

    Args:
        names: names of the attributes.
        progress: called after each world, to report progress.
        budget: the budget of each world. If it runs out in a world, good answers that depend on this world are not
            complete.
    """
    explored = {}
    for world in worlds_of(names):
        reduce = world not in _JUDGED_AT_DEATHS
        explored[world] = explore(build_experiment(committer, world), budget=budget, reduce=reduce)
        progress(explored[world])
    return {name: answer(name, explored) for name in names}


def answer(name: str, explored: Mapping[str, Exploration]) -> Explored:
    """Derive the answer for a row from the explorations of its worlds, by the name of the experiment."""
    worlds = [explored[world] for world in worlds_of([name])]
    found = [(one, bad) for one in ATTRIBUTES[name] if (bad := _found(one, explored)) is not None]
    found.sort(key=lambda pair: not pair[0].decides)
    is_bad = any(one.decides for one, _bad in found)
    return Explored(
        holds=is_bad == (name in _UNWANTED),
        circumstances=tuple(dict.fromkeys(one.when for one, _bad in found)),
        because=found[0][1].broke if found else "nothing was found against it",
        counterexample=found[0][1] if found else None,
        states=sum(one.states for one in worlds),
        histories=sum(one.histories for one in worlds),
        complete=is_bad or all(one.complete for one in worlds),
    )


def _found(question: Question, explored: Mapping[str, Exploration]) -> Counterexample | None:
    for world in question.worlds:
        findings = explored[world].findings
        found = findings.get(question.property) or findings.get(BROKEN_CODE)
        if found is not None:
            return Counterexample(explored[world].world, found.property, found.broke, found.choices)
    return None


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
