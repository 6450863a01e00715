"""Paper 000, Table V, and C1 to C10, as exploration finds them; compared with the paper and with what is declared.

Worked composition::

    table = build_table(progress=lambda done: print(done.committer, done.what))
    for row in table.rows:
        print(row.title, [table.cell(row.name, name).holds for name in table.committers])
    for cell in table.differences():
        print(cell.committer, cell.row, cell.reason)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.checker.kernel.counterexample import Counterexample
from holdfast.checker.kernel.explore import Budget
from holdfast.commit.guarantees import Answer, Guarantee

__all__ = ["Cell", "Progress", "Table", "build_table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far `build_table` has come.

    Attributes:
        what: the world that was explored last; its name begins with the committer's.
        done, total: worlds.
        states: of all worlds by now.
    """

    committer: str
    what: str
    done: int
    total: int
    states: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One committer's answer to one row.

    Attributes:
        row: name of the guarantee.
        holds: as found, where the question is the paper's.
        unless: circumstances in which the opposite was found, in the words of `holdfast.commit.guarantees`.
        because: what was found, one sentence.
        paper: what papers 000 or 002 answer; None if they do not.
        declared: what `holdfast committers` says.
        states, histories: that were gone through for the answer.
        complete: whether these were all; if not, what is not found may still be there.
        counterexample: the history that decides the answer, or that shows a circumstance; replays in
            `find_world(counterexample.world)`.
        reason: why the answer differs from the paper's or from the declared one; empty where it does not.
    """

    committer: str
    row: str
    holds: bool
    unless: tuple[str, ...]
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
        """None where the papers say nothing."""
        raise NotImplementedError

    @property
    def agrees_with_declaration(self) -> bool:
        """Whether what is declared is what was found, with its circumstance if there is one."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All answers.

    Attributes:
        rows: of `GUARANTEES`, those that were asked for.
        cells: by (name of the row, name of the committer).
    """

    committers: tuple[str, ...]
    rows: tuple[Guarantee, ...]
    cells: Mapping[tuple[str, str], Cell]
    states: int
    seconds: float

    def cell(self, row: str, committer: str) -> Cell:
        """One answer."""
        return self.cells[row, committer]

    def groups(self) -> list[tuple[str, ...]]:
        """Committers whose columns are equal, for a table that has one column for each group."""
        raise NotImplementedError

    def differences(self) -> list[Cell]:
        """Cells that differ from the paper or from the declaration, each with its reason."""
        raise NotImplementedError

    def document(self) -> dict[str, object]:
        """The table for ``--json``; counterexamples replay."""
        raise NotImplementedError


def build_table(
    committers: Sequence[str] = (),
    rows: Sequence[str] = (),
    *,
    progress: Callable[[Progress], None] = lambda done: None,
    budget: Budget = Budget(),
) -> Table:
    """Explore every committer and compare.

    Args:
        committers, rows: names; all if empty.
        progress: told after each world.
        budget: of each world of C1 to C10; the worlds of Table V are gone through in full.
    """
    raise NotImplementedError
