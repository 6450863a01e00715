"""Find everything below a directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.namespace.errors import ParentNotDirectoryError, PathNotFoundError


def find_below(root: str, ls: Callable[[str], list[dict[str, Any]]], maxdepth: int | None) -> dict[str, dict[str, Any]]:
    """Return the entries below a path by their paths; of a file, the file itself; nothing if nothing is there.

    A directory that is deleted meanwhile is left out. Any other error is raised: the result would be incomplete.

    Args:
        ls: returns the entries of a directory, or of a file the file itself.
        maxdepth: how many levels to descend; None for all.

    Raises:
        InvalidRequestError: `maxdepth` is less than 1.
    """
    if maxdepth is not None and maxdepth < 1:
        raise InvalidRequestError("the depth must be at least 1: leave maxdepth out for all", maxdepth=maxdepth)
    found: dict[str, dict[str, Any]] = {}
    waiting = [(root, 1)]
    while waiting:
        directory, depth = waiting.pop()
        try:
            entries = ls(directory)
        except (PathNotFoundError, ParentNotDirectoryError):
            continue
        for entry in entries:
            found[entry["name"]] = entry
            if entry["type"] == "directory" and (maxdepth is None or depth < maxdepth):
                waiting.append((entry["name"], depth + 1))
    return found
