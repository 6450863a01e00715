"""Resolve the names of scenes and properties that users type and counterexamples contain."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.checker.transactions.drawing import drawn
from holdfast.checker.transactions.properties import PROPERTIES
from holdfast.checker.transactions.scenes import FAMILIES, SCENES, SMALL
from holdfast.checker.transactions.worlds import Scene
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
    family, slash, _pair = name.partition("/")
    known: Iterable[str] = [one.name for one in FAMILIES.get(family, ())] if slash and family in FAMILIES else FAMILIES
    found = FAMILIES.get(name)
    if found is None:
        raise InvalidRequestError(f"unknown scene: {nearest(name, known)}", scene=name)
    return found


def find_property(name: str) -> str:
    """Return the canonical name of a property: ``T1`` for ``t1``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    found = {one.lower(): one for one in PROPERTIES}.get(name.strip().lower())
    if found is None:
        raise InvalidRequestError(f"unknown property: {nearest(name, PROPERTIES)}", property=name)
    return found
