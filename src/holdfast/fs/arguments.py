"""Convert arguments of fsspec's calls to those of a namespace, and results of a namespace to fsspec's.

fsspec takes every path that contains one of ``*?[`` for a pattern. Here, a path that exists is a name; and what removes
or moves takes names only, so a call that is repeated can never reach a file that was not named.

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


def split_namespace_path(path: str) -> tuple[str, str]:
    """Split fsspec's path ``name/directory/file`` into the name of the namespace and the path in it, at least ``/``.

    Raises:
        InvalidRequestError: the path names no namespace.
    """
    return split_url(f"{SCHEME}://{path}")


@contextmanager
def explain_unexpanded_pattern(path: str) -> Iterator[None]:
    """Explain a `FileNotFoundError` in a ``with`` block if `path` looks like a pattern: only names are allowed, and a
    pattern has to be expanded first.
    """
    try:
        yield
    except FileNotFoundError as error:
        if not has_magic(path):
            raise
        message = "nothing has this name, and only names are removed and moved: pass fs.glob(…) if it is a pattern"
        raise PathNotFoundError(message, path=path) from error


def as_path_list(path: Any) -> Sequence[Any]:
    """Return an argument that is one path or a list of paths as a list of paths."""
    return [path] if isinstance(path, str | os.PathLike) else path


def refuse_pattern_names(source: Any, target: Any, exists: Callable[[str], bool], *, in_lists: bool = False) -> None:
    """Refuse to copy a file or directory whose name fsspec would take for a pattern.

    Args:
        exists: returns whether a path exists.
        in_lists: whether fsspec looks for patterns in lists of sources as well.

    Raises:
        FeatureUnsupportedError: a name contains ``*``, ``?`` or ``[``.
    """
    if isinstance(source, list) and (isinstance(target, list) or not in_lists):
        return
    for one in map(os.fspath, as_path_list(source)):
        if has_magic(one) and exists(one):
            raise FeatureUnsupportedError(
                "the name contains *, ? or [, so fsspec takes it for a pattern: give two lists, of sources and targets",
                path=one,
            )


def status_to_info(name: str, status: FileStatus) -> dict[str, Any]:
    """Return fsspec's info dictionary of a file or directory; times are seconds since the epoch, and the mode is that
    of `os.stat`.
    """
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


def make_placeholder_directory_info(path: str) -> dict[str, Any]:
    """Return fsspec's info dictionary of the root above all namespaces, or of a namespace that is not open yet."""
    return {"name": path, "size": 0, "type": "directory"}


def list_tree_infos(
    root: str, ls: Callable[[str], list[dict[str, Any]]], maxdepth: int | None
) -> dict[str, dict[str, Any]]:
    """Return fsspec's info dictionaries of everything below a path, by path; for a file, only its own; empty if the
    path does not exist.

    If a directory is deleted meanwhile, what was below it is left out. Any other error is raised: the result would be
    incomplete.

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
    """A range of a file's bytes; `start` and `end` are those of a Python slice."""

    path: str
    start: int | None
    end: int | None


def read_slice(reader: FileReader, start: int | None, end: int | None) -> bytes:
    """Read the bytes from `start` to `end` of a file, which have the meaning of a Python slice."""
    first, last, _ = slice(start, end).indices(reader.size)
    return reader.read(first, max(last - first, 0))


def read_ranges(
    open_file: Callable[[str], FileReader], ranges: list[FileRange], runner: Runner, *, keep_errors: bool
) -> list[Any]:
    """Read ranges of files; return the bytes of each range. All ranges of one file are from the same version of it.

    Args:
        keep_errors: whether an error takes the place of the bytes that it concerns, instead of being raised.
    """

    def result_or_error(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except HoldfastError as error:
            if not keep_errors:
                raise
            return error

    def read_one_range(one: FileRange) -> Any:
        reader = readers[one.path]
        return (
            result_or_error(lambda: read_slice(reader, one.start, one.end))
            if isinstance(reader, FileReader)
            else reader
        )

    if len(ranges) < 2:
        runner = SerialRunner()
    paths = list(dict.fromkeys(one.path for one in ranges))
    readers = dict(zip(paths, runner.map(lambda path: result_or_error(lambda: open_file(path)), paths), strict=True))
    return list(runner.map(read_one_range, ranges))


@dataclass(frozen=True, slots=True)
class RequestedMove:
    """A rename that fsspec's `mv` asks for.

    Attributes:
        into: whether the source moves into the target if that is a directory.
    """

    source: str
    target: str
    into: bool


def parse_moves(path1: Any, path2: Any) -> Iterator[RequestedMove]:
    """Yield the renames that the arguments of fsspec's `mv` ask for: paths, or lists of paths.

    Raises:
        InvalidRequestError: there are two lists, of different length.
    """
    if isinstance(path1, list) and isinstance(path2, list):
        if len(path1) != len(path2):
            raise InvalidRequestError(
                "there must be as many targets as sources: check the lists", sources=len(path1), targets=len(path2)
            )
        yield from (RequestedMove(source, target, False) for source, target in zip(path1, path2, strict=True))
        return
    target = os.fspath(path2)
    if not isinstance(path1, list):
        source = os.fspath(path1)
        if source.endswith("/") or not target.endswith("/"):
            yield RequestedMove(source, target, not source.endswith("/"))
            return
    directory = target.rstrip("/")
    for source in path1 if isinstance(path1, list) else [os.fspath(path1)]:
        yield RequestedMove(source, f"{directory}/{source.rstrip('/').rpartition('/')[2]}", False)
