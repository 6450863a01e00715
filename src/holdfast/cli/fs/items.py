"""Find what the URLs on a command line name: one path, or everything that matches a pattern."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.cli.fs.descent import entries
from holdfast.cli.patterns import compile_word, is_pattern
from holdfast.cli.session import Session
from holdfast.errors import InvalidRequestError
from holdfast.namespace import FileStatus, Namespace, split_url
from holdfast.namespace.errors import PathNotFoundError
from holdfast.namespace.paths import NsPath


@dataclass(frozen=True, slots=True)
class Spot:
    """A path in a namespace, which need not exist.

    Attributes:
        base: the URL of the namespace, ``holdfast://name``.
        path: checked, without a slash at its end.
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

    def find(self) -> FileStatus | None:
        """Describe what has the path; None if nothing has."""
        return self.namespace.find(self.path)


@dataclass(frozen=True, slots=True)
class Item:
    """A file or a directory that exists.

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

    def at(self, status: FileStatus) -> Item:
        """Return another file or directory of the same namespace."""
        return Item(self.namespace, self.base, status)


def is_namespace_url(text: str) -> bool:
    """Check whether a string means a path in a namespace, and not in another store."""
    return text.lower().startswith("holdfast://")


def find_spot(session: Session, url: str) -> Spot:
    """Return the path that a URL names literally. Slashes that follow each other count as one.

    Raises:
        InvalidRequestError: it is no URL of a namespace.
        HoldfastError: the namespace cannot be opened; see `Session.open`.
    """
    name, path = _split(url)
    checked = NsPath.parse(path)
    return Spot(session.open(name), f"holdfast://{name}", str(checked), path.endswith("/"))


def find_items(session: Session, urls: Sequence[str], *, glob: bool) -> list[Item]:
    """Return what the URLs name, in their order; the matches of a pattern are sorted. Nothing occurs twice.

    What a URL means never depends on what exists, so that a command that is repeated cannot reach anything else.

    Args:
        glob: whether each URL is a pattern with ``*``, ``?``, ``[a-c]``, ``[!a]``, ``{a,b}`` and, for any number of
            directories, ``**``; if not, every character is literal. A slash at the end means directories only.

    Raises:
        PathNotFoundError: nothing has a URL, or matches a pattern.
        InvalidRequestError, HoldfastError: see `find_spot`.
    """
    found: dict[str, Item] = {}
    for url in urls:
        for item in _find(session, url, glob):
            found.setdefault(item.url, item)
    return list(found.values())


def _split(url: str) -> tuple[str, str]:
    name, path = split_url(url)
    return name, re.sub("//+", "/", path)


def _find(session: Session, url: str, glob: bool) -> list[Item]:
    name, path = _split(url)
    namespace, base = session.open(name), f"holdfast://{name}"
    if glob:
        matches = {one.path: one for pattern in _without_slashes_in_braces(path) for one in _match(namespace, pattern)}
        if not matches:
            raise PathNotFoundError("nothing matches the pattern: check it", url=url)
        return [Item(namespace, base, matches[path]) for path in sorted(matches, key=str.encode)]
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
    return [Item(namespace, base, status)]


# --- patterns ---------------------------------------------------------------------------------------------------------
def _without_slashes_in_braces(pattern: str) -> list[str]:
    """Expand braces that contain a slash, as in ``{2023/12,2024/01}``: each alternative is a pattern of its own."""
    waiting, expanded = [pattern], []
    while waiting:
        one = waiting.pop()
        group = _group_with_slash(one)
        if group is None:
            expanded.append(one)
        else:
            bounds = list(itertools.pairwise(group))
            waiting += [one[: group[0]] + one[start + 1 : end] + one[group[-1] + 1 :] for start, end in bounds]
        if len(expanded) + len(waiting) > _MOST_PATTERNS:
            raise InvalidRequestError(f"the braces stand for more than {_MOST_PATTERNS} patterns: use fewer")
    return expanded


_MOST_PATTERNS = 1000


def _group_with_slash(pattern: str) -> list[int] | None:
    """Return where the first such braces begin, where their commas are, and where they end."""
    groups: list[list[int]] = []
    outermost: list[list[int]] = []
    for found in re.finditer(r"\\.|[{},]", pattern, re.DOTALL):
        if found[0] == "{":
            groups.append([found.start()])
        elif found[0] == "," and groups:
            groups[-1].append(found.start())
        elif found[0] == "}" and groups:
            groups[-1].append(found.start())
            if len(groups) == 1:
                outermost.append(groups[0])
            groups.pop()
    return next((group for group in outermost if "/" in pattern[group[0] : group[-1]]), None)


def _match(namespace: Namespace, pattern: str) -> Iterator[FileStatus]:
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
            waiting += _step(namespace, parent, words)


def _step(
    namespace: Namespace, parent: FileStatus, words: tuple[str, ...]
) -> Iterator[tuple[FileStatus, tuple[str, ...]]]:
    """Yield what the first word matches in a directory, each with the words that are left for it."""
    word, rest = words[0], words[1:]
    if word == "**":
        if rest:
            yield parent, rest
        for child in entries(namespace, parent.path):
            if child.is_directory:
                yield child, words
            if not rest:
                yield child, ()
    elif is_pattern(word):
        expression = compile_word(word)
        for child in entries(namespace, parent.path):
            if expression.fullmatch(child.name):
                yield child, rest
    else:
        name = re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL)
        found = namespace.find(f"{parent.path.rstrip('/')}/{name}")
        if found is not None:
            yield found, rest
