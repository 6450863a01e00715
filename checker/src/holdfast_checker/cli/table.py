"""Run ``holdfast check --all``: compare what exploration finds for Table V and C1 to C10 with the declarations."""

from __future__ import annotations

import textwrap

from holdfast.cli.output import Output
from holdfast.wording import counted
from holdfast_checker.committers.table_v.table import Cell, Progress, Table, build_table
from holdfast_checker.kernel.explore import Budget

_LEGEND = "* unless what --json names; ? so far: not all histories were explored; ! differs, see below"


def show_all(budget: Budget, out: Output) -> bool:
    """Explore every committer and show the results; return True if they are as declared or differ for known reasons."""
    with out.progress() as advance:

        def progress(now: Progress) -> None:
            advance("worlds", now.done, now.total)

        table = build_table(budget=budget, progress=progress)
    return show_table(table, out)


def show_table(table: Table, out: Output) -> bool:
    """Show a table of results; return True if they are as declared or differ for known reasons."""
    out.document(table.document())
    columns = {name: [_marked(table.cell(row.name, name)) for row in table.rows] for name in table.committers}
    out.side_by_side("guarantee", [row.title for row in table.rows], columns)
    out.say(_LEGEND)
    cells = list(table.cells.values())
    of_paper = [cell for cell in cells if cell.agrees_with_paper is not None]
    like_paper = sum(cell.agrees_with_paper is True for cell in of_paper)
    as_declared = sum(cell.agrees_with_declaration for cell in cells)
    out.say(f"\n{like_paper} of the {len(of_paper)} answers in the papers are confirmed")
    out.say(f"{as_declared} of {len(cells)} declarations (holdfast committers) are confirmed")
    titles = {row.name: row.title for row in table.rows}
    for cell in table.differences():
        out.say("")
        for line in textwrap.wrap(f"{cell.committer}, {titles[cell.row]}: {_comparison(cell)}", out.width):
            out.say(line)
        for text in filter(None, (cell.because, cell.reason)):
            for line in textwrap.wrap(text, out.width, initial_indent="  ", subsequent_indent="  "):
                out.say(line)
    out.say(f"\n{table.states:,} states in {counted(len(table.committers), 'committer')}, {table.seconds:.0f} s")
    return all(cell.agrees_with_declaration or cell.reason for cell in cells)


def _marked(cell: Cell) -> str:
    differs = cell.agrees_with_paper is False or not cell.agrees_with_declaration
    return _word(cell.holds) + "*" * bool(cell.unless) + "?" * (not cell.complete) + "!" * differs


def _comparison(cell: Cell) -> str:
    found = _word(cell.holds) + "".join(f", unless {circumstance}" for circumstance in cell.unless)
    declared = _word(cell.declared.holds) + (f", unless {cell.declared.unless}" if cell.declared.unless else "")
    paper = "" if cell.paper is None else f"; the paper says {_word(cell.paper)}"
    return f"found {found}{paper}; declared {declared}"


def _word(holds: bool) -> str:
    return "yes" if holds else "no"
