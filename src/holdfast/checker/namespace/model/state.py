"""Represent a namespace as a table of paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, cast

__all__ = ["Node", "Path", "RefusedError", "State", "Tree", "split"]

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A directory or a file.

    Attributes:
        content: of a file; None for a directory.
        writer: who has the file's lease.
        quota: of a directory: the most names in it, itself included; 0 for no limit.
    """

    content: str | None = None
    writer: str = ""
    quota: int = 0

    @property
    def is_directory(self) -> bool:
        return self.content is None


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of a namespace.

    Attributes:
        nodes: by path, sorted; the root is the empty path.
        silent: writers that have not been heard of since much time has passed.
        uploads: the paths of uploads that are not completed, by name, sorted.
    """

    nodes: tuple[tuple[Path, Node], ...]
    silent: frozenset[str] = frozenset()
    uploads: tuple[tuple[str, Path], ...] = ()


class RefusedError(Exception):
    """The operation is impossible; the message is the name of the class of the error."""


class State:
    """A tree that is being changed."""

    def __init__(self, tree: Tree) -> None:
        self.nodes = dict(tree.nodes)
        self.silent = tree.silent
        self.uploads = dict(tree.uploads)

    def tree(self) -> Tree:
        return Tree(tuple(sorted(self.nodes.items())), self.silent, tuple(sorted(self.uploads.items())))

    def find(self, path: Path) -> Node | None:
        """Return the node at a path.

        Raises:
            RefusedError: a file is above it.
        """
        for depth in range(len(path)):
            above = self.nodes.get(path[:depth])
            if above is None:
                return None
            if not above.is_directory:
                raise RefusedError("ParentNotDirectoryError")
        return self.nodes.get(path)

    def children(self, path: Path) -> list[Path]:
        return [one for one in sorted(self.nodes) if len(one) == len(path) + 1 and one[: len(path)] == path]

    def below(self, path: Path) -> list[Path]:
        """Return a path and all below it."""
        return [one for one in sorted(self.nodes) if one[: len(path)] == path]

    def make_parents(self, path: Path) -> None:
        for depth in range(1, len(path)):
            self.nodes.setdefault(path[:depth], Node())

    def check_quotas(self, before: dict[Path, Node]) -> None:
        """Refuse what has made a directory larger than its quota allows."""
        for path, node in self.nodes.items():
            if node.quota and len(self.below(path)) > node.quota:
                was = len([one for one in before if one[: len(path)] == path])
                if len(self.below(path)) > was or path not in before:
                    raise RefusedError("NamesQuotaExceededError")

    def file(self, path: Path, directory: str = "PathIsDirectoryError") -> Node:
        """Return the file at a path.

        Raises:
            RefusedError: there is none.
        """
        found = self.find(path)
        if found is None:
            raise RefusedError("PathNotFoundError")
        if found.is_directory:
            raise RefusedError(directory)
        return found

    def refuse_writer(self, node: Node) -> None:
        if node.writer and node.writer not in self.silent:
            raise RefusedError("BeingWrittenError")

    def held_by(self, writer: str) -> Path:
        """Return the path of the file whose lease a writer has.

        Raises:
            RefusedError: it has none.
        """
        for path, node in self.nodes.items():
            if node.writer == writer:
                return path
        raise RefusedError("LeaseLostError")


def split(path: object) -> Path:
    """Return the names on a path."""
    return tuple(one for one in cast("str", path).split("/") if one)
