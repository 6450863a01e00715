"""Say what each case is expected to come to, and tell all outcomes as the table in docs/reference/webhdfs.md.

`expected.ini` has a section for each suite with cases that do not pass: ``case = outcome: reason``. A case stands there
without its rows (what JUnit calls its invocations); an asterisk stands for all cases of the suite.
"""

from __future__ import annotations

import configparser
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tests.hadoop_contract.toolchain import FOLDER

__all__ = ["BASELINE", "SUITES", "Expectation", "baseline", "expectations", "failure_rows", "reasons", "suite_rows"]

BASELINE = FOLDER / "baseline.json"
PASSED = "passed"


@dataclass(frozen=True)
class Expectation:
    """What a case is expected to come to.

    Attributes:
        reason: in one sentence, unless it passes.
    """

    outcome: str = PASSED
    reason: str = ""


def baseline() -> Mapping[str, Mapping[str, str]]:
    """Return what stock HDFS makes of each case of each suite: passed, failed, skipped, or unstable: now so, now so."""
    return json.loads(BASELINE.read_text(encoding="utf-8"))


SUITES = tuple(baseline())
"""The names of the suites, in the order in which they run."""


def reasons() -> Mapping[str, Mapping[str, Expectation]]:
    """Return the lines of `expected.ini`."""
    parser = configparser.RawConfigParser(delimiters=("=",), default_section="")
    parser.optionxform = str  # cases keep their capitals
    parser.read_string((FOLDER / "expected.ini").read_text(encoding="utf-8"))
    return {suite: {case: _parse(text) for case, text in parser.items(suite)} for suite in parser.sections()}


def _parse(text: str) -> Expectation:
    outcome, _, reason = text.partition(": ")
    assert outcome in ("failed", "skipped") and reason, f"a line is `case = outcome: reason`: {text}"
    return Expectation(outcome, " ".join(reason.split()))


def expectations(suite: str) -> Mapping[str, Expectation]:
    """Return what is expected of all cases of a suite."""
    lines = reasons().get(suite, {})
    passes = Expectation()
    return {case: lines.get(case.partition("[")[0], lines.get("*", passes)) for case in baseline()[suite]}


def suite_rows() -> list[str]:
    """Return the rows of the table of suites: cases, then passed, failed and skipped here and in stock HDFS."""
    rows, sums = [], Counter[str]()
    for suite in SUITES:
        stock = Counter(baseline()[suite].values())
        here = Counter(one.outcome for one in expectations(suite).values())
        counts = {f"here {name}": number for name, number in here.items()} | {
            f"stock {name}": number for name, number in stock.items()
        }
        rows.append(_row(suite, Counter(counts)))
        sums.update(counts)
    return [*rows, _row("all", sums)]


def _row(name: str, counts: Counter[str]) -> str:
    here = [counts[f"here {outcome}"] for outcome in ("passed", "failed", "skipped")]
    stock = [counts[f"stock {outcome}"] for outcome in ("passed", "failed", "skipped", "unstable")]
    assert sum(here) == sum(stock), name
    shown = [str(number) for number in (sum(here), *here, *stock[:3])]
    if stock[3]:
        shown[4] += f" + {stock[3]} unstable"
    return f"| {name} | " + " | ".join(shown) + " |"


def failure_rows() -> list[str]:
    """Return the rows of the table of cases that do not pass: suite, cases, outcome here and in stock HDFS, reason."""
    rows = []
    for suite, lines in reasons().items():
        for one in dict.fromkeys(lines.values()):
            cases = [case for case, other in lines.items() if other == one]
            stock = {
                outcome for case, outcome in baseline()[suite].items() if {case.partition("[")[0], "*"} & set(cases)
            }
            named = ", ".join("all" if case == "*" else f"`{case}`" for case in cases)
            rows.append(f"| {suite} | {named} | {one.outcome} | {', '.join(sorted(stock))} | {one.reason} |")
    return rows
