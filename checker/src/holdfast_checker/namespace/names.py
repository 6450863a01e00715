"""Resolve the names of scenes and properties that users type and counterexamples contain."""

from __future__ import annotations

from holdfast_checker.namespace.drawing import drawn
from holdfast_checker.namespace.properties import PROPERTIES
from holdfast_checker.namespace.scenes.catalog import FAMILIES, LARGEST, SCENES, SMALL
from holdfast_checker.namespace.scenes.scene import Scene
from holdfast_checker.transactions.names import property_among, scenes_among


def find_scenes(name: str) -> tuple[Scene, ...]:
    """Return the scene with this name, or all scenes of the family with this name.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    return scenes_among(name, (SCENES, SMALL, LARGEST), drawn, FAMILIES, FAMILIES)


def find_property(name: str) -> str:
    """Return the canonical name of a property: ``N1`` for ``n1``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    return property_among(name, PROPERTIES)
