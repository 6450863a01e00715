"""Show tables with a column for each group of committers, as many columns side by side as fit the screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.cli.output import Output


@dataclass(frozen=True)
class Marked:
    """A cell of the table: a word and its footnotes; each footnote is shown once below the table."""

    word: str
    notes: tuple[str, ...] = ()


def show_side_by_side(titles: Sequence[str], columns: Mapping[str, Sequence[Marked]], out: Output) -> None:
    """Show the table, divided into several tables if it is too wide for the screen.

    Args:
        titles: the titles of the rows.
        columns: the cells of each committer; committers with equal cells share a column.
    """
    groups: dict[tuple[Marked, ...], list[str]] = {}
    for name, cells in columns.items():
        groups.setdefault(tuple(cells), []).append(name)
    notes = list(dict.fromkeys(note for cells in zip(*groups, strict=True) for cell in cells for note in cell.notes))
    shown = [(_head(group), [_cell(cell, notes) for cell in cells]) for cells, group in groups.items()]
    for some in _fitting(shown, out.width - 2 - max(map(len, titles))):
        rows = zip(titles, *(column for _name, column in some), strict=True)
        out.table(["guarantee", *(head for head, _column in some)], list(rows))
    for number, note in enumerate(notes, start=1):
        out.say(f"{_mark(number)} {note}")


def _fitting(columns: Sequence[tuple[str, list[str]]], room: int) -> Iterable[Sequence[tuple[str, list[str]]]]:
    some: list[tuple[str, list[str]]] = []
    used = 0
    for head, cells in columns:
        wide = 2 + max(len(line) for line in [*head.split("\n"), *cells])
        if some and used + wide > room:
            yield some
            some, used = [], 0
        some.append((head, cells))
        used += wide
    yield some


def _head(group: Sequence[str]) -> str:
    """Return a narrow heading for a group of committers: ``staging-*``, or names split into lines."""
    families = {name.partition("-")[0] for name in group}
    if len(group) > 1 and len(families) == 1:
        return f"{families.pop()}-*"
    return "\n".join(name.replace("-", "-\n").replace("_", "_\n") for name in group)


def _cell(cell: Marked, notes: Sequence[str]) -> str:
    return cell.word + ",".join(_mark(notes.index(note) + 1) for note in cell.notes)


def _mark(number: int) -> str:
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(number))
