"""Find out by exploration which attributes of paper 000, Table V, a committer has.

An *attribute* is a row of the table. The paper leaves some questions open; they are interpreted as follows:

- *Speculative tasks*: two attempts run concurrently, without faults. When both are over, the output must be that of one
  attempt. The output is judged only then, because Stocator's losing attempt deletes what it wrote. Anything visible
  while an attempt is still writing is noted as a circumstance. So is the case in which both attempts commit, which can
  happen with Python data sources.
- *Recoverable job*: a driver dies after some tasks committed and while no task commit is running. The next attempt at
  the job takes over the committed tasks if it can (`recover_v1_task` for `file-v1`), runs the other tasks, and knows
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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.commit import Committer
from holdfast.guarantees import (
    BOTH_COMMIT,
    DIES_UPLOADING,
    IN_TASK_COMMIT,
    OTHER_READERS,
    PARTITIONED,
    STILL_WRITING,
    UNDONE_BY_HAND,
)
from holdfast_checker.committers.table_v.experiments import EXPERIMENTS, build_experiment
from holdfast_checker.kernel.counterexample import Counterexample
from holdfast_checker.kernel.explore import Budget, Exploration, explore
from holdfast_checker.kernel.state_space import BROKEN_CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question: a property that is judged in some worlds, and breaks if the answer is bad.

    Attributes:
        worlds: names of experiments.
        property: name of the property that breaks if the answer is bad.
        when: the circumstance about which the question asks; empty if it asks about none.
    """

    worlds: tuple[str, ...]
    property: str
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A row of Table V.

    Attributes:
        asked: the questions that the paper asks; one bad answer makes the attribute bad.
        besides: questions about circumstances in which a good attribute becomes bad.
        bad: the value of the attribute if a question has a bad answer; True for attributes that users do not want, such
            as observable output.
    """

    name: str
    asked: tuple[Question, ...]
    besides: tuple[Question, ...] = ()
    bad: bool = False

    @property
    def worlds(self) -> tuple[str, ...]:
        """Return the names of the experiments that all questions of this attribute need."""
        return tuple(dict.fromkeys(world for one in (*self.asked, *self.besides) for world in one.worlds))


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


def _attribute(
    name: str,
    *worlds: str,
    in_commit: str = "",
    besides: Sequence[Question] = (),
    bad: bool = False,
) -> Attribute:
    asked = [Question(worlds=worlds, property=name)]
    if in_commit:
        asked.append(Question(worlds=worlds, property=f"{name}-in-commit", when=in_commit))
    return Attribute(name=name, asked=tuple(asked), besides=tuple(besides), bad=bad)


def _question(when: str, name: str, *worlds: str) -> Question:
    return Question(worlds=worlds, property=name, when=when)


_ABORTS = ("aborts-itself", "is-aborted")

ATTRIBUTES: Mapping[str, Attribute] = {
    one.name: one
    for one in (
        _attribute(
            "speculative-tasks",
            "side-by-side",
            besides=(
                _question(BOTH_COMMIT, "speculative-tasks-two-commits", "two-commits"),
                _question(STILL_WRITING, "speculative-tasks-early", "side-by-side"),
            ),
        ),
        _attribute("recoverable-job", "new-driver"),
        _attribute(
            "abortable-task",
            *_ABORTS,
            besides=(
                _question(IN_TASK_COMMIT, "abortable-task-in-commit", *_ABORTS),
                _question(DIES_UPLOADING, "abortable-task-at-once", *_ABORTS),
            ),
        ),
        _attribute(
            "abortable-job",
            "given-up",
            besides=(_question(UNDONE_BY_HAND, "abortable-job-by-itself", "given-up"),),
        ),
        _attribute(
            "uncommitted-output-observable",
            "side-by-side",
            besides=(_question(IN_TASK_COMMIT, "uncommitted-output-observable-in-commit", "side-by-side"),),
            bad=True,
        ),
        _attribute("committed-output-observable", "side-by-side", bad=True),
        _attribute(
            "atomic-task-commit",
            "dies-in-commit",
            besides=(_question(BOTH_COMMIT, "atomic-task-commit-two-commits", "dies-beside"),),
        ),
        _attribute(
            "atomic-job-commit",
            "side-by-side",
            besides=(_question(OTHER_READERS, "atomic-job-commit-listed", "side-by-side"),),
        ),
        _attribute(
            "partitioned-executor",
            "cut-off",
            in_commit=PARTITIONED,
            besides=(_question(PARTITIONED, "partitioned-executor-C3", "cut-off"),),
        ),
    )
}
"""All attributes by name, in the order of the table."""

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
    wanted = dict.fromkeys(world for name in names for world in ATTRIBUTES[name].worlds)
    explored = {}
    for world in wanted:
        reduce = world not in _JUDGED_AT_DEATHS
        explored[world] = explore(build_experiment(committer, EXPERIMENTS[world]), budget=budget, reduce=reduce)
        progress(explored[world])
    return {name: answer(ATTRIBUTES[name], explored) for name in names}


def answer(attribute: Attribute, explored: Mapping[str, Exploration]) -> Explored:
    """Derive the answer from the explorations of the attribute's worlds.

    Args:
        explored: the explorations, by the name of the experiment.
    """
    worlds = [explored[world] for world in attribute.worlds]
    bad = [(one.when, found) for one in attribute.asked if (found := _found(one, explored)) is not None]
    besides = [(one.when, found) for one in attribute.besides if (found := _found(one, explored)) is not None]
    every = [*bad, *besides]
    complete = all(one.complete for one in worlds)
    states, histories = sum(one.states for one in worlds), sum(one.histories for one in worlds)
    return Explored(
        holds=attribute.bad if bad else not attribute.bad,
        circumstances=tuple(dict.fromkeys(when for when, _found in every)),
        because=every[0][1].broke if every else "nothing was found against it",
        counterexample=every[0][1] if every else None,
        states=states,
        histories=histories,
        complete=complete or bool(bad),
    )


def _found(question: Question, explored: Mapping[str, Exploration]) -> Counterexample | None:
    for world in question.worlds:
        findings = explored[world].findings
        found = findings.get(question.property) or findings.get(BROKEN_CODE)
        if found is not None:
            return Counterexample(explored[world].world, found.property, found.broke, found.choices)
    return None
