"""Decide which renames a call of fsspec's `mv` means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from glob import has_magic
from typing import Any

from holdfast.errors import InvalidRequestError

__all__ = ["Move", "moves"]


@dataclass(frozen=True, slots=True)
class Move:
    """A rename.

    Attributes:
        into: whether the source moves into the target if that is a directory.
    """

    source: str
    target: str
    into: bool


def moves(path1: Any, path2: Any, exists: Callable[[str], bool], expand: Callable[[Any], list[str]]) -> Iterator[Move]:
    """Yield the renames that a call means.

    Args:
        path1, path2: as the caller gave them.
        expand: returns the paths that patterns match.

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
    target = str(path2)
    if not isinstance(path1, list):
        source = str(path1)
        takes_content = source.endswith("/")
        if takes_content or (not target.endswith("/") and (not has_magic(source) or exists(source))):
            yield Move(source, target, not takes_content)
            return
    directory = target.rstrip("/")
    yield from (Move(source, f"{directory}/{source.rpartition('/')[2]}", False) for source in expand(path1))
