"""Check within seconds that `two_phase` breaks no property in a few dozen small worlds.

This is for developers who want quick feedback, and for mutation testing, which needs a thousand verdicts. The worlds
are a selection of those that `holdfast check two_phase` explores, chosen so that each part of the protocol meets
crashes, second drivers, other jobs and readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.commit import Committer
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast_checker.committers.features import combine, features_of
from holdfast_checker.committers.goals import GOALS
from holdfast_checker.committers.worlds import Scene, build_world
from holdfast_checker.framework.subject import GoalTracker
from holdfast_checker.kernel.explore import Budget, explore

_NAMES = """
one-task+two-files
one-task+two-files+twins+live-jobs
one-task+chosen+twins+live-jobs
one-task+asks+twins+partition
one-task+twins+cancel
fail+old
ignore+old
one-task+two-files+lost-reply
one-task+two-files+failure+recovery
overwrite+lost-reply
overwrite+failure
overwrite+appends+at-once
overwrite+overwrites+at-once
partitions+overwrites-partitions+at-once
fail+appends+at-once
ignore+appends+at-once
chosen+appends+at-once
chosen+overwrite+overwrites+at-once
overwrite+replay+at-once
overwrite+then-overwrites+driver-dies
partitions+then-appends+driver-dies
overwrite+crash+recovery
overwrite+renames+crash+recovery
overwrite+second-driver+driver-dies
one-task+overwrite+second-driver+driver-dies+renames
one-task+two-files+parts+recovery+driver-dies
one-task+chosen+recovery+driver-dies
one-task+second-driver+partition
one-task+slow+recovery
one-task+contention+overwrite
one-task+threads+two-files+overwrite+driver-dies+recovery
piecemeal+renames+appends+at-once
one-task+short-log+busy+at-once
one-task+overwrite+reader
one-task+busy+at-once+piecemeal
transactions+overwrite+appends+at-once
transactions+chosen+appends+at-once
transactions+short-log+busy+at-once
transactions+overwrite+lost-reply
transactions+overwrite+crash+recovery
transactions+one-task+overwrite+reader
"""

VERDICT: Sequence[Scene] = tuple(combine(features_of(name) or ()) for name in _NAMES.split())
"""The scenes, the quickest first: together some 93,000 states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of `small_verdict`.

    Attributes:
        findings: what broke, by scene and property. The property ``reached`` means that no history reached a goal, and
            ``states`` that the scene has too many states.
    """

    findings: dict[tuple[str, str], str]
    states: int


def small_verdict(
    committer: Committer = TWO_PHASE, *, scenes: Sequence[Scene] = VERDICT, first: bool = True, states: int = 60_000
) -> Verdict:
    """Explore small worlds, and report what is wrong.

    Args:
        first: whether to stop after the first scene with a finding.
        states: maximum number of states of a scene. A scene with more states is also a finding, because with the
            shipped code it has fewer.
    """
    findings: dict[tuple[str, str], str] = {}
    looked_at = 0
    for scene in scenes:
        tracker = GoalTracker(scene.reached, GOALS)
        world = build_world(committer, scene, tracker)
        found = explore(world, budget=Budget(states=states), until=lambda now: first and bool(now.findings))
        looked_at += found.states
        findings.update({(scene.name, name): one.broke for name, one in found.findings.items()})
        words = ", ".join(tracker.missing)
        if found.complete and words:
            findings[scene.name, "reached"] = f"no history reaches: {words}"
        elif not found.complete and not found.findings:
            findings[scene.name, "states"] = f"there are more than {states:,} states"
        if first and findings:
            break
    return Verdict(findings=findings, states=looked_at)
