"""Is a namespace's table a tree? Rows are (id, parent, name, kind), as a database holds them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from holdfast.checker.kernel.world import Property, View

__all__ = ["Row", "tree_property", "what_is_no_tree"]


@dataclass(frozen=True, slots=True)
class Row:
    """One inode.

    Attributes:
        parent: the id of the directory that it is in; None for the root.
    """

    id: Hashable
    parent: Hashable | None
    name: str
    is_directory: bool = True


def what_is_no_tree(rows: Iterable[Row]) -> list[str]:
    """What is wrong, in words with paths or ids: empty for one tree with one root. Takes linear time.

    Looks for: no root or several; ids that are there twice; orphans, whose parent is not there; children of files;
    two children of one name; cycles, which no path from the root leads to.

    A subtree that is detached until somebody collects it has to hang below a directory, or its rows be left out.
    """
    listed = list(rows)
    found: list[str] = []
    by_id: dict[Hashable, Row] = {}
    for row in listed:
        if by_id.setdefault(row.id, row) is not row:
            found.append(f"two rows have the id {row.id!r}: {by_id[row.id].name!r} and {row.name!r}")
    roots = [row for row in listed if row.parent is None]
    if not roots:
        found.append("there is no root")
    elif len(roots) > 1:
        found.append("there are several roots: " + ", ".join(f"{row.name!r} (id {row.id!r})" for row in roots))
    elif not roots[0].is_directory:
        found.append("the root is a file")
    names: dict[tuple[Hashable, str], Row] = {}
    for row in listed:
        if row.parent is None:
            continue
        twin = names.setdefault((row.parent, row.name), row)
        if twin is not row:
            found.append(f"{_path(row, by_id)} is there twice: ids {twin.id!r} and {row.id!r}")
        parent = by_id.get(row.parent)
        if parent is None:
            found.append(f"{row.name!r} (id {row.id!r}) is an orphan: there is no directory {row.parent!r}")
        elif not parent.is_directory:
            found.append(f"{_path(row, by_id)} (id {row.id!r}) is in a file")
    return found + _cycles(by_id)


def _path(row: Row, by_id: Mapping[Hashable, Row]) -> str:
    """The path, or as much of it as there is: `…` stands for what is above an orphan or in a cycle."""
    names = [row.name]
    seen = {row.id}
    at = row
    while at.parent is not None:
        above = by_id.get(at.parent)
        if above is None or above.id in seen:
            return "/".join(["…", *reversed(names)])
        at = above
        seen.add(at.id)
        names.append(at.name if at.parent is not None else "")
    return "/".join(reversed(names)) or "/"


def _cycles(by_id: Mapping[Hashable, Row]) -> list[str]:
    """Each cycle once; every row is passed once."""
    passed: set[Hashable] = set()
    found: list[str] = []
    for start in by_id.values():
        trail: dict[Hashable, Row] = {}
        at: Row | None = start
        while at is not None and at.id not in passed:
            passed.add(at.id)
            trail[at.id] = at
            at = by_id.get(at.parent)
        if at is not None and at.id in trail:
            rows = list(trail.values())
            ring = [*rows[rows.index(at) :], at]
            told = " in ".join(f"{row.name!r} (id {row.id!r})" for row in ring)
            found.append(f"a cycle that the root does not lead to: {told}")
    return found


def tree_property(*, name: str = "N1", rows_of: Callable[[View], Iterable[Row]]) -> Property:
    """The rows of a world are a tree at every time. Calls that change rows have to be observed."""

    def step(before: View, after: View, actor: str) -> str | None:
        return "; ".join(what_is_no_tree(rows_of(after))) or None

    return Property(
        name=name,
        title="a tree",
        meaning="There is one root, and every inode is in a directory that the root leads to, under a name of its own.",
        step=step,
    )
