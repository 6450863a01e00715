"""Judge `two_phase` within seconds, in a selection of worlds."""

from __future__ import annotations

from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.features import combine_features, parse_features
from holdfast_checker.framework.check import Check
from holdfast_checker.kernel.explore import Budget
from holdfast_checker.subjects import build_committer_subject

__all__ = ["VERDICT", "small_verdict"]

_NAMES = (
    "one-task+two-files",
    "one-task+two-files+twins+live-jobs",
    "one-task+chosen+twins+live-jobs",
    "one-task+asks+twins+partition",
    "one-task+twins+cancel",
    "fail+old",
    "ignore+old",
    "one-task+two-files+lost-reply",
    "one-task+two-files+failure+recovery",
    "overwrite+lost-reply",
    "overwrite+failure",
    "overwrite+appends+at-once",
    "overwrite+overwrites+at-once",
    "partitions+overwrites-partitions+at-once",
    "fail+appends+at-once",
    "ignore+appends+at-once",
    "chosen+appends+at-once",
    "chosen+overwrite+overwrites+at-once",
    "overwrite+replay+at-once",
    "overwrite+then-overwrites+driver-dies",
    "partitions+then-appends+driver-dies",
    "overwrite+crash+recovery",
    "overwrite+renames+crash+recovery",
    "overwrite+second-driver+driver-dies",
    "one-task+overwrite+second-driver+driver-dies+renames",
    "one-task+two-files+parts+recovery+driver-dies",
    "one-task+chosen+recovery+driver-dies",
    "one-task+second-driver+partition",
    "one-task+slow+recovery",
    "one-task+contention+overwrite",
    "piecemeal+renames+appends+at-once",
    "one-task+short-log+busy+at-once",
    "one-task+overwrite+reader",
    "one-task+busy+at-once+piecemeal",
    "transactions+overwrite+appends+at-once",
    "transactions+chosen+appends+at-once",
    "transactions+short-log+busy+at-once",
    "transactions+overwrite+lost-reply",
    "transactions+overwrite+crash+recovery",
    "transactions+one-task+overwrite+reader",
)
"""The quickest first: together some 93,000 states."""

VERDICT = tuple(combine_features(parse_features(name) or ()) for name in _NAMES)
"""Worlds in which each part of the protocol meets crashes, second drivers, other jobs and readers."""


def small_verdict(*, scenes: tuple[CommitterScene, ...] = VERDICT, first: bool = True) -> dict[tuple[str, str], str]:
    """Explore small worlds, and return what broke, by scene and property.

    The property ``reached`` means that no history reached a goal, and ``states`` that the scene has too many states.

    Args:
        first: whether to stop after the first scene with a finding.
    """
    findings: dict[tuple[str, str], str] = {}
    for scene in scenes:
        check = Check(build_committer_subject(TWO_PHASE), until=lambda: first and bool(check.violations))  # noqa: B023  # called within the loop
        report = check.explore([scene], Budget(states=60_000))
        findings |= {(scene.name, name): found.counterexample.broke for name, found in check.violations.items()}
        if report.missing:
            findings[scene.name, "reached"] = f"no history reaches: {report.missing}"
        elif not report.complete and not check.violations:
            findings[scene.name, "states"] = f"there are more than {report.states:,} states"
        if first and findings:
            break
    return findings
