"""Resolve the names of scenes and properties that users type and counterexamples contain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest
from holdfast_checker.transactions.drawing import drawn
from holdfast_checker.transactions.properties import PROPERTIES
from holdfast_checker.transactions.scenes import FAMILIES, SCENES, SMALL
from holdfast_checker.transactions.worlds import Scene

S = TypeVar("S")


def find_scenes(name: str) -> tuple[Scene, ...]:
    """Return the scene with this name, or all scenes of the family with this name.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    family, slash, _pair = name.partition("/")
    known: Iterable[str] = [one.name for one in FAMILIES.get(family, ())] if slash and family in FAMILIES else FAMILIES
    return scenes_among(name, (SCENES, SMALL), drawn, FAMILIES, known)


def find_property(name: str) -> str:
    """Return the canonical name of a property: ``T1`` for ``t1``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    return property_among(name, PROPERTIES)


# --- for every check --------------------------------------------------------------------------------------------------
def scenes_among(
    name: str,
    catalogs: Iterable[Mapping[str, S]],
    drawn: Callable[[str], S | None],
    families: Mapping[str, tuple[S, ...]],
    known: Iterable[str],
) -> tuple[S, ...]:
    """Return the scene with this name, or all scenes of the family with this name.

    Args:
        catalogs: scenes by name, the most important ones first.
        drawn: returns the random scene with a name; None if it is none of such a scene.
        known: the names to suggest.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    for catalog in catalogs:
        if name in catalog:
            return (catalog[name],)
    scene = drawn(name)
    if scene is not None:
        return (scene,)
    found = families.get(name)
    if found is None:
        raise InvalidRequestError(f"unknown scene: {nearest(name, known)}", scene=name)
    return found


def property_among(name: str, known: Iterable[str]) -> str:
    """Return the canonical name of a property, whatever the case of its letters.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    names = tuple(known)
    found = {one.lower(): one for one in names}.get(name.strip().lower())
    if found is None:
        raise InvalidRequestError(f"unknown property: {nearest(name, names)}", property=name)
    return found
