"""Resolve the names of scenes and properties that users type and counterexamples contain."""

from __future__ import annotations

from holdfast_checker.transactions.names import property_among, scenes_among
from holdfast_checker.units.drawing import drawn
from holdfast_checker.units.properties import PROPERTIES
from holdfast_checker.units.scene import Scene
from holdfast_checker.units.scenes import FAMILIES, LARGEST, SCENES, SMALL


def find_scenes(name: str) -> tuple[Scene, ...]:
    """Return the scene with this name, or all scenes of the family with this name.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    return scenes_among(name, (SCENES, SMALL, LARGEST), drawn, FAMILIES, FAMILIES)


def find_property(name: str) -> str:
    """Return the canonical name of a property: ``U1`` for ``u1``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    return property_among(name, PROPERTIES)
