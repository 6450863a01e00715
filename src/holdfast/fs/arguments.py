"""Turn arguments of fsspec's calls into those of a namespace, and what a namespace returns into what fsspec expects.

fsspec takes every path that contains one of ``*?[`` for a pattern. Here, a path that exists is a name; and what removes
or moves takes names only, so a call that is repeated can never reach a file that nobody named.

To fsspec, a path is ``name/directory/file``, and the name of the namespace is the first component. Percent signs,
``#`` and ``?`` are ordinary characters.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import has_magic
from typing import Any

from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.namespace import FileStatus, split_url
from holdfast.namespace.catalog import SCHEME
from holdfast.namespace.errors import FeatureUnsupportedError, ParentNotDirectoryError, PathNotFoundError
from holdfast.namespace.file_reader import FileReader
from holdfast.runtime import Runner, SerialRunner


def split_path(path: str) -> tuple[str, str]:
    """Return the name of the namespace and the path in it, which is at least ``/``.

    Raises:
        InvalidRequestError: the path names no namespace.
    """
    return split_url(f"{SCHEME}://{path}")


@contextmanager
def hint_at_patterns(path: str) -> Iterator[None]:
    """Say how to name what a pattern matches, if something that looks like one is missing."""
    try:
        yield
    except FileNotFoundError as error:
        if not has_magic(path):
            raise
        message = "nothing has this name, and only names are removed and moved: pass fs.glob(…) if it is a pattern"
        raise PathNotFoundError(message, path=path) from error


def as_list(path: Any) -> Sequence[Any]:
    """Return the paths of an argument, which is one or a list of them."""
    return [path] if isinstance(path, str | os.PathLike) else path


def refuse_pattern_names(source: Any, target: Any, exists: Callable[[str], bool], *, in_lists: bool = False) -> None:
    """Refuse to copy what fsspec would take for a pattern although a file or directory has that name.

    Args:
        exists: whether something has a path.
        in_lists: whether fsspec looks for patterns in lists of sources as well.

    Raises:
        FeatureUnsupportedError: a name contains such a character.
    """
    if isinstance(source, list) and (isinstance(target, list) or not in_lists):
        return
    for one in map(os.fspath, as_list(source)):
        if has_magic(one) and exists(one):
            raise FeatureUnsupportedError(
                "the name contains *, ? or [, so fsspec takes it for a pattern: give two lists, of sources and targets",
                path=one,
            )


def entry_of(name: str, status: FileStatus) -> dict[str, Any]:
    """Describe a file or a directory; times are seconds since the epoch, and the mode is that of `os.stat`."""
    return {
        "name": name if status.path == "/" else name + status.path,
        "size": status.size,
        "type": "directory" if status.is_directory else "file",
        "mtime": status.mtime_ms / 1000,
        "mode": (stat.S_IFDIR if status.is_directory else stat.S_IFREG) | status.mode,
        "owner": status.owner,
        "group": status.group,
        "ino": status.id,
        "is_open": status.is_open,
        **({} if status.is_directory else {"ETag": status.etag}),  # by this name, caches ask whether a file has changed
    }


def directory_entry(path: str) -> dict[str, Any]:
    """Describe the root above all namespaces, or a namespace in it that nobody has opened yet."""
    return {"name": path, "size": 0, "type": "directory"}


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


@dataclass(frozen=True, slots=True)
class FileRange:
    """A part of a file; the positions are those of Python's slices."""

    path: str
    start: int | None
    end: int | None


def read_slice(reader: FileReader, start: int | None, end: int | None) -> bytes:
    """Read a part of a file; the positions are those of Python's slices."""
    first, last, _ = slice(start, end).indices(reader.size)
    return reader.read(first, max(last - first, 0))


def read_ranges(
    open_file: Callable[[str], FileReader], ranges: list[FileRange], runner: Runner, *, keep_errors: bool
) -> list[Any]:
    """Return the bytes of each range. All ranges of one file are from the same version of it.

    Args:
        keep_errors: whether an error takes the place of the bytes that it concerns, instead of being raised.
    """

    def attempted(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except HoldfastError as error:
            if not keep_errors:
                raise
            return error

    def read(one: FileRange) -> Any:
        reader = readers[one.path]
        return attempted(lambda: read_slice(reader, one.start, one.end)) if isinstance(reader, FileReader) else reader

    if len(ranges) < 2:
        runner = SerialRunner()
    paths = list(dict.fromkeys(one.path for one in ranges))
    readers = dict(zip(paths, runner.map(lambda path: attempted(lambda: open_file(path)), paths), strict=True))
    return list(runner.map(read, ranges))


@dataclass(frozen=True, slots=True)
class Move:
    """A rename.

    Attributes:
        into: whether the source moves into the target if that is a directory.
    """

    source: str
    target: str
    into: bool


def parse_moves(path1: Any, path2: Any) -> Iterator[Move]:
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
