"""The tables of findings and of records in docs/reference/namespace.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.namespace import keys
from holdfast.namespace.fsck import findings, survey

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "namespace.md"


def _table(header: str) -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(header)
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_findings() -> None:
    """The page lists them by severity; the command prints with each what to do next."""
    text = PAGE.read_text(encoding="utf-8")
    for severity in findings.Severity:
        _, _, rest = text.partition(f"\n{severity.value.capitalize()}:\n\n")
        assert rest.partition("\n\n")[0].splitlines() == [
            f"- `{kind.name}`: {kind.title}" for kind in findings.FINDING_KINDS.values() if kind.severity is severity
        ]


def test_sentences_of_findings_may_go_over_several_lines() -> None:
    kinds = findings._parse_kinds(
        "-- name: a\n-- damage: it is\n--   broken\n-- next: mend\n--   it\nSELECT 1;\n--   no\n"
    )
    assert kinds == {"a": findings.FindingKind("a", findings.Severity.DAMAGE, "it is broken", "mend it")}


def test_kinds_of_records() -> None:
    """The page, the code and the pass of a check have the same kinds. Single records, and those of servers, are no kind
    of a check: if they are damaged, they count as missing.
    """
    first = re.compile(r"^\| ``(.)``", re.MULTILINE)
    named = first.findall(keys.__doc__ or "")
    assert [row[0][1] for row in _table("| key | record |")] == named
    assert {first.decode() for first in survey.RECORD_KINDS} | {"x", "a", "q"} == set(named)
