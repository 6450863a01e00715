"""Define the scenes (small worlds) in which `holdfast check` explores committers, from their file ``scenes.ini``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.features import FEATURES, combine_features, parse_features
from holdfast_checker.framework.scene_files import read_sections
from holdfast_checker.kernel.calls import Fault

SECTIONS = read_sections("holdfast_checker.committers")


def read_scene_group(group: str) -> dict[str, CommitterScene]:
    """Read the scenes of one group from ``scenes.ini``, by name."""
    found = {}
    for name, fields in SECTIONS.items():
        if fields.get("features") and fields.get("group", "") == group:
            scene = combine_features(FEATURES[one] for one in fields["features"].split())
            reached = tuple(fields.get("reached", "").split())
            found[name] = replace(scene, name=name, summary=fields["summary"], reached=reached)
    return found


SCENES: Mapping[str, CommitterScene] = read_scene_group("")
"""Small scenes, each about one situation. To explore one of them takes seconds for any committer."""

STORES: Mapping[str, CommitterScene] = read_scene_group("stores")
"""Scenes on stores that differ from those for which most committers were made."""

SMALL: Mapping[str, CommitterScene] = read_scene_group("small")
"""Larger scenes. To explore one of them takes minutes."""

COMBINED: Mapping[str, CommitterScene] = {
    scene.name: scene for scene in (combine_features(parse_features(name) or ()) for name in SECTIONS["combinations"])
}
"""Combinations of features for a committer with a log."""


def _scene_on_transactional_store(scene: CommitterScene) -> CommitterScene:
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


TRANSACTIONAL: Mapping[str, CommitterScene] = {
    scene.name: scene for scene in map(_scene_on_transactional_store, (*SCENES.values(), *SMALL.values()))
}
"""The small scenes and the larger ones for `two_phase` on a store with transactions."""

LARGE = CommitterScene(
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
