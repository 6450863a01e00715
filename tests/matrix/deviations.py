"""What does not come back as it went in, as data: which way, which types, what happens instead, and why.

A deviation that is declared here and does not occur fails the test, and so does one that occurs and is not declared;
`tests.matrix.document` prints them as the table in docs/types.md. The first that matches a cell counts.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import VariantVal

from tests.matrix.cells import Cell, Outcome
from tests.matrix.shapes import Column

__all__ = ["DEVIATIONS", "Deviation", "Fails", "Reads", "judge", "refused_by"]


@dataclass(frozen=True)
class Fails:
    """The write is refused (on ways to ``-``), or the reader cannot read the column.

    Attributes:
        words: which the error holds.
        by_value: only where there are such values; without them the column comes back as it went in.
    """

    words: str
    by_value: bool = False


@dataclass(frozen=True)
class Reads:
    """Something else is read.

    Attributes:
        shown: what, for the docs.
        value: what of a canonical leaf.
        seen: brings what is read into canonical form, where a reader takes a value apart.
        type: in the words of Spark; empty where the type is the one that went in, or the reader is not Spark's.
    """

    shown: str
    value: Callable[[str], Any] = lambda text: text
    seen: Callable[[Any], Any] = lambda value: value
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


def refused_by(way: str, column: Column) -> int | None:
    """The declaration by which a column is refused whatever its values are."""
    number = _first(Cell(way, column))
    how = None if number is None else DEVIATIONS[number].how
    return number if isinstance(how, Fails) and not how.by_value else None


def _first(cell: Cell) -> int | None:
    return next((number for number, one in enumerate(DEVIATIONS) if one.covers(cell)), None)


def _any(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


# --- judging ----------------------------------------------------------------------------------------------------------
def judge(found: dict[Cell, Outcome]) -> Iterator[str]:
    """What is not as it is declared, a line each."""
    occurred: dict[tuple[int, str, str], bool] = {}
    for cell, outcome in found.items():
        number = _first(cell)
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
        spared = how.by_value and outcome.same
        return spared or how.words in outcome.error != ""
    if outcome.error:
        return False
    wanted = [_changed(how.value, value) for value in outcome.wanted]
    found = [_seen(how.seen, value) for value in outcome.values]
    plain = cell.column.nesting.name in ("plain", "partition")
    if how.type and plain and _speaks_spark(cell):
        return found == wanted and outcome.type == how.type
    return found == wanted and (bool(how.type) or outcome.type == outcome.wanted_type)


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


def _told(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error[:250]
    pairs = [(b, a) for a, b in zip(outcome.values, outcome.wanted, strict=False) if a != b]
    kind = "" if outcome.type == outcome.wanted_type else f" as {outcome.type} for {outcome.wanted_type}"
    rows = "" if len(outcome.values) == len(outcome.wanted) else f" {len(outcome.values)} rows of {len(outcome.wanted)}"
    return f"{pairs[:2]}{kind}{rows}"[:300]


# --- what readers make of a value -------------------------------------------------------------------------------------
def _number(text: str) -> str:
    """Of an interval: its number."""
    return text.partition(":")[2]


def _no_zone(text: str) -> str:
    return text.replace("t:", "n:", 1) if text.startswith("t:") else text


def _variant(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"value", "metadata"} and None not in value.values():
        value, metadata = (bytes.fromhex(value[name][2:]) for name in ("value", "metadata"))
        return f"v:{VariantVal(value, metadata).toJson()}"
    return value


def _vector(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"type", "size", "indices", "values"}:
        return f"u:[{','.join(value['values'])}]"
    return value


# --- the table --------------------------------------------------------------------------------------------------------
_MONTHS = ("years*", "months")
_DAYS = ("days*", "hours*", "minutes*", "seconds")
_CHAR = ("char", "varchar")
_OTHERS = ("pyarrow", "pandas", "DuckDB", "polars", "fastavro")
_VECTOR = "struct<type:tinyint,size:int,indices:array<int>,values:array<double>>"


def _by(writer: str, dialect: str, *readers: str) -> tuple[str, ...]:
    return tuple(f"{writer}>{dialect}>{reader}" for reader in readers)


def _spark_refuses(dialect: str, kinds: tuple[str, ...], nestings: tuple[str, ...] = ("*",)) -> Deviation:
    words = "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE"
    return Deviation(_by("spark", dialect, "-"), kinds, Fails(words), "Spark does not write it", nestings)


_WRITTEN = (
    Deviation(("holdfast>*>-",), ("calendar",), Fails("stores no calendar interval"), "Spark stores it nowhere either"),
    Deviation(
        ("holdfast>*>-",),
        _MONTHS,
        Fails("hands no year-month interval to Python"),
        "PySpark has no Arrow type for it: store cast(column as string)",
    ),
    Deviation(
        ("holdfast>*>-",), _CHAR, Fails("cannot leave Spark"), "PySpark has no Arrow type for it: cast to string"
    ),
    Deviation(
        ("holdfast>*>-",),
        ("geometry",),
        Fails("spatial types are not written"),
        "store st_asbinary(column) and the SRID",
    ),
)

_PARQUET = (
    _spark_refuses("parquet*", ("calendar",)),
    Deviation(
        _by("holdfast", "parquet", "DuckDB"),
        _DAYS,
        Reads("the number of microseconds", _number),
        "Parquet has no such type",
    ),
    Deviation(
        _by("holdfast", "parquet", *_OTHERS),
        ("variant",),
        Reads("its two parts as a struct", seen=_variant),
        "they know no VARIANT",
    ),
    Deviation(
        _by("holdfast", "parquet", *_OTHERS),
        ("udt",),
        Reads("the struct below the type", seen=_vector),
        "they do not know the type",
    ),
    Deviation(
        _by("spark", "parquet*", "holdfast"),
        ("udt",),
        Reads("the struct below the type", seen=_vector, type=_VECTOR),
        "the type's class is not loaded",
    ),
    Deviation(
        _by("spark", "parquet*", "holdfast"),
        (*_CHAR, *_MONTHS, "geometry"),
        Fails("leave it out with the option columns"),
        "PySpark has no Arrow type for it; `reader=native` reads it",
    ),
)

DEVIATIONS: tuple[Deviation, ...] = (*_WRITTEN, *_PARQUET)
