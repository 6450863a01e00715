"""Resolve the names of committers, scenes and properties that users type and counterexamples contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from holdfast.commit import COMMITTERS, Committer
from holdfast.errors import InvalidRequestError
from holdfast.wording import nearest
from holdfast_checker.committers.features import FEATURES, combine, features_of
from holdfast_checker.committers.properties import PROPERTIES
from holdfast_checker.committers.scenes import (
    ALL_ONCE,
    COMBINED,
    LARGE,
    SCENES,
    SMALL,
    STORES,
    TRANSACTIONAL,
)
from holdfast_checker.committers.variants import VARIANTS
from holdfast_checker.committers.worlds import Scene

T = TypeVar("T")

_LIST = "holdfast check --list"

CHECKED: Mapping[str, Committer] = {**COMMITTERS, **VARIANTS}
"""Every committer that can be checked by name."""

ALL_SCENES: Mapping[str, Scene] = {
    **SCENES,
    **COMBINED,
    **STORES,
    **SMALL,
    **TRANSACTIONAL,
    ALL_ONCE.name: ALL_ONCE,
    LARGE.name: LARGE,
}
"""The quick scenes, combinations of features, other stores, the small worlds, and the large one.

The quick scenes and the small worlds come a second time, on a store with transactions.
"""


def find_committer(name: str, *, others: Sequence[str] = ()) -> Committer:
    """Return the committer with this name; ``-`` and ``_`` are equivalent.

    Args:
        others: names of what is no committer, which the caller knows and may suggest.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    return CHECKED[_find(name, CHECKED, "committer", others)]


def find_scene(name: str) -> Scene:
    """Return the scene with that name, or the combination of the named features, as in ``crash+recovery+overwrite``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
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
    """Return the canonical name of a property: ``C4`` for ``c4``.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    return _find(name, PROPERTIES, "property")


def _find(name: str, known: Mapping[str, T], what: str, others: Sequence[str] = ()) -> str:
    by_key = {_key(each): each for each in known}
    found = by_key.get(_key(name))
    if found is None:
        raise InvalidRequestError(
            f"unknown {what}: {nearest(name, [*known, *others], listed_by=_LIST)}", **{what: name}
        )
    return found


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")
