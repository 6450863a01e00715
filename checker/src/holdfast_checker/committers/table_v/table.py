"""Build the table of guarantees of all committers (paper 000, Table V, and C1 to C10) by exploring them.

The table is compared with the paper and with what the committers declare. Worked composition::

    table = build_table()
    for row in table.rows:
        print(row.title, [table.cell(row.name, name).holds for name in table.committers])
    for cell in table.differences():
        print(cell.committer.name, cell.row.name, cell.reason)

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

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from holdfast import guarantees
from holdfast.commit import Committer
from holdfast.guarantees import GUARANTEES, Guarantee, GuaranteeAnswer
from holdfast.runtime import SystemClock
from holdfast_checker.committers.properties import PART_OF
from holdfast_checker.committers.scenes import SCENES
from holdfast_checker.committers.table_v.experiments import build_experiment
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.framework.scene_files import SceneFields, read_sections
from holdfast_checker.kernel.counterexample import Counterexample, encode_counterexample
from holdfast_checker.kernel.explore import Budget, Exploration, explore_world
from holdfast_checker.kernel.state_space import BROKEN_CODE
from holdfast_checker.specimens import COMPARED

_YES: Mapping[str | None, bool | None] = {"yes": True, "no": False, None: None}

PAPERS = read_sections("holdfast_checker.committers.table_v", "papers.ini")
"""What papers 000 and 002 answer ("yes" or "no"), by committer and row."""

_STAGING_PARTITIONED = (
    "The pending sets pass through file-v1's task commit, which deletes what another attempt has committed before it "
    "renames its own: a job commit between the two finds no set of the task and does not notice. The paper derives "
    "resilience from v1 (VIII.B) and considers only complete commits."
)

REASONS: Mapping[tuple[str, str], str] = {
    ("magic", "recoverable-job"): (
        "The paper reports what its committers declare: they support no recovery, so the job starts over. The pending "
        "sets of committed tasks still exist, and a driver that continues the same job finds them; nothing in Holdfast "
        "does so, as declared."
    ),
    ("staging-directory", "partitioned-executor"): _STAGING_PARTITIONED,
    ("staging-partitioned", "partitioned-executor"): _STAGING_PARTITIONED,
    ("file-v1", "partitioned-executor"): (
        "An attempt that was cut off during its task commit deletes the directory that another attempt has committed, "
        "before it renames its own; a job commit between the two misses the task and does not notice. The paper "
        "considers only complete task commits, which can be repeated (IV.1)."
    ),
}
"""Why an answer differs from the paper's or the declared one, by committer and row, in one or two sentences."""


# --- answers ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeCell:
    """The answer for one committer to one question (row) of Table V.

    Attributes:
        holds: the answer that exploration found to the paper's question.
        circumstances: those of the bad answers found, as named in `holdfast.guarantees`; "" for an unconditional one.
        because: what exploration found, in one sentence.
        counterexample: the history that decides the answer, or that shows a circumstance; it can be replayed.
        states: number of states explored for the answer.
        complete: whether the answer is final: everything was explored, or a counterexample decides.
    """

    committer: Committer
    row: Guarantee
    holds: bool
    circumstances: tuple[str, ...]
    because: str
    counterexample: Counterexample | None
    states: int
    complete: bool

    @property
    def unless(self) -> tuple[str, ...]:
        """Return the circumstances in which a good answer does not hold; empty for a bad answer."""
        return self.circumstances if self.holds == self.row.wanted else ()

    @property
    def paper_answer(self) -> bool | None:
        """Return the answer that paper 000 or 002 gives; None if neither does."""
        return _YES[PAPERS.get(self.committer.name, SceneFields()).get(self.row.name)]

    @property
    def declared(self) -> GuaranteeAnswer:
        """Return the answer that `holdfast committers` declares for this committer and row."""
        return self.committer.guarantees[self.row.name]

    @property
    def reason(self) -> str:
        """Return why the answer differs from the paper's or from the declared one; empty if it does not."""
        return REASONS.get((self.committer.name, self.row.name), "")

    @property
    def agrees_with_paper(self) -> bool | None:
        """Check whether the answer is the one in paper 000 or 002; None if neither gives one."""
        return None if self.paper_answer is None else self.holds == self.paper_answer

    @property
    def agrees_with_declaration(self) -> bool:
        """Check whether the answer agrees with the declaration.

        A declared "yes, unless" also agrees with an unwanted answer that was found only in the declared circumstance.
        If an attribute has several circumstances, only the worst is declared. If a circumstance is declared for one of
        C1 to C10, it need not be found, because the scenes may not contain it.
        """
        said, found = set(self.declared.circumstances), set(self.circumstances)
        if self.declared.holds != self.row.wanted:
            return self.holds == self.declared.holds
        if self.holds != self.row.wanted:
            return bool(found) and said == found
        if self.row.name in ATTRIBUTES:
            return said <= found and bool(said) == bool(found)
        return found <= said

    def to_json_value(self) -> dict[str, object]:
        """Return the answer, its evidence, and how it compares with the paper and the declaration, as a JSON value."""
        said = self.declared
        return {
            "holds": self.holds,
            "unless": list(self.unless),
            "because": self.because,
            "paper": self.paper_answer,
            "declared": {"holds": said.holds, "unless": said.unless or None, "why": said.why},
            "agrees_with_paper": self.agrees_with_paper,
            "agrees_with_declaration": self.agrees_with_declaration,
            "reason": self.reason or None,
            "states": self.states,
            "complete": self.complete,
            "counterexample": None
            if self.counterexample is None
            else json.loads(encode_counterexample(self.counterexample)),
        }


# --- Table V ----------------------------------------------------------------------------------------------------------
class Question(NamedTuple):
    """A question about an attribute of committers in Table V of paper 000: a property that some worlds violate if the
    answer is bad.

    Attributes:
        property: name of the property that breaks if the answer is bad.
        worlds: names of experiments.
        when: the circumstance about which the question asks; empty if it asks about none.
        decides: whether a bad answer makes the attribute bad, as the paper asks; if not, the attribute is bad only in
            the circumstance `when`.
    """

    property: str
    worlds: tuple[str, ...]
    when: str = ""
    decides: bool = False


def _deciding_question(name: str, *worlds: str) -> Question:
    return Question(name, worlds, decides=True)


_SIDE_BY_SIDE, _ABORTS, _CUT_OFF = ("side-by-side",), ("aborts-itself", "is-aborted"), ("cut-off",)

ATTRIBUTES: Mapping[str, tuple[Question, ...]] = {
    "speculative-tasks": (
        _deciding_question("speculative-tasks", *_SIDE_BY_SIDE),
        Question("speculative-tasks-two-commits", ("two-commits",), guarantees.BOTH_COMMIT),
        Question("speculative-tasks-early", _SIDE_BY_SIDE, guarantees.STILL_WRITING),
    ),
    "recoverable-job": (_deciding_question("recoverable-job", "new-driver"),),
    "abortable-task": (
        _deciding_question("abortable-task", *_ABORTS),
        Question("abortable-task-in-commit", _ABORTS, guarantees.IN_TASK_COMMIT),
        Question("abortable-task-at-once", _ABORTS, guarantees.DIES_UPLOADING),
    ),
    "abortable-job": (
        _deciding_question("abortable-job", "given-up"),
        Question("abortable-job-by-itself", ("given-up",), guarantees.UNDONE_BY_HAND),
    ),
    "uncommitted-output-observable": (
        _deciding_question("uncommitted-output-observable", *_SIDE_BY_SIDE),
        Question("uncommitted-output-observable-in-commit", _SIDE_BY_SIDE, guarantees.IN_TASK_COMMIT),
    ),
    "committed-output-observable": (_deciding_question("committed-output-observable", *_SIDE_BY_SIDE),),
    "atomic-task-commit": (
        _deciding_question("atomic-task-commit", "dies-in-commit"),
        Question("atomic-task-commit-two-commits", ("dies-beside",), guarantees.BOTH_COMMIT),
    ),
    "atomic-job-commit": (
        _deciding_question("atomic-job-commit", *_SIDE_BY_SIDE),
        Question("atomic-job-commit-listed", _SIDE_BY_SIDE, guarantees.OTHER_READERS),
    ),
    "partitioned-executor": (
        _deciding_question("partitioned-executor", *_CUT_OFF),
        Question("partitioned-executor-in-commit", _CUT_OFF, guarantees.PARTITIONED, decides=True),
        Question("partitioned-executor-C3", _CUT_OFF, guarantees.PARTITIONED),
    ),
}
"""The questions about each attribute (row) of Table V, in the order of the table."""

_JUDGED_AT_DEATHS = frozenset({"dies-in-commit", "dies-beside"})
"""Worlds in which the question is what exists when an attempt dies.

No footprint contains a death, so these small worlds are explored without reduction.
"""


def _experiments_for_rows(rows: Iterable[Guarantee]) -> tuple[str, ...]:
    """Return the names of the experiments that the questions about some rows need."""
    return tuple(dict.fromkeys(world for row in rows for one in ATTRIBUTES[row.name] for world in one.worlds))


_Checks = Callable[[Exploration], None]


def _answer_attribute_rows(
    committer: Committer, rows: Sequence[Guarantee], explored: _Checks, budget: Budget
) -> list[GuaranteeCell]:
    """Find out whether a committer has attributes; explore each world only once."""
    found = {}
    for world in _experiments_for_rows(rows):
        reduce = world not in _JUDGED_AT_DEATHS
        found[world] = explore_world(build_experiment(committer, world), budget=budget, reduce=reduce)
        explored(found[world])
    return [_answer_attribute_row(committer, row, found) for row in rows]


def _answer_attribute_row(committer: Committer, row: Guarantee, explored: Mapping[str, Exploration]) -> GuaranteeCell:
    worlds = [explored[world] for world in _experiments_for_rows([row])]
    found = [(one, bad) for one in ATTRIBUTES[row.name] if (bad := _violation_of_question(one, explored)) is not None]
    found.sort(key=lambda pair: not pair[0].decides)
    is_bad = any(one.decides for one, _bad in found)
    return GuaranteeCell(
        committer=committer,
        row=row,
        holds=is_bad is not row.wanted,
        circumstances=tuple(dict.fromkeys(one.when for one, _bad in found)),
        because=found[0][1].broke if found else "nothing was found against it",
        counterexample=found[0][1] if found else None,
        states=sum(one.states for one in worlds),
        complete=is_bad or all(one.complete for one in worlds),
    )


def _violation_of_question(question: Question, explored: Mapping[str, Exploration]) -> Counterexample | None:
    findings = (explored[world].findings for world in question.worlds)
    return next((one for of in findings if (one := of.get(question.property) or of.get(BROKEN_CODE))), None)


# --- C1 to C10 --------------------------------------------------------------------------------------------------------
_BESIDE = frozenset({"speculation", "partition", "crash", "lost-reply", "failure", "cancel"})
"""Scenes in which two attempts at a task may commit."""

CIRCUMSTANCES: Mapping[str, frozenset[str]] = {
    guarantees.BOTH_COMMIT: _BESIDE,
    guarantees.DISPLACED: _BESIDE,
    guarantees.STILL_WRITING: _BESIDE | {"asking"},
    guarantees.COMMIT_BEGUN: frozenset(SCENES),
    guarantees.TWO_DRIVERS: frozenset({"second-driver", "slow-driver"}),
    guarantees.ANOTHER_ENDS: frozenset({"second-driver", "slow-driver", "other-job"}),
    guarantees.STAGED: frozenset({"crash", "lost-reply", "failure", "second-driver", "overwrite", "reader"}),
}
"""For each circumstance, the scenes in which it occurs. It does not explain violations in other scenes."""


@dataclass(slots=True)
class _RowEvidence:
    """What the scenes explored so far have shown about one row."""

    row: Guarantee
    declared: GuaranteeAnswer
    broke: list[Counterexample] = field(default_factory=list)
    states: int = 0
    complete: bool = True

    @property
    def properties_to_judge(self) -> tuple[str, ...]:
        """The properties still to judge: empty once a counterexample is found and the row is declared not to hold."""
        parts = (part for part, whole in PART_OF.items() if whole == self.row.name)
        return () if self.broke and not self.declared.holds else (self.row.name, *parts)


def _answer_invariant_rows(
    committer: Committer, rows: Sequence[Guarantee], explored: _Checks, budget: Budget
) -> list[GuaranteeCell]:
    """Answer rows of C1 to C10 for a committer; each scene is explored once."""
    seen = [_RowEvidence(row, committer.guarantees[row.name]) for row in rows]
    for scene in SCENES.values() if rows else ():
        names = {one.row.name: one.properties_to_judge for one in seen}
        asked = tuple(name for those in names.values() for name in those)
        found = Exploration(world=f"{committer.name}/{scene.name}", complete=True)
        if asked:
            world = build_world(committer, replace(scene, properties=asked))
            found = explore_world(world, budget=budget, until=_stop_once_all_violated(asked))
        for one in seen:
            if names[one.row.name]:
                one.states += found.states
                one.complete = one.complete and found.complete
                one.broke += [found.findings[n] for n in (*names[one.row.name], BROKEN_CODE) if n in found.findings]
        explored(found)
    return [_derive_invariant_answer(committer, one) for one in seen]


def _stop_once_all_violated(names: Iterable[str]) -> Callable[[Exploration], bool]:
    wanted = set(names)
    return lambda now: now.findings.keys() >= wanted


def _derive_invariant_answer(committer: Committer, seen: _RowEvidence) -> GuaranteeCell:
    """Derive the answer: bad if the row broke in a scene that no declared circumstance explains, good otherwise."""
    scenes = {one.world.partition("/")[2] for one in seen.broke}
    here = tuple(one for one in seen.declared.circumstances if scenes & CIRCUMSTANCES.get(one, frozenset()))
    expected = frozenset[str]().union(*(CIRCUMSTANCES[one] for one in here))
    beyond = [one for one in seen.broke if one.world.partition("/")[2] not in expected]
    shown = next(iter([*beyond, *seen.broke]), None)
    return GuaranteeCell(
        committer=committer,
        row=seen.row,
        holds=not beyond,
        circumstances=("", *here) if beyond else here,
        because="nothing was found against it" if shown is None else shown.broke,
        counterexample=shown,
        states=seen.states,
        complete=seen.complete or bool(beyond),
    )


# --- the table --------------------------------------------------------------------------------------------------------
STATES = 10_000
"""Default limit of states for each world of C1 to C10; the table of all committers then takes about two minutes.

`holdfast check` of one committer explores its worlds completely.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeTable:
    """The answers of committers to the rows of Table V.

    Attributes:
        cells: the answers, by (name of the row, name of the committer), row by row.
        states: number of states explored.
    """

    committers: tuple[str, ...]
    rows: tuple[Guarantee, ...]
    cells: Mapping[tuple[str, str], GuaranteeCell]
    states: int
    seconds: float

    def cell(self, row: str, committer: str) -> GuaranteeCell:
        """Return the answer (cell) for a row and a committer, given both names."""
        return self.cells[row, committer]

    def differences(self) -> list[GuaranteeCell]:
        """List the cells that differ from the paper or from the declaration, row by row."""
        cells = self.cells.values()
        return [one for one in cells if one.agrees_with_paper is False or not one.agrees_with_declaration]

    def to_json_value(self) -> dict[str, object]:
        """Return the whole table as a JSON value, with counterexamples that can be replayed."""
        return {
            "format": "holdfast-table/1",
            "committers": list(self.committers),
            "rows": [
                {
                    "name": row.name,
                    "title": row.title,
                    "meaning": row.meaning,
                    "wanted": row.wanted,
                    "cells": {name: self.cells[row.name, name].to_json_value() for name in self.committers},
                }
                for row in self.rows
            ],
            "states": self.states,
            "seconds": round(self.seconds, 1),
        }


_EVERY_ROW = tuple(row.name for row in GUARANTEES)


def build_table(
    committers: Sequence[str] = tuple(COMPARED),
    rows: Sequence[str] = _EVERY_ROW,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    budget: Budget = Budget(),
) -> GuaranteeTable:
    """Explore committers, and build the table of their guarantees, compared with the papers and the declarations.

    Guarantee: the same code gives the same table, except for the time and, if the budget limits the seconds, for how
    much was explored.

    Args:
        progress: called after each world with the number of worlds explored so far, and in all.
        budget: the budget of each world in which C1 to C10 are judged; if it does not limit the states, `STATES` does.
            The worlds of Table V are explored completely, unless the seconds of the budget run out.
    """
    clock = SystemClock()
    started_s = clock.elapsed_s()
    wanted = tuple(row for row in GUARANTEES if row.name in rows)
    attributes = [row for row in wanted if row.name in ATTRIBUTES]
    invariants = [row for row in wanted if row.name not in ATTRIBUTES]
    total = len(committers) * (len(_experiments_for_rows(attributes)) + (len(SCENES) if invariants else 0))
    states: list[int] = []

    def note_exploration(one: Exploration) -> None:
        states.append(one.states)
        progress(len(states), total)

    cells: list[GuaranteeCell] = []
    for committer in (COMPARED[name] for name in committers):
        cells += _answer_attribute_rows(committer, attributes, note_exploration, Budget(seconds=budget.seconds))
        cells += _answer_invariant_rows(
            committer, invariants, note_exploration, replace(budget, states=budget.states or STATES)
        )
    by_place = {(cell.row.name, cell.committer.name): cell for cell in cells}
    return GuaranteeTable(
        committers=tuple(committers),
        rows=wanted,
        cells={(row.name, name): by_place[row.name, name] for row in wanted for name in committers},
        states=sum(states),
        seconds=clock.elapsed_s() - started_s,
    )
