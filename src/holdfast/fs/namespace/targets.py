"""Decide what calls of fsspec's `mv`, `copy` and `get` mean: which source goes to which target.

fsspec takes a source that contains one of ``*?[`` for a pattern. Here it is a pattern only if nothing has that path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from glob import has_magic
from typing import Any

from fsspec.utils import other_paths

from holdfast.errors import InvalidRequestError

__all__ = ["Move", "Sources", "copies", "moves"]


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked about sources.

    Attributes:
        expand: returns the paths that a path or a pattern means; with True, also what is below them, down to a depth.
    """

    exists: Callable[[str], bool]
    isdir: Callable[[str], bool]
    expand: Callable[[Any, bool, int | None], list[str]]


@dataclass(frozen=True, slots=True)
class Move:
    """A rename.

    Attributes:
        into: whether the source moves into the target if that is a directory.
    """

    source: str
    target: str
    into: bool


def moves(path1: Any, path2: Any, sources: Sources) -> Iterator[Move]:
    """Yield the renames that a call means, given its arguments.

    Raises:
        InvalidRequestError: there are two lists, of different length.
    """
    if isinstance(path1, list) and isinstance(path2, list):
        if len(path1) != len(path2):
            raise InvalidRequestError(
                "there must be as many targets as sources: check the lists", sources=len(path1), targets=len(path2)
            )
        yield from (Move(source, target, False) for source, target in zip(path1, path2, strict=True))
        return
    target = os.fspath(path2)
    if not isinstance(path1, list):
        source = os.fspath(path1)
        takes_content = source.endswith("/")
        if takes_content or (not target.endswith("/") and (not has_magic(source) or sources.exists(source))):
            yield Move(source, target, not takes_content)
            return
    directory = target.rstrip("/")
    for source in sources.expand(path1, False, None):
        yield Move(source, f"{directory}/{source.rpartition('/')[2]}", False)


def copies(
    source: Any,
    target: Any,
    sources: Sources,
    *,
    recursive: bool,
    maxdepth: int | None,
    is_directory: Callable[[str], bool],
) -> tuple[Any, Any]:
    """Return source and target as lists, which fsspec takes literally, if the source looks like a pattern and is none.

    Args:
        is_directory: whether a target is a directory.
    """
    if not isinstance(source, str) or not isinstance(target, str):
        return source, target
    if not has_magic(source) or not sources.exists(source):
        return source, target
    found = sources.expand(source, recursive, maxdepth)
    if not recursive or maxdepth is not None:
        found = [one for one in found if not sources.isdir(one)]
    into = (target.endswith("/") or is_directory(target)) and not source.endswith("/")
    return found, other_paths(found, target, exists=into) if found else []
