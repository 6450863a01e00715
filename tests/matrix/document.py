"""docs/types.md from the table of deviations: ``python -m tests.matrix.document`` writes it."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from tests.matrix.cells import DIALECTS
from tests.matrix.deviations import DEVIATIONS, Deviation, Fails
from tests.matrix.kinds import KINDS
from tests.matrix.readers import READERS
from tests.matrix.shapes import NESTINGS

__all__ = ["PAGE", "document"]

PAGE = Path(__file__).parents[2] / "docs" / "types.md"

_HEAD = """\
# What becomes of values

Made by `python -m tests.matrix.document` from the tables that `tests/integration/test_matrix.py` holds Holdfast, stock
Spark and the other readers to. Everything that is not named here comes back as it went in: type, instant, null, NaN and
the sign of zero, in every nesting, from whichever of the readers below.

Tried are {kinds} kinds of values x {nestings} nestings x {patterns} null patterns, in whole and in sliced batches, in
three session zones, and as partition columns. Readers: Holdfast, stock Spark, {readers}.
"""

_TITLES = {"partitions": "Partition columns", "parquet-int96": "Parquet with INT96 timestamps (Spark's default)"}


def document() -> str:
    """The page."""
    readers = ", ".join(reader.name for reader in READERS)
    patterns = sum(len(nesting.patterns) for nesting in NESTINGS.values())
    parts = [_HEAD.format(kinds=len(KINDS), nestings=len(NESTINGS), patterns=patterns, readers=readers)]
    for name in (*DIALECTS, "partitions"):
        rows = [one for one in DEVIATIONS if any(_is_of(way, name) for way in one.ways)]
        lines = [line for one in rows for line in _rows(one, name)]
        parts.append(f"## {_TITLES.get(name, name.upper() if name in ('csv', 'json', 'orc') else name.capitalize())}\n")
        parts.append(
            "\n".join(["| written by | type | read by | instead | why |", "|---|---|---|---|---|", *lines]) + "\n"
            if lines
            else "Nothing is lost.\n"
        )
        unread = (
            [
                f"{reader.name} {why}"
                for reader in READERS
                if isinstance(why := reader.formats.get(DIALECTS[name].format, ""), str) and why
            ]
            if name in DIALECTS and DIALECTS[name].ours
            else []
        )
        if unread:
            parts.append("Not compared: " + "; ".join(unread) + ".\n")
    return "\n".join(parts)


def _is_of(way: str, dialect: str) -> bool:
    return fnmatch.fnmatchcase(dialect, way.split(">")[1])


def _rows(one: Deviation, dialect: str) -> list[str]:
    ways: dict[str, list[str]] = {}
    for way in one.ways:
        if _is_of(way, dialect):
            writer, _, reader = way.split(">")
            ways.setdefault(writer, []).append(reader)
    kinds = _kinds(one.kinds)
    where = "" if one.nestings == ("*",) else f" ({', '.join(_titles(one.nestings))})"
    instead = one.how.shown if not isinstance(one.how, Fails) else ""
    rows = []
    for writer, readers in ways.items():
        told = instead or ("refused" if readers == ["-"] else "cannot be read")
        who = "-" if readers == ["-"] else ", ".join(_reader(reader) for reader in readers)
        rows.append(f"| {_reader(writer)} | {kinds}{where} | {who} | {told} | {one.why} |")
    return rows


def _reader(name: str) -> str:
    return {"holdfast": "Holdfast", "spark": "Spark", "*": "all"}.get(name, name)


def _kinds(patterns: Sequence[str]) -> str:
    if patterns == ("*",):
        return "all"
    return ", ".join(kind.title for kind in KINDS if any(fnmatch.fnmatchcase(kind.name, one) for one in patterns))


def _titles(patterns: Sequence[str]) -> list[str]:
    return [one.title for one in NESTINGS.values() if any(fnmatch.fnmatchcase(one.name, p) for p in patterns)]


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
