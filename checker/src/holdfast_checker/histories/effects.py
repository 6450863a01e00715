"""Check what histories leave behind: each unit has exactly one effect, and the rows of a file system form a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effect:
    """One committed effect of a unit.

    Attributes:
        unit: the job and an explicit id of the unit within the job; never a position in an order that may change.
        by: who committed the effect, for messages.
    """

    unit: Hashable
    by: str = ""


def what_is_repeated(effects: Iterable[Effect]) -> list[str]:
    """Describe units with more than one effect, which is never allowed, not even temporarily (T2)."""
    listed = list(effects)
    counts = Counter(effect.unit for effect in listed)
    return [
        f"unit {unit!r} took effect {count} times: by {', then '.join(e.by for e in listed if e.unit == unit)}"
        for unit, count in counts.items()
        if count > 1
    ]


def what_is_missing(units: Iterable[Hashable], effects: Iterable[Effect]) -> list[str]:
    """Describe units without an effect, and effects without a unit. Neither is allowed after a success (T2)."""
    wanted, there = dict.fromkeys(units), list(effects)
    done = {effect.unit for effect in there}
    found = [f"unit {unit!r} did not take effect" for unit in wanted if unit not in done]
    return found + [f"unit {e.unit!r} does not exist, and {e.by} committed it" for e in there if e.unit not in wanted]


def what_strays(claimed: AbstractSet[Hashable], effects: Iterable[Effect]) -> list[str]:
    """Describe how a record of progress differs from the committed effects (T9).

    Args:
        claimed: the units that are done according to the record, so that a retry would skip them. If the record is a
            count n, it claims the first n units, which is wrong as soon as one of them was deferred.
    """
    done = {effect.unit for effect in effects}
    found = [
        f"progress says that unit {unit!r} is done, and it did not take effect" for unit in _in_order(claimed - done)
    ]
    return found + [f"unit {unit!r} took effect, and progress does not show it" for unit in _in_order(done - claimed)]


def _in_order(units: Iterable[Hashable]) -> list[Hashable]:
    return sorted(units, key=repr)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a file or a directory.

    Attributes:
        parent: the id of its directory; None for the root.
    """

    id: Hashable
    parent: Hashable | None
    name: str
    is_directory: bool = True


def what_is_no_tree(rows: Iterable[Row]) -> list[str]:
    """Describe why rows are not one tree with one root, with paths or ids; empty if they are. Takes linear time.

    Finds: no root or several; duplicate ids; orphans, whose parent does not exist; children of files; two children with
    the same name; cycles, which no path from the root reaches.

    If a deleted subtree waits for garbage collection, it must still be below a directory, or its rows must be left out.
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
            found.append(f"{_path(row, by_id)} exists twice: ids {twin.id!r} and {row.id!r}")
        parent = by_id.get(row.parent)
        if parent is None:
            found.append(f"{row.name!r} (id {row.id!r}) is an orphan: directory {row.parent!r} does not exist")
        elif not parent.is_directory:
            found.append(f"{_path(row, by_id)} (id {row.id!r}) is in a file")
    return found + _cycles(by_id)


def _path(row: Row, by_id: Mapping[Hashable, Row]) -> str:
    """Return the path of a row; `…` stands for the unknown part, above an orphan or in a cycle."""
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
    """Describe each cycle once; visits every row once."""
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
            found.append(f"a cycle that the root does not reach: {told}")
    return found
