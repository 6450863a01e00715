"""What does not come back as it went in, as data: which way, which types, what happens instead, and why.

A deviation that is declared here and does not occur fails the test, and so does one that occurs and is not declared;
`tests.matrix.document` prints them as the table in docs/types.md. The first that matches a cell counts.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.matrix.cells import Cell, Outcome

__all__ = ["DEVIATIONS", "Deviation", "Fails", "Reads", "judge"]


@dataclass(frozen=True)
class Fails:
    """The write is refused (on ways to ``-``), or the reader cannot read the column.

    Attributes:
        words: which the error holds.
        by_value: only where there are such values: a column of nulls passes.
    """

    words: str
    by_value: bool = False


@dataclass(frozen=True)
class Reads:
    """Something else is read.

    Attributes:
        shown: what, for the docs.
        value: what of a canonical leaf.
        type: in the words of Spark; empty where the type is the one that went in, or the reader is not Spark's.
    """

    shown: str
    value: Callable[[str], Any] = lambda text: text
    type: str = ""


@dataclass(frozen=True)
class Deviation:
    """One row.

    Attributes:
        ways, kinds, nestings: patterns, as of file names.
        why: for the docs.
    """

    ways: tuple[str, ...]
    kinds: tuple[str, ...]
    how: Fails | Reads
    why: str
    nestings: tuple[str, ...] = ("*",)

    def covers(self, cell: Cell) -> bool:
        """Whether the row speaks of the cell."""
        return (
            _any(self.ways, cell.way)
            and _any(self.kinds, cell.column.kind.name)
            and _any(self.nestings, cell.column.nesting.name)
        )


def _any(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


# --- judging ----------------------------------------------------------------------------------------------------------
def judge(found: dict[Cell, Outcome]) -> Iterator[str]:
    """What is not as it is declared, a line each."""
    occurred: dict[tuple[int, str, str], bool] = {}
    for cell, outcome in found.items():
        number = next((number for number, one in enumerate(DEVIATIONS) if one.covers(cell)), None)
        if number is None:
            if not outcome.same:
                yield f"{cell.way} {cell.column.name}: undeclared: {_told(outcome)}"
            continue
        key = (number, cell.way, cell.column.kind.name)
        occurred[key] = occurred.get(key, False) or not outcome.same
        if not _fits(DEVIATIONS[number].how, cell, outcome):
            yield f"{cell.way} {cell.column.name}: declared otherwise ({DEVIATIONS[number].how}): {_told(outcome)}"
    for (number, way, kind), deviates in occurred.items():
        if not deviates:
            yield f"{way} {kind}: declared, but does not occur: {DEVIATIONS[number].why}"


def _fits(how: Fails | Reads, cell: Cell, outcome: Outcome) -> bool:
    if isinstance(how, Fails):
        spared = how.by_value and outcome.same and not any(map(_has_leaf, outcome.wanted))
        return spared or how.words in outcome.error != ""
    wanted = [_changed(how.value, value) for value in outcome.wanted]
    types = how.type if how.type and _speaks_spark(cell) and "__plain__" in cell.column.name else None
    typed = outcome.type == types if types else (bool(how.type) or outcome.type == outcome.wanted_type)
    return not outcome.error and list(outcome.values) == wanted and typed


def _speaks_spark(cell: Cell) -> bool:
    return cell.way.rsplit(">", 1)[1].split("-")[0] in ("spark", "holdfast")


def _has_leaf(value: Any) -> bool:
    """Whether there is a value of the column's type in it (the key of a map and the number beside it are none)."""
    if isinstance(value, dict):
        return any(_has_leaf(one) for name, one in value.items() if name != "w")
    if isinstance(value, list):
        return any(_has_leaf(one[1] if isinstance(one, tuple) else one) for one in value)
    return value is not None


def _changed(how: Callable[[str], Any], value: Any) -> Any:
    if isinstance(value, dict):
        return {name: one if name == "w" else _changed(how, one) for name, one in value.items()}
    if isinstance(value, list):
        pairs = [tuple(_changed(how, part) for part in one) if isinstance(one, tuple) else _changed(how, one) for one in value]
        return sorted(pairs, key=repr) if pairs and isinstance(pairs[0], tuple) else pairs
    return None if value is None else how(value)


def _told(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error[:250]
    pairs = [(b, a) for a, b in zip(outcome.values, outcome.wanted, strict=False) if a != b]
    kind = "" if outcome.type == outcome.wanted_type else f" as {outcome.type} for {outcome.wanted_type}"
    rows = "" if len(outcome.values) == len(outcome.wanted) else f" {len(outcome.values)} rows of {len(outcome.wanted)}"
    return f"{pairs[:2]}{kind}{rows}"[:300]


# --- the table --------------------------------------------------------------------------------------------------------
DEVIATIONS: tuple[Deviation, ...] = ()
