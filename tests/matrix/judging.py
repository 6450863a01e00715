"""Compare what was read with the declared deviations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.matrix.cells import Cell, Outcome
from tests.matrix.deviations import DEVIATIONS, Fails, Reads
from tests.matrix.shapes import Column

__all__ = ["judge", "refused_by"]


def refused_by(way: str, column: Column) -> int | None:
    """Return the number of the declaration by which a column is rejected regardless of its values, or None."""
    number = _first(Cell(way, column))
    how = None if number is None else DEVIATIONS[number].how
    return number if isinstance(how, Fails) and not how.by_value else None


def _first(cell: Cell) -> int | None:
    return next((number for number, one in enumerate(DEVIATIONS) if one.covers(cell)), None)


def judge(found: dict[Cell, Outcome]) -> Iterator[str]:
    """Yield a line for each difference between declarations and outcomes."""
    occurred: dict[tuple[int, str, str], bool] = {}
    for cell, outcome in found.items():
        number = _first(cell)
        if number is None:
            if not outcome.same:
                yield f"{cell.way} {cell.column.name}: undeclared: {_described(outcome)}"
            continue
        key = (number, cell.way, cell.column.kind.name)
        occurred[key] = occurred.get(key, False) or not outcome.same
        if not _fits(DEVIATIONS[number].how, cell, outcome):
            declared = DEVIATIONS[number].how
            yield f"{cell.way} {cell.column.name}: differs from its declaration ({declared}): {_described(outcome)}"
    for (number, way, kind), deviates in occurred.items():
        if not deviates:
            yield f"{way} {kind}: declared, but does not occur: {DEVIATIONS[number].why}"


def _fits(how: Fails | Reads, cell: Cell, outcome: Outcome) -> bool:
    if isinstance(how, Fails):
        nothing = not cell.way.endswith(">-") and not any(map(_has_leaf, outcome.wanted))
        spared = outcome.same and (how.by_value or nothing)
        return spared or how.words.lower() in outcome.error.lower() != ""
    if outcome.error:
        return False
    wanted = [_changed(how.value, value) for value in outcome.wanted]
    found = [_seen(how.seen, value) for value in outcome.values]
    plain = cell.column.nesting.name in ("plain", "partition")
    if how.type and plain and _speaks_spark(cell):
        return found == wanted and outcome.type == how.type
    return found == wanted and (bool(how.type) or outcome.type == outcome.wanted_type)


def _has_leaf(value: Any) -> bool:
    """Check whether the value contains anything but nulls (the number beside a value in a struct does not count)."""
    if isinstance(value, dict):
        return any(_has_leaf(one) for name, one in value.items() if name != "w")
    if isinstance(value, list):
        return any(_has_leaf(part) for one in value for part in (one if isinstance(one, tuple) else (one,)))
    return value is not None


def _seen(how: Callable[[Any], Any], value: Any) -> Any:
    value = how(value)
    if isinstance(value, dict):
        return {name: _seen(how, one) for name, one in value.items()}
    if isinstance(value, list):
        return [tuple(_seen(how, part) for part in one) if isinstance(one, tuple) else _seen(how, one) for one in value]
    return value


def _speaks_spark(cell: Cell) -> bool:
    return cell.way.rsplit(">", 1)[1].split("-")[0] in ("spark", "holdfast")


def _changed(how: Callable[[str], Any], value: Any) -> Any:
    if isinstance(value, dict):
        return {name: one if name == "w" else _changed(how, one) for name, one in value.items()}
    if isinstance(value, list):
        pairs = [
            tuple(_changed(how, part) for part in one) if isinstance(one, tuple) else _changed(how, one)
            for one in value
        ]
        return sorted(pairs, key=repr) if pairs and isinstance(pairs[0], tuple) else pairs
    return None if value is None else how(value)


def _described(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error[:250]
    pairs = [(b, a) for a, b in zip(outcome.values, outcome.wanted, strict=False) if a != b]
    kind = "" if outcome.type == outcome.wanted_type else f" as {outcome.type} for {outcome.wanted_type}"
    rows = "" if len(outcome.values) == len(outcome.wanted) else f" {len(outcome.values)} rows of {len(outcome.wanted)}"
    return f"{pairs[:2]}{kind}{rows}"[:300]
