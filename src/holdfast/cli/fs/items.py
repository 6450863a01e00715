"""Find what the URLs on a command line name, walk through it, say what is known of it, and collect its problems."""

from __future__ import annotations

import contextlib
import fnmatch
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click

from holdfast.cli.command import CommandRun
from holdfast.cli.failures import PROBLEM, exit_code
from holdfast.cli.output import Output, ResultColumn, size_text, time_text
from holdfast.errors import (
    AccessDeniedError,
    FencedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.namespace import FileStatus, Namespace, split_url
from holdfast.namespace.errors import (
    DirectoryFrozenError,
    ParentNotDirectoryError,
    PathNotFoundError,
    PermissionDeniedError,
    UncountedTreeError,
)
from holdfast.namespace.paths import NsPath
from holdfast.wording import format_count

THREADS = 8
"""How many files are copied or changed at the same time."""


@dataclass(frozen=True, slots=True)
class NamespacePath:
    """A path in a namespace, where a file or directory may or may not exist.

    Attributes:
        base: the URL of the namespace, ``holdfast://name``.
        path: the path, validated and without a slash at its end.
        in_directory: whether the URL ended in a slash, so that it means a directory.
    """

    namespace: Namespace
    base: str
    path: str
    in_directory: bool = False

    @property
    def url(self) -> str:
        """The URL of the path."""
        return self.base + self.path


@dataclass(frozen=True, slots=True)
class NamespaceItem:
    """An existing file or directory of a namespace.

    Attributes:
        base: the URL of the namespace, ``holdfast://name``.
    """

    namespace: Namespace
    base: str
    status: FileStatus

    @property
    def url(self) -> str:
        """The URL of the file or directory."""
        return self.base + self.status.path

    def at(self, status: FileStatus) -> NamespaceItem:
        """Return the `NamespaceItem` of another file or directory of the same namespace, given its status."""
        return NamespaceItem(self.namespace, self.base, status)


def is_namespace_url(text: str) -> bool:
    """Check whether a string means a path in a namespace, and not in another store."""
    return text.lower().startswith("holdfast://")


def parse_namespace_path(run: CommandRun, url: str) -> NamespacePath:
    """Parse a URL into a path in a namespace, without interpreting patterns; repeated slashes count as one.

    Raises:
        InvalidRequestError: it is no URL of a namespace.
        HoldfastError: the namespace cannot be opened; see `Run.namespace`.
    """
    name, path = _split_namespace_url(url)
    checked = NsPath.parse(path)
    return NamespacePath(run.namespace(name), f"holdfast://{name}", str(checked), path.endswith("/"))


def find_items(run: CommandRun, urls: Sequence[str], *, glob: bool) -> list[NamespaceItem]:
    """Return the existing files and directories that URLs or patterns name, without duplicates.

    They are in the order of the URLs; the matches of a pattern are sorted. Whether a URL is a pattern never depends on
    what exists.

    Args:
        glob: whether each URL is a pattern with ``*``, ``?``, ``[a-c]``, ``[!a]``, ``{a,b}`` and, for any number of
            directories, ``**``; if not, every character is literal. A slash at the end means directories only.

    Raises:
        PathNotFoundError: a URL does not exist, or nothing matches a pattern.
        InvalidRequestError, HoldfastError: see `parse_namespace_path`.
    """
    found: dict[str, NamespaceItem] = {}
    for url in urls:
        for item in _find_matching_items(run, url, glob):
            found.setdefault(item.url, item)
    return list(found.values())


def _split_namespace_url(url: str) -> tuple[str, str]:
    name, path = split_url(url)
    return name, re.sub("//+", "/", path)


def _find_matching_items(run: CommandRun, url: str, glob: bool) -> list[NamespaceItem]:
    name, path = _split_namespace_url(url)
    namespace, base = run.namespace(name), f"holdfast://{name}"
    if glob:
        matches = {one.path: one for one in _match_pattern(namespace, path)}
        if not matches:
            raise PathNotFoundError("nothing matches the pattern: check it", url=url)
        return [NamespaceItem(namespace, base, matches[path]) for path in sorted(matches, key=str.encode)]
    try:
        status = namespace.status(path)
    except PathNotFoundError as error:
        if is_pattern(path):
            raise PathNotFoundError(
                "nothing has this name: check it, or add --glob if it is a pattern", url=url
            ) from error
        raise
    if path.endswith("/") and not status.is_directory:
        raise InvalidRequestError("the url ends in a slash, and is a file: remove the slash", url=url)
    return [NamespaceItem(namespace, base, status)]


# --- patterns ---------------------------------------------------------------------------------------------------------
_MOST_WORDS = 1000
_SPECIAL = re.compile(r"[*?\[{]")


def is_pattern(text: str) -> bool:
    """Check whether a name or a path contains a character that makes it a pattern."""
    return _SPECIAL.search(text) is not None


def compile_segment(word: str) -> re.Pattern[str]:
    """Compile one path segment of a pattern to a regular expression that matches whole names.

    It may have ``*``, ``?``, ``[a-c]``, ``[!a]`` and ``{a,b}``. A backslash makes the next character literal.

    Raises:
        InvalidRequestError: the pattern is invalid; the message says why.
    """
    words = [re.sub(r"\\(.)", _escape_literal, one, flags=re.DOTALL) for one in _expand_braces(word)]
    try:
        return re.compile("|".join(map(fnmatch.translate, words)))
    except re.error as error:
        raise InvalidRequestError("a range in the pattern is invalid: write it like [a-z]", name=word) from error


def _escape_literal(found: re.Match[str]) -> str:
    return f"[{found[1]}]" if found[1] in "*?[" else found[1]


def _expand_braces(word: str) -> list[str]:
    """Return a word for each choice in braces."""
    waiting, found = [word], []
    while waiting:
        one = waiting.pop()
        braces = re.search(r"(?<!\\)\{((?:\\.|[^\\{}])*)\}", one)
        if braces is not None:
            start, end = one[: braces.start()], one[braces.end() :]
            waiting += [start + choice + end for choice in re.split(r"(?<!\\),", braces[1])]
        elif re.search(r"(?<!\\)\{", one):
            raise InvalidRequestError(
                "a { in the pattern is not closed before the next slash: write {a,b}, several urls, or \\{ for a "
                "literal {",
                name=word,
            )
        else:
            found.append(one)
        if len(waiting) + len(found) > _MOST_WORDS:
            raise InvalidRequestError(f"the braces mean more than {_MOST_WORDS:,} words: give several urls", name=word)
    return found


def _match_pattern(namespace: Namespace, pattern: str) -> Iterator[FileStatus]:
    """Yield what matches a pattern, only directories if it ends in a slash; perhaps more than once, in any order."""
    words = tuple(word for word in pattern.split("/") if word)
    waiting = [(namespace.status("/"), words)]
    seen = set()
    while waiting:
        parent, words = waiting.pop()
        if not words:
            if parent.is_directory or not pattern.endswith("/"):
                yield parent
        elif parent.is_directory and (parent.path, len(words)) not in seen:
            seen.add((parent.path, len(words)))
            waiting += _match_segment(namespace, parent, words)


def _match_segment(
    namespace: Namespace, parent: FileStatus, words: tuple[str, ...]
) -> Iterator[tuple[FileStatus, tuple[str, ...]]]:
    """Yield what the first word matches in a directory, each with the words that are left for it."""
    word, rest = words[0], words[1:]
    if word == "**":
        if rest:
            yield parent, rest
        for child in list_directory(namespace, parent.path):
            if child.is_directory:
                yield child, words
            if not rest:
                yield child, ()
    elif is_pattern(word):
        expression = compile_segment(word)
        for child in list_directory(namespace, parent.path):
            if expression.fullmatch(child.name):
                yield child, rest
    else:
        name = re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL)
        found = namespace.find(f"{parent.path.rstrip('/')}/{name}")
        if found is not None:
            yield found, rest


# --- everything below a directory -------------------------------------------------------------------------------------
def list_directory(namespace: Namespace, directory: str) -> Iterator[FileStatus]:
    """Yield the entries of a directory, sorted by name; none if it was removed or replaced by a file."""
    try:
        for entry in namespace.list(directory):
            if entry.path != directory:
                yield entry
    except (PathNotFoundError, ParentNotDirectoryError):
        return


def walk_tree(
    namespace: Namespace,
    directory: str,
    *,
    max_depth: int | None = None,
    failed: Callable[[str, HoldfastError], None] | None = None,
) -> Iterator[tuple[int, FileStatus]]:
    """Yield (depth, status) of every file and directory below a directory, each directory just before its entries.

    The depth starts at 1. A directory is listed after it was yielded, so the caller may change it first. At any moment,
    memory holds a page of entries for each level.

    Args:
        max_depth: the depth at which directories are not opened anymore; None for no limit.
        failed: called with the path of a directory that cannot be listed, and the error; the walk goes on. None raises
            the error.
    """
    levels = [(directory, list_directory(namespace, directory))]
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
            levels.append((entry.path, list_directory(namespace, entry.path)))


# --- what is known of files and directories ---------------------------------------------------------------------------
ITEM = (
    ResultColumn("url", None, lambda item: item.url),
    ResultColumn("path", None, lambda item: item.status.path),
    ResultColumn("type", None, lambda item: "directory" if item.status.is_directory else "file"),
    ResultColumn("size", None, lambda item: item.status.size),
    ResultColumn("mode", None, lambda item: f"{item.status.mode:04o}"),
    ResultColumn("permissions", None, lambda item: item.status.permissions),
    ResultColumn("owner", None, lambda item: item.status.owner),
    ResultColumn("group", None, lambda item: item.status.group),
    ResultColumn("modified", None, lambda item: time_text(item.status.mtime_ms / 1000)),
    ResultColumn("modified_ms", None, lambda item: item.status.mtime_ms),
    ResultColumn("accessed_ms", None, lambda item: item.status.atime_ms),
    ResultColumn("replication", None, lambda item: item.status.replication),
    ResultColumn("block_size", None, lambda item: item.status.block_size),
    ResultColumn("id", None, lambda item: item.status.id),
    ResultColumn("being_written", None, lambda item: item.status.is_open),
)
"""All that is known about a file or a directory, for programs."""


def display_names(items: Sequence[NamespaceItem]) -> dict[str, str]:
    """Map the URL of each item to its name in a table: its path, or its URL if there are several namespaces."""
    is_one = len({item.base for item in items}) < 2
    return {item.url: item.status.path if is_one else item.url for item in items}


def size_formatter(*, human: bool) -> Callable[[int | None], str]:
    """Return a function that formats a number of bytes, exact or (`human`) in a unit, and None as ``-``."""
    return lambda number: "-" if number is None else size_text(number) if human else str(number)


# --- problems ---------------------------------------------------------------------------------------------------------
_MOST_SHOWN = 20
_ABOUT_ONE_PATH = (PathNotFoundError, PermissionDeniedError, DirectoryFrozenError, UncountedTreeError)
_ABOUT_EVERYTHING = (
    AccessDeniedError,
    FencedError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)


class PathErrors:
    """Collects and reports errors about single paths, so that a command goes on with the other paths.

    Args:
        lines: whether the command prints lines of JSON, so that each error is such a line.

    Attributes:
        documents: the errors as JSON objects, for the command's document; empty if `lines` is set.
    """

    def __init__(self, out: Output, *, lines: bool = False) -> None:
        self._out = out
        self._lines = lines
        self._errors: list[HoldfastError] = []
        self.documents: list[dict[str, object]] = []

    def add(self, where: str, error: HoldfastError) -> None:
        """Report an error about the path or URL `where` on stderr and, with ``--json``, as a JSON object.

        Raises:
            HoldfastError: the error itself, if it would affect the other paths as well.
        """
        if isinstance(error, _ABOUT_EVERYTHING) and not isinstance(error, _ABOUT_ONE_PATH):
            raise error
        self._errors.append(error)
        document: dict[str, object] = {"url": where, "error": str(error), "kind": type(error).__name__}
        if self._lines:
            self._out.line(document)
        elif self._out.json:
            self.documents.append(document)
        if self._out.debug:
            traceback.print_exception(error)
        if len(self._errors) <= _MOST_SHOWN:
            self._out.note(f"error: {error}")

    def make_collector(self, base: str) -> Callable[[str, HoldfastError], None]:
        """Return a function that takes a path below the URL `base` and an error, and reports them; see `add`."""
        return lambda path, error: self.add(base + path, error)

    @contextlib.contextmanager
    def collect_errors(self, where: str) -> Iterator[None]:
        """Catch a `HoldfastError` of the block, and report it as an error about the path `where`; see `add`."""
        try:
            yield
        except HoldfastError as error:
            self.add(where, error)

    def items(self, run: CommandRun, urls: Sequence[str], *, glob: bool) -> Iterator[NamespaceItem]:
        """Yield the files and directories that URLs name, and report URLs that name nothing; see `find_items`."""
        for url in urls:
            found: list[NamespaceItem] = []
            with self.collect_errors(url):
                found = find_items(run, [url], glob=glob)
            yield from found

    def end(self, succeeded: int) -> None:
        """End the command with a non-zero exit code if errors were reported.

        Args:
            succeeded: number of paths without an error; if it is 0, the first error's exit code is used.

        Raises:
            Exit: errors were reported.
        """
        if not self._errors:
            return
        if len(self._errors) > _MOST_SHOWN:
            self._out.note(f"error: and {format_count(len(self._errors) - _MOST_SHOWN, 'more error')} like these")
        raise click.exceptions.Exit(PROBLEM if succeeded else exit_code(self._errors[0]) or PROBLEM)
