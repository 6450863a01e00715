"""Check tests/scenarios.md: a test names each scenario, or the page says why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAST = 82

_NUMBERS = r"\d+(?:\s*(?:-|to)\s*\d+)?"
_NAMED = re.compile(rf"[Ss]cenarios?\s+({_NUMBERS}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){_NUMBERS})*)")
_RANGE = re.compile(r"(\d+)(?:\s*(?:-|to)\s*(\d+))?")
_LEFT_OUT = re.compile(r"^\| (\d+) \|[^|]+\|\s*\S[^|]+\|$", re.MULTILINE)


def _named(text: str) -> Iterator[int]:
    for sentence in _NAMED.finditer(text):
        for numbers in _RANGE.finditer(sentence[1]):
            yield from range(int(numbers[1]), int(numbers[2] or numbers[1]) + 1)


def test_numbers_are_found() -> None:
    text = "Scenario 3: x. scenarios 5 to 7, 9 and 11-12. Scenario\n    20."
    assert sorted(_named(text)) == [3, 5, 6, 7, 9, 11, 12, 20]


def test_each_scenario_is_shown_or_left_out() -> None:
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    shown = {number for path in files for number in _named(path.read_text(encoding="utf-8"))}
    document = (ROOT / "tests/scenarios.md").read_text(encoding="utf-8")
    left_out = {int(number) for number in _LEFT_OUT.findall(document)}
    assert left_out, "the table of what is left out was not understood"
    assert sorted(set(range(1, LAST + 1)) - shown - left_out) == [], "neither in a test nor left out"
    assert sorted(shown & left_out) == [], "left out, but there is a test"
    assert max(shown) <= LAST
