"""List the scenes that ``holdfast check namespace`` explores: one for each way in which operations can collide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast_checker.namespace.scenes.crashes import CRASHES
from holdfast_checker.namespace.scenes.deletions import DELETIONS, ELECTIONS
from holdfast_checker.namespace.scenes.faults import FAULTS, FAULTY
from holdfast_checker.namespace.scenes.files import BATCHES, FILES
from holdfast_checker.namespace.scenes.leases import LEASES, SURE_WRITERS
from holdfast_checker.namespace.scenes.modes import MODES
from holdfast_checker.namespace.scenes.permissions import PERMISSIONS
from holdfast_checker.namespace.scenes.quotas import QUOTAS
from holdfast_checker.namespace.scenes.renames import RENAMES
from holdfast_checker.namespace.scenes.scene import Scene
from holdfast_checker.namespace.scenes.uploads import SWEEPS, UPLOADS

SCENES: Mapping[str, Scene] = {
    scene.name: scene
    for scenes in (
        RENAMES,
        DELETIONS,
        ELECTIONS,
        BATCHES,
        FILES,
        LEASES,
        UPLOADS,
        SWEEPS,
        PERMISSIONS,
        MODES,
        QUOTAS,
        FAULTS,
        SURE_WRITERS,
        CRASHES,
    )
    for scene in scenes
}
"""The quick scenes."""

_LARGE = frozenset(
    {
        "create-beside-a-lease",
        "create-under-lease",
        "election",
        "lease-theft",
        "nothing-new",
        "object-store-batch",
        "overwrite-and-read",
        "quota-expired",
        "quota-set",
        "renewal",
        "two-appenders",
        "two-leaders",
        "walk-and-collect",
        "writer-in-a-deleted-tree",
    }
)
"""Scenes with many ten thousands of states, if a fault of each kind happens."""


def _with_all_faults(scene: Scene, name: str) -> Scene:
    summary = f"{scene.summary}; a crash, a lost reply and a failure, each once, anywhere"
    return replace(scene, name=name, summary=summary, budgets=FAULTY, reached=())


def _with_one_fault(scene: Scene) -> list[Scene]:
    return [
        replace(
            scene,
            name=f"faulty-{scene.name}/{fault.value.replace(' ', '-')}",
            summary=f"{scene.summary}; a {fault.value}, anywhere",
            budgets={fault: 1},
            reached=(),
        )
        for fault in FAULTY
    ]


_FAULTLESS = [scene for scene in SCENES.values() if not scene.budgets and not scene.crashes]

SMALL: Mapping[str, Scene] = {
    scene.name: scene
    for known in _FAULTLESS
    for scene in (_with_one_fault(known) if known.name in _LARGE else [_with_all_faults(known, f"faulty-{known.name}")])
}
"""Larger scenes, with faults: all kinds in each history; in the largest scenes, one kind at a time."""

LARGEST: Mapping[str, Scene] = {
    scene.name: scene
    for scene in (_with_all_faults(known, f"all-faults-{known.name}") for known in _FAULTLESS if known.name in _LARGE)
}
"""The largest scenes, with all kinds of faults in each history: half a minute each, only if they are named."""
