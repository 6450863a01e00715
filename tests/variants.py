"""Choose the variants of a test that the default suite runs; `make check` runs all.

A parametrization names them with `variants`. Of the publications of a job, which parametrize most tests of commits,
each test runs one by default, in turn, so that all three are in each suite.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pytest

_IN_TURN = "publication"


def variants(values: Iterable[Any], *default: Any) -> list[Any]:
    """Return the values of a parametrization, all marked slow but the default ones: without any, the first.

    A tuple is the values of several names.
    """
    every = list(values)
    chosen = default or (every[0],)
    return [one if one in chosen else _slow(one) for one in every]


def _slow(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)


def mark_in_turn(items: list[pytest.Item]) -> None:
    """Mark all variants of a test by publication as slow, except one. They stay judges of mutants."""
    publications: dict[str, list[str]] = {}
    for item in items:
        publication = _publication(item)
        known = publications.setdefault(_function(item), [])
        if publication is not None and publication not in known:
            known.append(publication)
    for item in items:
        known = publications[_function(item)]
        if len(known) > 1 and _publication(item) != known[zlib.crc32(_function(item).encode()) % len(known)]:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.judge)


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _publication(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get(_IN_TURN)
