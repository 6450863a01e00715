"""Generate docs/reference/types.md from the table of deviations: ``python -m tests.matrix.document``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
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

Every value that is not listed here reads back exactly as it was written, with its type, nulls, NaN and the sign of
zero, at every level of nesting, by Holdfast, stock Spark, {readers}.
*Rejected* means that the write is refused; `A → B` means that A writes the files and B reads them.

`python -m tests.matrix.document` generates this page from `tests/matrix/deviations.py`, which a test checks with
{kinds} kinds of values in {cases} combinations of nesting and nulls. What stock Spark does with its own files is only
there.
"""

_TITLES = {
    "csv": "CSV",
    "json": "JSON",
    "orc": "ORC",
    "parquet": "Parquet, also with INT96 timestamps (Spark's default)",
    "parquet-int96": "Parquet with INT96 timestamps, Spark's default",
    "partitions": "Partition columns",
}


def document() -> str:
    """Return the page."""
    readers = ", ".join(reader.name for reader in READERS)
    cases = sum(len(nesting.patterns) for nesting in NESTINGS.values())
    parts = [_HEAD.format(kinds=len(KINDS), cases=cases, readers=readers), "## Every format\n", _table(_rows("*"))]
    for name in (*DIALECTS, "partitions"):
        rows = _rows(name)
        if name in DIALECTS and not DIALECTS[name].ours and set(rows) <= set(_rows(DIALECTS[name].format)):
            continue  # the title of the format itself names this form of it
        parts += [f"## {_TITLES.get(name, name.capitalize())}\n", _table(rows)]
        not_compared = _not_compared(DIALECTS[name].format) if name in DIALECTS and DIALECTS[name].ours else ""
        if not_compared:
            parts.append(not_compared)
    return "\n".join(parts)


def _table(rows: Sequence[str]) -> str:
    if not rows:
        return "No further deviations.\n"
    return "\n".join(["| by | types or values | result, and what to do |", "|---|---|---|", *rows]) + "\n"


def _not_compared(file_format: str) -> str:
    reasons: dict[str, list[str]] = {}
    for reader in READERS:
        why = reader.formats[file_format]
        if isinstance(why, str) and reader.name != "fastavro":
            reasons.setdefault(why, []).append(reader.name)
    listed = [f"{', '.join(names)} ({why})" for why, names in reasons.items()]
    return f"Not compared: {', '.join(listed)}.\n" if listed else ""


def _rows(dialect: str) -> list[str]:
    """Return the rows of a dialect; those with equal results become one."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in DEVIATIONS:
        where = "" if one.nestings == ("*",) else f" in {', '.join(_titles(one.nestings))}"
        for who, result in _results(one, dialect):
            found.setdefault((who, result), []).append(one.title or f"{_kinds(one.kinds)}{where}")
    return [f"| {who} | {', '.join(dict.fromkeys(types))} | {result} |" for (who, result), types in found.items()]


def _results(one: Deviation, dialect: str) -> Iterator[tuple[str, str]]:
    """Yield who writes and reads, and the result, where Holdfast is one of them."""
    ways: dict[str, list[str]] = {}
    for way in one.ways:
        writer, of, reader = way.split(">")
        if (
            (of == "*") == (dialect == "*")
            and fnmatch.fnmatchcase(dialect, of)
            and _reads(reader, dialect)
            and (writer != "spark" or reader in ("holdfast", "*"))
        ):
            ways.setdefault(writer, []).append(reader)
    for writer, readers in ways.items():
        is_refused = readers == ["-"]
        result = one.how.shown if isinstance(one.how, Reads) else "rejected" if is_refused else "cannot be read"
        who = _reader(writer) if is_refused else f"{_reader(writer)} → {', '.join(map(_reader, readers))}"
        yield who, f"{result}: {one.why}"


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
