"""Generate docs/reference/types.md from the table of deviations: ``python -m tests.matrix.document``."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from tests.matrix.cells import DIALECTS
from tests.matrix.deviations import DEVIATIONS, Deviation, Reads
from tests.matrix.kinds import GROUPS, KINDS
from tests.matrix.readers import READERS
from tests.matrix.shapes import NESTINGS

__all__ = ["PAGE", "document"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"

_HEAD = """\
# Types and values

`python -m tests.matrix.document` generates this page from the tables that `tests/integration/test_matrix.py` uses to
check Holdfast, stock Spark and the other readers. Every value that is not listed here reads back exactly as it was
written, with its type, nulls, NaN and the sign of zero, at every level of nesting and by each of the readers below. In
the tables, *rejected* means that the writer refuses the value or its type.

The tests cover {kinds} kinds of values in {cases} combinations of nesting and nulls, in whole and in sliced batches, in
three session time zones, and as partition columns. The readers are Holdfast, stock Spark, {readers}.
"""

_TITLES = {
    "csv": "CSV",
    "json": "JSON",
    "orc": "ORC",
    "parquet-int96": "Parquet with INT96 timestamps, Spark's default",
    "partitions": "Partition columns",
}


def document() -> str:
    """Return the page."""
    readers = ", ".join(reader.name for reader in READERS)
    cases = sum(len(nesting.patterns) for nesting in NESTINGS.values())
    parts = [_HEAD.format(kinds=len(KINDS), cases=cases, readers=readers), "## Every format\n", _table("*")]
    for name in (*DIALECTS, "partitions"):
        parts += [f"## {_TITLES.get(name, name.capitalize())}\n", _table(name)]
        not_compared = _not_compared(DIALECTS[name].format) if name in DIALECTS and DIALECTS[name].ours else ""
        if not_compared:
            parts.append(not_compared)
    return "\n".join(parts)


def _table(dialect: str) -> str:
    lines = list(dict.fromkeys(line for one in DEVIATIONS for line in _rows(one, dialect)))
    if not lines:
        return "No further deviations.\n"
    return (
        "\n".join(["| written by | type | read by | result | reason, or what to do |", "|---|---|---|---|---|", *lines])
        + "\n"
    )


def _not_compared(file_format: str) -> str:
    reasons = {reader.name: reader.formats[file_format] for reader in READERS}
    listed = [f"{name} {why}" for name, why in reasons.items() if isinstance(why, str) and name != "fastavro"]
    return f"Not compared: {'; '.join(listed)}.\n" if listed else ""


def _rows(one: Deviation, dialect: str) -> list[str]:
    ways: dict[str, list[str]] = {}
    for way in one.ways:
        writer, of, reader = way.split(">")
        if (of == "*") == (dialect == "*") and fnmatch.fnmatchcase(dialect, of) and _reads(reader, dialect):
            ways.setdefault(writer, []).append(reader)
    where = "" if one.nestings == ("*",) else f" in {', '.join(_titles(one.nestings))}"
    rows = []
    for writer, readers in ways.items():
        result = one.how.shown if isinstance(one.how, Reads) else "rejected" if readers == ["-"] else "cannot be read"
        who = "-" if readers == ["-"] else ", ".join(_reader(reader) for reader in readers)
        rows.append(f"| {_reader(writer)} | {_kinds(one.kinds)}{where} | {who} | {result} | {one.why} |")
    return rows


def _reads(reader: str, dialect: str) -> bool:
    """Check whether the reader supports the format."""
    formats = next((one.formats for one in READERS if one.name == reader), None)
    return formats is None or callable(formats.get(DIALECTS[dialect].format))


def _reader(name: str) -> str:
    return {"holdfast": "Holdfast", "spark": "Spark", "*": "all"}.get(name, name)


def _kinds(patterns: Sequence[str]) -> str:
    """Return the titles of the kinds; those of a whole group are listed as one."""
    names = [kind.name for kind in KINDS if any(fnmatch.fnmatchcase(kind.name, one) for one in patterns)]
    if len(names) == len(KINDS):
        return "all types"
    groups = []
    for title, group in GROUPS.items():
        if set(group) <= set(names):
            groups.append(title)
            names = [name for name in names if name not in group]
    return ", ".join([*(kind.title for kind in KINDS if kind.name in names), *groups])


def _titles(patterns: Sequence[str]) -> list[str]:
    titles = [one.title for one in NESTINGS.values() if any(fnmatch.fnmatchcase(one.name, p) for p in patterns)]
    return ["structs, arrays and maps"] if len(titles) == len(NESTINGS) - 1 else titles


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
