"""Represent a namespace as a table of paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, cast

from holdfast.namespace.inode import DIRECTORY_MODE, FILE_MODE
from holdfast.namespace.permissions import EXECUTE, STICKY, WRITE

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A directory or a file.

    Attributes:
        content: of a file; None for a directory.
        writer: who has the file's lease.
        quota: of a directory: the most names in it, itself included; 0 for no limit.
        mode: the permission bits; None for those of a new file or directory.
    """

    content: str | None = None
    writer: str = ""
    quota: int = 0
    owner: str = ""
    mode: int | None = None

    @property
    def is_directory(self) -> bool:
        return self.content is None

    @property
    def bits(self) -> int:
        if self.mode is not None:
            return self.mode
        return DIRECTORY_MODE if self.is_directory else FILE_MODE


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of a namespace.

    Attributes:
        nodes: by path, sorted; the root is the empty path.
        silent: writers that have not been heard of since much time has passed.
        uploads: the paths of uploads that are not completed, by name, sorted.
        users: the actors that are ordinary users; all others are the superuser.
        mistaken: writers and uploads that lack something that they have published: a crash has undone it.
    """

    nodes: tuple[tuple[Path, Node], ...]
    silent: frozenset[str] = frozenset()
    uploads: tuple[tuple[str, Path], ...] = ()
    users: frozenset[str] = frozenset()
    mistaken: frozenset[str] = frozenset()


class RefusedError(Exception):
    """The operation is impossible; the message is the name of the class of the error."""


class State:
    """A tree that is being changed.

    Attributes:
        user: who changes it; empty for the superuser.
    """

    def __init__(self, tree: Tree, who: str) -> None:
        self.user = who if who in tree.users else ""
        self._users = tree.users
        self.nodes = dict(tree.nodes)
        self.silent = tree.silent
        self.mistaken = tree.mistaken
        self.uploads = dict(tree.uploads)

    def tree(self) -> Tree:
        nodes = tuple(sorted(self.nodes.items(), key=lambda one: one[0]))
        return Tree(nodes, self.silent, tuple(sorted(self.uploads.items())), self._users, self.mistaken)

    def find(self, path: Path) -> Node | None:
        """Return the node at a path.

        Raises:
            RefusedError: a file is above it, or the user may not search a directory above it.
        """
        for depth in range(len(path)):
            above = self.nodes.get(path[:depth])
            if above is None:
                return None
            if not above.is_directory:
                raise RefusedError("ParentNotDirectoryError")
            self.check(path[:depth], EXECUTE)
        return self.nodes.get(path)

    def check(self, path: Path, access: int) -> None:
        """Refuse a user who lacks permission bits on what has a path."""
        node = self.nodes.get(path)
        if self.user and node is not None:
            bits = node.bits >> 6 if node.owner == self.user else node.bits
            if bits & access != access:
                raise RefusedError("PermissionDeniedError")

    def check_removal(self, path: Path) -> None:
        """Refuse a user who may not remove a path from its directory."""
        parent, node = self.nodes.get(path[:-1]), self.nodes.get(path)
        self.check(path[:-1], WRITE)
        if self.user and parent is not None and node is not None and parent.bits & STICKY:
            if self.user not in (parent.owner, node.owner):
                raise RefusedError("PermissionDeniedError")

    def deepest(self, path: Path) -> Path:
        """Return the deepest existing directory above a path."""
        return max((path[:depth] for depth in range(len(path)) if path[:depth] in self.nodes), key=len, default=())

    def children(self, path: Path) -> list[Path]:
        return [one for one in sorted(self.nodes) if len(one) == len(path) + 1 and one[: len(path)] == path]

    def below(self, path: Path) -> list[Path]:
        """Return a path and all below it."""
        return [one for one in sorted(self.nodes) if one[: len(path)] == path]

    def make_parents(self, path: Path) -> None:
        """Make the missing directories above a path, if the user may create entries in the deepest existing one."""
        self.check(self.deepest(path), WRITE | EXECUTE)
        for depth in range(1, len(path)):
            self.nodes.setdefault(path[:depth], Node(owner=self.user))

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
            RefusedError: it has none, or the file lacks something that it has published.
        """
        for path, node in self.nodes.items():
            if node.writer == writer and writer not in self.mistaken:
                return path
        raise RefusedError("LeaseLostError")


def split(path: object) -> Path:
    """Return the names on a path."""
    return tuple(one for one in cast("str", path).split("/") if one)
