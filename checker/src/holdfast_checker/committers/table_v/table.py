"""Build Table V of paper 000, extended by C1 to C10, from what exploration finds.

The table is compared with the paper and with what the committers declare. Worked composition::

    table = build_table(progress=lambda now: print(now.world, now.states))
    for row in table.rows:
        print(row.title, [table.cell(row.name, name).holds for name in table.committers])
    for cell in table.differences():
        print(cell.committer, cell.row, cell.reason)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.commit import Committer
from holdfast.errors import InvalidRequestError
from holdfast.guarantees import GUARANTEES, Answer, Guarantee
from holdfast.runtime import Clock, SystemClock
from holdfast_checker.committers.subject import CHECKED
from holdfast_checker.committers.table_v.answers import (
    ATTRIBUTES,
    Explored,
    explore_attributes,
    explore_invariants,
    invariant_worlds,
    worlds_of,
)
from holdfast_checker.framework.subject import find_name
from holdfast_checker.kernel.counterexample import Counterexample, encode
from holdfast_checker.kernel.explore import Budget, Exploration
from holdfast_checker.specimens import COMPARED

# Paper 000, Table V, column by column.
_DIRECT = (False, False, False, True, True, True, True, True, False)
_STOCATOR = (True, False, True, True, True, True, True, True, False)
_S3A = (True, False, True, True, False, False, True, False, True)
_EMR = (True, True, True, True, False, True, False, True, False)

# What the text says about committers that are not in the table; None where it says nothing.
_FILE_V1 = (
    None,
    True,  # 000 III.B: a second job attempt can reuse the output of all committed tasks
    True,  # 000 III.B: aborted by deleting its attempt path
    True,  # 000 III.B: cleaned up by deleting the output of all job attempts
    False,  # 000 III.B: what starts with "_" is not visible
    False,  # 002: all is renamed into the destination in the job commit
    True,  # 000 III: "an atomic task commit"
    False,  # 000 X: "itself non-atomic in job commit"
    True,  # 000 IV: its task commit can be repeated, even if the first attempt has become partitioned
)
_FILE_V2 = (
    None,
    None,
    None,
    None,  # 000 III.C and 002: what is committed stays visible, as with EMR, for which Table V says True
    None,
    True,  # 000 III: "intermediate work is visible"
    False,  # 000 III.C: "now a non-atomic operation"
    None,
    False,  # 002, "Why the V2 committer is incorrect/unsafe"
)
_MANIFEST = (
    None,
    False,  # 002: "targets Spark, where there is no attempt at recovery"
    None,
    None,
    None,
    None,
    True,  # 002: "provides an atomic task commit"
    None,
    None,
)
_COLUMNS: Mapping[str, tuple[bool | None, ...]] = {
    "magic": _S3A,
    "staging-directory": _S3A,
    "staging-partitioned": _S3A,
    "manifest": _MANIFEST,
    "file-v1": _FILE_V1,
    "file-v2": _FILE_V2,
    "direct": _DIRECT,
    "stocator": _STOCATOR,
    "emr": _EMR,
}


def paper_answer(committer: str, row: str) -> bool | None:
    """Return the answer of papers 000 and 002; None if they give none, or if the row is not in Table V."""
    column = _COLUMNS.get(committer)
    return None if column is None else dict(zip(ATTRIBUTES, column, strict=True)).get(row)


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


STATES = 10_000
"""Default limit of states for each world of C1 to C10; the table of all committers then takes about two minutes.

`holdfast check` of one committer explores its worlds completely.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of `build_table`.

    Attributes:
        world: the last explored world; its name starts with the committer's.
        done, total: number of worlds explored so far, and in all.
        states: number of states in all worlds so far.
    """

    world: str
    done: int
    total: int
    states: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One committer's answer to one row.

    Attributes:
        row: name of the guarantee.
        wanted: the answer that users want.
        holds: the answer that exploration found to the paper's question.
        unless: for a good answer, the circumstances in which the opposite was found, as named in `holdfast.guarantees`.
        only: for a bad answer, the circumstances in which alone it was found; empty if it needs none.
        because: what exploration found, in one sentence.
        paper: the answer of papers 000 or 002; None if they have none.
        declared: what `holdfast committers` declares.
        states, histories: number of states and histories explored for the answer.
        complete: whether the answer is final: everything was explored, or a counterexample decides.
        counterexample: the history that decides the answer, or that shows a circumstance; it can be replayed.
        reason: why the answer differs from the paper's or from the declared one; empty if it does not.
    """

    committer: str
    row: str
    wanted: bool
    holds: bool
    unless: tuple[str, ...]
    only: tuple[str, ...]
    because: str
    paper: bool | None
    declared: Answer
    states: int
    histories: int
    complete: bool
    counterexample: Counterexample | None
    reason: str

    @property
    def agrees_with_paper(self) -> bool | None:
        """Check whether the answer is that of the papers; None if the papers give none."""
        return None if self.paper is None else self.holds == self.paper

    @property
    def agrees_with_declaration(self) -> bool:
        """Check whether the answer agrees with the declaration.

        A declared "yes, unless" also agrees with a bad answer if the answer was found only in that circumstance. If an
        attribute has several circumstances, only the worst is declared. If a circumstance is declared for one of C1 to
        C10, it need not be found, because the scenes may not contain it.
        """
        said, found = set(self.declared.circumstances), set(self.unless)
        if self.declared.holds != self.wanted:
            return self.holds == self.declared.holds
        if self.holds != self.wanted:
            return bool(self.only) and said == set(self.only)
        if self.row in ATTRIBUTES:
            return said <= found and bool(said) == bool(found)
        return found <= said


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The answers of the requested committers and rows.

    Attributes:
        rows: the requested rows of `GUARANTEES`.
        cells: the answers, by (name of the row, name of the committer).
        states: number of states explored.
    """

    committers: tuple[str, ...]
    rows: tuple[Guarantee, ...]
    cells: Mapping[tuple[str, str], Cell]
    states: int
    seconds: float

    def cell(self, row: str, committer: str) -> Cell:
        """Return one answer."""
        return self.cells[row, committer]

    def differences(self) -> list[Cell]:
        """List the cells that differ from the paper or from the declaration, row by row."""
        return [
            cell for cell in self.cells.values() if cell.agrees_with_paper is False or not cell.agrees_with_declaration
        ]

    def document(self) -> dict[str, object]:
        """Return the table for ``--json``. Times differ from run to run; the counterexamples in it can be replayed."""
        return {
            "format": "holdfast-table/1",
            "committers": list(self.committers),
            "rows": [
                {
                    "name": row.name,
                    "title": row.title,
                    "meaning": row.meaning,
                    "wanted": row.wanted,
                    "cells": {name: _document(self.cells[row.name, name]) for name in self.committers},
                }
                for row in self.rows
            ],
            "states": self.states,
            "seconds": round(self.seconds, 1),
        }


def _document(cell: Cell) -> dict[str, object]:
    declared = cell.declared
    return {
        "holds": cell.holds,
        "unless": list(cell.unless),
        "only": list(cell.only),
        "because": cell.because,
        "paper": cell.paper,
        "declared": {"holds": declared.holds, "unless": declared.unless or None, "why": declared.why},
        "agrees_with_paper": cell.agrees_with_paper,
        "agrees_with_declaration": cell.agrees_with_declaration,
        "reason": cell.reason or None,
        "states": cell.states,
        "histories": cell.histories,
        "complete": cell.complete,
        "counterexample": None if cell.counterexample is None else json.loads(encode(cell.counterexample)),
    }


# --- making it --------------------------------------------------------------------------------------------------------
def build_table(
    committers: Sequence[str] = (),
    rows: Sequence[str] = (),
    *,
    progress: Callable[[Progress], None] = lambda now: None,
    budget: Budget = Budget(),
    clock: Clock | None = None,
) -> Table:
    """Explore committers, and compare the answers with the paper and with what is declared.

    Guarantee: the same code gives the same table, except for the time and, if the budget limits the seconds, for how
    much was explored.

    Args:
        committers, rows: the names of committers and rows; empty for all.
        progress: called after each world, to report progress.
        budget: the budget of each world in which C1 to C10 are judged; if it does not limit the states, `STATES` does.
            The worlds of Table V are explored completely, unless the seconds of the budget run out.

    Raises:
        InvalidRequestError: a committer or row does not exist.
    """
    clock = clock or SystemClock()
    started_s = clock.elapsed_s()
    chosen = [CHECKED[find_name(name, CHECKED, "committer")] for name in committers] or list(COMPARED.values())
    wanted = tuple(row for row in GUARANTEES if not rows or row.name in rows)
    if unknown := set(rows) - {row.name for row in wanted}:
        raise InvalidRequestError("unknown row: see holdfast committers", row=min(unknown))
    attributes = [row.name for row in wanted if row.name in ATTRIBUTES]
    invariants = [row.name for row in wanted if row.name not in ATTRIBUTES]
    worlds = len(worlds_of(attributes))
    now = Progress(world="", done=0, total=len(chosen) * (worlds + invariant_worlds(invariants)), states=0)

    def explored(one: Exploration) -> None:
        nonlocal now
        now = replace(now, world=one.world, done=now.done + 1, states=now.states + one.states)
        progress(now)

    answers: dict[str, dict[str, Explored]] = {}
    small = replace(budget, states=budget.states or STATES)
    for committer in chosen:
        found = explore_attributes(committer, attributes, progress=explored, budget=Budget(seconds=budget.seconds))
        found |= explore_invariants(committer, invariants, progress=explored, budget=small)
        answers[committer.name] = found
    names = tuple(committer.name for committer in chosen)
    return Table(
        committers=names,
        rows=wanted,
        cells={(row.name, one.name): _cell(row, one, answers[one.name][row.name]) for row in wanted for one in chosen},
        states=now.states,
        seconds=clock.elapsed_s() - started_s,
    )


def _cell(row: Guarantee, committer: Committer, found: Explored) -> Cell:
    return Cell(
        committer=committer.name,
        row=row.name,
        wanted=row.wanted,
        holds=found.holds,
        unless=found.circumstances if found.holds == row.wanted else (),
        only=() if found.holds == row.wanted or "" in found.circumstances else found.circumstances,
        because=found.because,
        paper=paper_answer(committer.name, row.name),
        declared=committer.guarantees[row.name],
        states=found.states,
        histories=found.histories,
        complete=found.complete,
        counterexample=found.counterexample,
        reason=REASONS.get((committer.name, row.name), ""),
    )
