"""Names that a person types and that counterexamples hold: committers, scenes, properties, and worlds from them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeVar

from holdfast.checker.committers.features import FEATURES, combine, features_of
from holdfast.checker.committers.properties import PROPERTIES
from holdfast.checker.committers.scenes import ALL_ONCE, COMBINED, LARGE, SCENES, SMALL, STORES
from holdfast.checker.committers.variants import VARIANTS
from holdfast.checker.committers.worlds import Scene
from holdfast.commit import COMMITTERS, Committer
from holdfast.errors import InvalidRequestError

__all__ = ["ALL_SCENES", "CHECKED", "find_committer", "find_property", "find_scene"]

T = TypeVar("T")

CHECKED: Mapping[str, Committer] = {**COMMITTERS, **VARIANTS}
"""Every committer that has a name here can be checked, and its counterexamples replay."""

ALL_SCENES: Mapping[str, Scene] = {
    **SCENES,
    **COMBINED,
    **STORES,
    **SMALL,
    ALL_ONCE.name: ALL_ONCE,
    LARGE.name: LARGE,
}
"""The quick ones, combinations of features, those on other stores, the small worlds and the large one."""


def find_committer(name: str) -> Committer:
    """The committer of that name; ``-`` and ``_`` are one.

    Raises:
        InvalidRequestError: unknown; offers the nearest name.
    """
    return CHECKED[_find(name, CHECKED, "committer")]


def find_scene(name: str) -> Scene:
    """The scene of that name, or the combination of the features that are named, as in ``crash+recovery+overwrite``.

    Raises:
        InvalidRequestError: unknown; offers the nearest name.
    """
    features = features_of(name)
    if features is not None and _key(name) not in map(_key, ALL_SCENES):
        combined = combine(features)
        return ALL_SCENES.get(combined.name, combined)
    if "+" in name:
        for part in name.split("+"):
            _find(part, FEATURES, "feature of a scene")
    return ALL_SCENES[_find(name, ALL_SCENES, "scene")]


def find_property(name: str) -> str:
    """The name of a property as it is written: ``c4`` is ``C4``.

    Raises:
        InvalidRequestError: unknown; offers the nearest name.
    """
    return _find(name, PROPERTIES, "property")


def _find(name: str, known: Mapping[str, T], what: str) -> str:
    by_key = {_key(each): each for each in known}
    found = by_key.get(_key(name))
    if found is None:
        near = difflib.get_close_matches(_key(name), by_key, n=1, cutoff=0.5)
        offer = f"did you mean {by_key[near[0]]!r}" if near else "holdfast check --list names them all"
        raise InvalidRequestError(f"unknown {what}, {offer}", **{what: name})
    return found


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")
