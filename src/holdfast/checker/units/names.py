"""Resolve the names of scenes and properties that users type and counterexamples contain."""

from __future__ import annotations

from holdfast.checker.units.drawing import drawn
from holdfast.checker.units.properties import PROPERTIES
from holdfast.checker.units.scene import Scene
from holdfast.checker.units.scenes import FAMILIES, SCENES, SMALL
from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest

__all__ = ["find_property", "find_scenes"]


def find_scenes(name: str) -> tuple[Scene, ...]:
    """Return the scene with this name, or all scenes of the family with this name.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    scene = SCENES.get(name) or SMALL.get(name) or drawn(name)
    if scene is not None:
        return (scene,)
    found = FAMILIES.get(name)
    if found is None:
        raise InvalidRequestError(f"unknown scene: {nearest(name, FAMILIES)}", scene=name)
    return found


def find_property(name: str) -> str:
    """Return the canonical name of a property: ``U1`` for ``u1``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    found = {one.lower(): one for one in PROPERTIES}.get(name.strip().lower())
    if found is None:
        raise InvalidRequestError(f"unknown property: {nearest(name, PROPERTIES)}", property=name)
    return found
