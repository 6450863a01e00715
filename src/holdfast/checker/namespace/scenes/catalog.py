"""List the scenes that ``holdfast check namespace`` explores: one for each way in which operations can collide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.checker.namespace.scenes.deletions import DELETIONS, ELECTIONS
from holdfast.checker.namespace.scenes.faults import FAULTS, FAULTY
from holdfast.checker.namespace.scenes.files import BATCHES, FILES
from holdfast.checker.namespace.scenes.leases import LEASES, SURE_WRITERS
from holdfast.checker.namespace.scenes.quotas import IDS, QUOTAS
from holdfast.checker.namespace.scenes.renames import RENAMES
from holdfast.checker.namespace.scenes.scene import Scene

__all__ = ["FAMILIES", "SCENES", "SMALL"]

SCENES: Mapping[str, Scene] = {
    scene.name: scene
    for scenes in (RENAMES, DELETIONS, ELECTIONS, BATCHES, FILES, LEASES, QUOTAS, IDS, FAULTS, SURE_WRITERS)
    for scene in scenes
}
"""The quick scenes."""

SMALL: Mapping[str, Scene] = {
    scene.name: scene
    for scene in (
        replace(
            scene,
            name=f"faulty-{scene.name}",
            summary=f"{scene.summary}; a crash, a lost reply and a failure, each once, anywhere",
            budgets=FAULTY,
            reached=(),
        )
        for scene in SCENES.values()
        if not scene.budgets
    )
}
"""Larger scenes, which take minutes."""

FAMILIES: Mapping[str, tuple[Scene, ...]] = {
    family: tuple(scene for scene in (*SCENES.values(), *SMALL.values()) if scene.family == family)
    for family in dict.fromkeys(scene.family for scene in (*SCENES.values(), *SMALL.values()))
}
"""Scenes that belong together, by the name of the family."""
