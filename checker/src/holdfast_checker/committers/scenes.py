"""Make the scenes that `holdfast check` explores for committers: ``scenes.ini`` declares them by their features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit import Committer
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast_checker.committers.features import FEATURES, combine, features_of
from holdfast_checker.committers.goals import GOALS
from holdfast_checker.committers.worlds import Scene, build_world
from holdfast_checker.framework.scene_files import read_sections
from holdfast_checker.framework.subject import GoalTracker
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.explore import Budget, explore

SECTIONS = read_sections("holdfast_checker.committers")


def scenes_of(group: str) -> dict[str, Scene]:
    """Return the scenes of a group, by name. Processes may forget in the large ones (`Scene.forgetful`)."""
    found = {}
    for name, fields in SECTIONS.items():
        if fields.get("features") and fields.get("group", "") == group:
            scene = combine(FEATURES[one] for one in fields["features"].split())
            reached = tuple(fields.get("reached", "").split())
            large = group in ("small", "largest")
            found[name] = replace(scene, name=name, summary=fields["summary"], reached=reached, forgetful=large)
    return found


def _combinations(section: str) -> tuple[Scene, ...]:
    return tuple(combine(features_of(name) or ()) for name in SECTIONS[section])


SCENES: Mapping[str, Scene] = scenes_of("")
"""Small scenes, each about one situation. To explore one of them takes seconds for any committer."""

STORES: Mapping[str, Scene] = scenes_of("stores")
"""Scenes on stores that differ from those for which most committers were made."""

SMALL: Mapping[str, Scene] = scenes_of("small")
"""Larger scenes. To explore one of them takes minutes."""

[ALL_ONCE] = scenes_of("largest").values()
"""About 10^7 states: exploring takes 15 minutes or more, and 10 GB of memory. Explored only if the user names it."""

COMBINED: Mapping[str, Scene] = {
    scene.name: replace(scene, forgetful=not scene.chosen) for scene in _combinations("combinations")
}
"""Combinations of features for a committer with a log.

Processes may forget in these scenes, except in those with chosen names: exploring the scenes with and without
forgetting gave the same results. In other combinations, no process forgets.
"""


def _on_transactions(scene: Scene) -> Scene:
    """Return the same scene on a store with transactions, where no decision of a commit is left unfinished.

    Nor does the driver put any list before its decision: without other faults, no lost reply makes it abort.
    """
    missed = ("rolled-forward", "helped", "read-between", *(("aborted",) if scene.name == "lost-reply" else ()))
    reached = [goal for goal in scene.reached if goal not in missed]
    return replace(
        scene,
        name=f"transactional-{scene.name}",
        summary=f"{scene.summary}; the store has transactions",
        store=FEATURES["transactions"].changes["store"],
        reached=(*reached, "at-once"),
    )


TRANSACTIONAL: Mapping[str, Scene] = {
    scene.name: scene for scene in map(_on_transactions, (*SCENES.values(), *SMALL.values()))
}
"""The small scenes and the larger ones for `two_phase` on a store with transactions."""

LARGE = Scene(
    name="large",
    summary="three tasks, three attempts at each, three files, every actor, several faults of each kind",
    tasks=3,
    attempts=3,
    files=3,
    second_driver=True,
    recovery=2,
    reader=True,
    cancel=True,
    bystanders=True,
    budgets={Fault.CRASH: 3, Fault.PARTITION: 2, Fault.LOST_REPLY: 2, Fault.FAILURE: 2, Fault.CLOCK: 1},
)
"""The scene for random walks."""


# --- a verdict within seconds -----------------------------------------------------------------------------------------
VERDICT = _combinations("verdict")
"""A selection of worlds in which each part of the protocol meets crashes, second drivers, other jobs and readers."""


def small_verdict(
    committer: Committer = TWO_PHASE,
    *,
    scenes: tuple[Scene, ...] = VERDICT,
    first: bool = True,
    states: int = 60_000,
) -> dict[tuple[str, str], str]:
    """Explore small worlds, and return what broke, by scene and property.

    This is for developers who want quick feedback, and for mutation testing, which needs a thousand verdicts. The
    property ``reached`` means that no history reached a goal, and ``states`` that the scene has too many states.

    Args:
        first: whether to stop after the first scene with a finding.
        states: maximum number of states of a scene: with the shipped code, each has fewer.
    """
    findings: dict[tuple[str, str], str] = {}
    for scene in scenes:
        tracker = GoalTracker(scene.reached, GOALS)
        world = build_world(committer, scene, tracker)
        found = explore(world, budget=Budget(states=states), until=lambda now: first and bool(now.findings))
        findings.update({(scene.name, name): one.broke for name, one in found.findings.items()})
        if found.complete and tracker.missing:
            findings[scene.name, "reached"] = f"no history reaches: {', '.join(tracker.missing)}"
        elif not found.complete and not found.findings:
            findings[scene.name, "states"] = f"there are more than {states:,} states"
        if first and findings:
            break
    return findings
