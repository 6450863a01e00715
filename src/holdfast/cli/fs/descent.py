"""Walk the tree below a directory in the order in which people read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.errors import HoldfastError
from holdfast.namespace import FileStatus, Namespace
from holdfast.namespace.errors import ParentNotDirectoryError, PathNotFoundError


def entries(namespace: Namespace, directory: str) -> Iterator[FileStatus]:
    """Yield the entries of a directory in the order of their names; none if it is gone, or is a file by now."""
    try:
        for entry in namespace.list(directory):
            if entry.path != directory:
                yield entry
    except (PathNotFoundError, ParentNotDirectoryError):
        return


def descend(
    namespace: Namespace,
    directory: str,
    *,
    max_depth: int | None = None,
    failed: Callable[[str, HoldfastError], None] | None = None,
) -> Iterator[tuple[int, FileStatus]]:
    """Yield everything below a directory with its depth, from 1: each directory just before its entries.

    A directory is listed after it was yielded, so a caller that changes it first sees its entries as they are then. At
    any moment, memory holds a page of entries for each level.

    Args:
        max_depth: the depth at which directories are not opened anymore; None for no limit.
        failed: called with the path of a directory that cannot be listed, and the error; the walk goes on. None raises
            the error.
    """
    levels = [(directory, entries(namespace, directory))]
    if max_depth == 0:
        return
    while levels:
        path, level = levels[-1]
        try:
            entry = next(level, None)
        except HoldfastError as error:
            if failed is None:
                raise
            failed(path, error)
            entry = None
        if entry is None:
            levels.pop()
            continue
        yield len(levels), entry
        if entry.is_directory and (max_depth is None or len(levels) < max_depth):
            levels.append((entry.path, entries(namespace, entry.path)))
