"""Build wide tables for testing: nestings and null patterns as SQL over base columns, and the expected values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.ml.functions import array_to_vector

from tests.matrix.kinds import KINDS, Kind

__all__ = ["NESTINGS", "PATTERNS", "Column", "Nesting", "Pattern", "columns_of", "expected", "wide_frame"]


@dataclass(frozen=True)
class Pattern:
    """The positions of nulls: conditions over `id` and `last`, in SQL that is also Python except for ``=``.

    Attributes:
        name: the name of the pattern.
        leaf: when the value is null.
        inner: when its direct parent is null.
        outer: when the column is null.
    """

    name: str
    leaf: str = "false"
    inner: str = "false"
    outer: str = "false"


PATTERNS: dict[str, Pattern] = {
    one.name: one
    for one in (
        Pattern("none"),
        Pattern("some", leaf="id % 3 = 1"),
        Pattern("all", leaf="id >= 0"),
        Pattern("first", leaf="id = 0"),
        Pattern("last", leaf="id = last"),
        Pattern("outer", outer="id % 4 = 2"),
        Pattern("inner", inner="id % 4 = 1"),
        Pattern("mixed", leaf="id % 3 = 1", inner="id % 4 = 1", outer="id % 4 = 2"),
    )
}


@dataclass(frozen=True)
class Nesting:
    """A way to nest a value in a column.

    Attributes:
        name: the name of the nesting.
        title: the name in the docs.
        sql: returns the column's SQL, from SQL of the value, SQL of the value without nulls, and the null pattern.
        make: the same in Python, over canonical values.
        patterns: the null patterns that make a difference.
    """

    name: str
    title: str
    sql: Callable[[str, str, Pattern], str]
    make: Callable[[Any, Any, bool, bool, int], Any]
    patterns: tuple[str, ...]


def _or_null(condition: str, sql: str) -> str:
    return sql if condition == "false" else f"if({condition}, null, {sql})"


NESTINGS: dict[str, Nesting] = {
    one.name: one
    for one in (
        Nesting(
            "plain",
            "column",
            lambda leaf, key, p: leaf,
            lambda leaf, key, inner, outer, row: leaf,
            ("none", "some", "all", "first", "last"),
        ),
        Nesting(
            "struct",
            "struct",
            lambda leaf, key, p: _or_null(p.outer, f"named_struct('v', {leaf}, 'w', id)"),
            lambda leaf, key, inner, outer, row: None if outer else {"v": leaf, "w": str(row)},
            ("none", "some", "outer", "mixed"),
        ),
        Nesting(
            "struct2",
            "struct in a struct",
            lambda leaf, key, p: _or_null(
                p.outer, f"named_struct('s', {_or_null(p.inner, 'named_struct(' + repr('v') + f', {leaf})')})"
            ),
            lambda leaf, key, inner, outer, row: None if outer else {"s": None if inner else {"v": leaf}},
            ("none", "inner", "outer", "mixed"),
        ),
        Nesting(
            "array",
            "array",
            lambda leaf, key, p: _or_null(p.outer, f"slice(array({leaf}, {key}, {leaf}), 1, id % 4)"),
            lambda leaf, key, inner, outer, row: None if outer else [leaf, key, leaf][: row % 4],
            ("none", "some", "mixed"),
        ),
        Nesting(
            "map_value",
            "map's value",
            lambda leaf, key, p: _or_null(
                p.outer, f"map_filter(map('a', {leaf}, 'b\"', {key}), (k, v) -> k = 'a' or id % 3 = 0)"
            ),
            lambda leaf, key, inner, outer, row: (
                None if outer else [("s:a", leaf)] + ([('s:b"', key)] if row % 3 == 0 else [])
            ),
            ("none", "some", "mixed"),
        ),
        Nesting(
            "map_key",
            "map's key",
            lambda leaf, key, p: _or_null(p.outer, f"map({key}, id)"),
            lambda leaf, key, inner, outer, row: None if outer else [(key, str(row))],
            ("none", "outer"),
        ),
        Nesting(
            "array_struct",
            "array of structs",
            lambda leaf, key, p: _or_null(
                p.outer,
                f"slice(array({_or_null(p.inner, 'named_struct(' + repr('v') + f', {leaf})')}, "
                f"named_struct('v', {key})), 1, id % 3)",
            ),
            lambda leaf, key, inner, outer, row: (
                None if outer else [None if inner else {"v": leaf}, {"v": key}][: row % 3]
            ),
            ("none", "mixed"),
        ),
    )
}


@dataclass(frozen=True)
class Column:
    """A column of a wide table."""

    kind: Kind
    nesting: Nesting
    pattern: Pattern

    @property
    def name(self) -> str:
        return f"{self.kind.name}__{self.nesting.name}__{self.pattern.name}"

    @property
    def sql(self) -> str:
        key = f"`{self.kind.name}`"
        return self.nesting.sql(_or_null(self.pattern.leaf, key), key, self.pattern)


def columns_of(kinds: Iterable[Kind] = KINDS, cells: dict[str, Sequence[str]] | None = None) -> list[Column]:
    """Return the columns for `kinds`: each nesting with its patterns, or only those of `cells` (nesting: patterns)."""
    chosen = cells or {nesting.name: nesting.patterns for nesting in NESTINGS.values()}
    found = []
    for kind in kinds:
        for name, patterns in chosen.items():
            if (not kind.nested and name not in ("plain", "struct")) or (name == "map_key" and not kind.key):
                continue
            found += [Column(kind, NESTINGS[name], PATTERNS[pattern]) for pattern in patterns]
    return found


def _holds(condition: str, row: int, last: int) -> bool:
    words = condition.replace(" = ", " == ").replace("false", "False")
    return bool(eval(words, {"id": row, "last": last}))


def expected(column: Column, rows: int) -> list[Any]:
    """Return the expected values, in the order of `id`."""
    found = []
    for row in range(rows):
        text = column.kind.values[row % len(column.kind.values)][1]
        key: Any = {"null": None}.get(text, text)
        pattern = column.pattern
        nulls = [_holds(one, row, rows - 1) for one in (pattern.leaf, pattern.inner, pattern.outer)]
        found.append(column.nesting.make(None if nulls[0] else key, key, nulls[1], nulls[2], row))
    return found


def wide_frame(spark: Any, columns: Sequence[Column], rows: int) -> Any:
    """Return a computed DataFrame of one partition with the column `id` and `columns`, in the order of `id`.

    Where there can be no null, the schema says so: NOT NULL children of nullable structs are among the cases.
    """
    kinds = list(dict.fromkeys(column.kind for column in columns))
    base = spark.range(0, rows, 1, 1).selectExpr("id", *(f"{_cycle(kind)} as `{kind.name}`" for kind in kinds))
    if any(kind.type == "udt" for kind in kinds):
        base = base.withColumns({kind.name: array_to_vector(base[kind.name]) for kind in kinds if kind.type == "udt"})
    base = base.localCheckpoint()  # otherwise every column computes the whole base again
    last = str(rows - 1)
    wide = base.selectExpr("id", *(f"{column.sql.replace('last', last)} as `{column.name}`" for column in columns))
    return wide.localCheckpoint()


def _cycle(kind: Kind) -> str:
    """Return SQL that cycles through the values."""
    values = [sql for sql, _ in kind.values]
    branches = " ".join(f"when {number} then {sql}" for number, sql in enumerate(values[:-1]))
    return f"case id % {len(values)} {branches} else {values[-1]} end" if branches else values[-1]
