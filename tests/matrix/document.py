"""docs/reference/types.md from the table of deviations: ``python -m tests.matrix.document`` writes it."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from tests.matrix.cells import DIALECTS
from tests.matrix.deviations import DEVIATIONS, Deviation, Fails
from tests.matrix.kinds import GROUPS, KINDS
from tests.matrix.readers import READERS
from tests.matrix.shapes import NESTINGS

__all__ = ["PAGE", "document"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"

_HEAD = """\
# What becomes of values

Made by `python -m tests.matrix.document` from the tables that `tests/integration/test_matrix.py` holds Holdfast, stock
Spark and the other readers to. Everything that is not named here comes back as it went in: type, instant, null, NaN and
the sign of zero, in every nesting, from whichever of the readers below.

Tried are {kinds} kinds of values in {cases} combinations of nesting and nulls, in whole and in sliced batches, in three
session zones, and as partition columns. Readers: Holdfast, stock Spark, {readers}.
"""

_TITLES = {
    "csv": "CSV",
    "json": "JSON",
    "orc": "ORC",
    "parquet-int96": "Parquet with INT96 timestamps, Spark's default",
    "partitions": "Partition columns",
}


def document() -> str:
    """The page."""
    readers = ", ".join(reader.name for reader in READERS)
    cases = sum(len(nesting.patterns) for nesting in NESTINGS.values())
    parts = [_HEAD.format(kinds=len(KINDS), cases=cases, readers=readers), "## Every format\n", _table("*")]
    for name in (*DIALECTS, "partitions"):
        parts += [f"## {_TITLES.get(name, name.capitalize())}\n", _table(name)]
        told = _not_compared(DIALECTS[name].format) if name in DIALECTS and DIALECTS[name].ours else ""
        if told:
            parts.append(told)
    return "\n".join(parts)


def _table(dialect: str) -> str:
    lines = list(dict.fromkeys(line for one in DEVIATIONS for line in _rows(one, dialect)))
    if not lines:
        return "Nothing else.\n"
    return "\n".join(["| written by | type | read by | instead | why |", "|---|---|---|---|---|", *lines]) + "\n"


def _not_compared(file_format: str) -> str:
    reasons = {reader.name: reader.formats[file_format] for reader in READERS}
    told = [f"{name} {why}" for name, why in reasons.items() if isinstance(why, str) and name != "fastavro"]
    return f"Not compared: {'; '.join(told)}.\n" if told else ""


def _rows(one: Deviation, dialect: str) -> list[str]:
    ways: dict[str, list[str]] = {}
    for way in one.ways:
        writer, of, reader = way.split(">")
        if (of == "*") == (dialect == "*") and fnmatch.fnmatchcase(dialect, of) and _reads(reader, dialect):
            ways.setdefault(writer, []).append(reader)
    where = "" if one.nestings == ("*",) else f" in {', '.join(_titles(one.nestings))}"
    rows = []
    for writer, readers in ways.items():
        told = one.how.shown if not isinstance(one.how, Fails) else "refused" if readers == ["-"] else "cannot be read"
        who = "-" if readers == ["-"] else ", ".join(_reader(reader) for reader in readers)
        rows.append(f"| {_reader(writer)} | {_kinds(one.kinds)}{where} | {who} | {told} | {one.why} |")
    return rows


def _reads(reader: str, dialect: str) -> bool:
    """False for a reader that has nothing to do with the format."""
    formats = next((one.formats for one in READERS if one.name == reader), None)
    return formats is None or callable(formats.get(DIALECTS[dialect].format))


def _reader(name: str) -> str:
    return {"holdfast": "Holdfast", "spark": "Spark", "*": "all"}.get(name, name)


def _kinds(patterns: Sequence[str]) -> str:
    """Their titles; those of a whole group are told as one."""
    names = [kind.name for kind in KINDS if any(fnmatch.fnmatchcase(kind.name, one) for one in patterns)]
    if len(names) == len(KINDS):
        return "all types"
    told = []
    for title, group in GROUPS.items():
        if set(group) <= set(names):
            told.append(title)
            names = [name for name in names if name not in group]
    return ", ".join([*(kind.title for kind in KINDS if kind.name in names), *told])


def _titles(patterns: Sequence[str]) -> list[str]:
    titles = [one.title for one in NESTINGS.values() if any(fnmatch.fnmatchcase(one.name, p) for p in patterns)]
    return ["structs, arrays and maps"] if len(titles) == len(NESTINGS) - 1 else titles


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
