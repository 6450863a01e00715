"""Decide what calls of fsspec's `mv` mean: which source goes to which target."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Move:
    """A rename.

    Attributes:
        into: whether the source moves into the target if that is a directory.
    """

    source: str
    target: str
    into: bool


def moves(path1: Any, path2: Any) -> Iterator[Move]:
    """Yield the renames that a call means, given its arguments: names, or lists of names.

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
        if source.endswith("/") or not target.endswith("/"):
            yield Move(source, target, not source.endswith("/"))
            return
    directory = target.rstrip("/")
    for source in path1 if isinstance(path1, list) else [os.fspath(path1)]:
        yield Move(source, f"{directory}/{source.rstrip('/').rpartition('/')[2]}", False)
