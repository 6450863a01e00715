"""A simple model of a namespace: a tree of objects, changed in place, one operation at a time.

It follows HDFS's rules as docs/reference/namespace.md has them, and knows nothing of records, versions or blobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.errors import InvalidRequestError
from holdfast.namespace.errors import (
    BeingWrittenError,
    DirectoryFrozenError,
    DirectoryInTheWayError,
    DirectoryNotEmptyError,
    LeaseLostError,
    NamesQuotaExceededError,
    ParentNotDirectoryError,
    PathExistsError,
    PathIsDirectoryError,
    PathNotFoundError,
    QuotaExceededError,
    RenameError,
    SpaceQuotaExceededError,
)
from holdfast.namespace.other_records import HARD_LIMIT_MS, SOFT_LIMIT_MS

__all__ = ["FROZEN_MS", "Directory", "File", "Model", "ModelWriter", "Node", "RefusedError", "split"]

FROZEN_MS = 600_000
_RENEWAL_MS = SOFT_LIMIT_MS // 2


class RefusedError(Exception):
    """The model refuses an operation; `kind` is the class of the error that the namespace must raise."""

    def __init__(self, kind: type[Exception]) -> None:
        super().__init__(kind.__name__)
        self.kind = kind


@dataclass(eq=False)
class ModelWriter:
    """A client that writes a file under a lease.

    Attributes:
        path: where the client last found the file.
        unpublished: what was written and not published.
        renewed_ms: when the client last looked after its lease.
    """

    path: str
    file: File
    renewed_ms: int
    unpublished: bytes = b""


@dataclass(eq=False)
class File:
    """A file."""

    content: bytes = b""
    replication: int = 1
    writer: ModelWriter | None = None
    heard_ms: int = 0

    @property
    def space(self) -> int:
        return len(self.content) * self.replication


@dataclass(eq=False)
class Directory:
    """A directory.

    Attributes:
        pending: names and space of deleted trees that are still counted, until they are collected or needed.
        frozen_until_ms: while a dead client's mark freezes the tree.
    """

    children: dict[str, Node] = field(default_factory=dict)
    names_quota: int | None = None
    space_quota: int | None = None
    pending: tuple[int, int] = (0, 0)
    frozen_until_ms: int = 0

    @property
    def has_quota(self) -> bool:
        return self.names_quota is not None or self.space_quota is not None


Node = Directory | File


def split(path: str) -> list[str]:
    """Return the names in a path."""
    return [name for name in path.split("/") if name]


def _usage(node: Node) -> tuple[int, int]:
    """Return names and space of a tree."""
    if isinstance(node, File):
        return 1, node.space
    below = [_usage(child) for child in node.children.values()]
    return 1 + sum(names for names, _ in below), sum(space for _, space in below)


class Model:
    """The namespace, as one caller with all permissions sees it."""

    def __init__(self, now_ms: int) -> None:
        self.root = Directory()
        self.now_ms = now_ms

    # --- looking ------------------------------------------------------------------------------------------------------
    def chain(self, path: str) -> list[Node]:
        """Return the existing nodes on a path, the root first."""
        found: list[Node] = [self.root]
        for name in split(path):
            last = found[-1]
            if isinstance(last, File) or name not in last.children:
                break
            found.append(last.children[name])
        return found

    def find(self, path: str) -> Node | None:
        """Return what has a path."""
        chain = self.chain(path)
        return chain[-1] if len(chain) > len(split(path)) else None

    def walk(self, node: Node | None = None, path: str = "") -> Iterator[tuple[str, Node]]:
        """Yield everything below a node, with its path."""
        node = node or self.root
        if isinstance(node, Directory):
            for name, child in node.children.items():
                yield f"{path}/{name}", child
                yield from self.walk(child, f"{path}/{name}")

    def used(self, directory: Directory) -> tuple[int, int]:
        """Return what a quota counts: the tree, and deleted trees that wait for their collection."""
        names, space = _usage(directory)
        return names + directory.pending[0], space + directory.pending[1]

    def _ancestors(self, path: str) -> list[Directory]:
        """Return the existing directories above a path."""
        return [node for node in self.chain(path)[: len(split(path))] if isinstance(node, Directory)]

    # --- checks, in the order of the operations -----------------------------------------------------------------------
    def _check(self, path: str) -> Node | None:
        chain = self.chain(path)
        if any(isinstance(node, File) for node in chain[: len(split(path))]):
            raise RefusedError(ParentNotDirectoryError)
        if any(isinstance(node, Directory) and node.frozen_until_ms > self.now_ms for node in chain):
            raise RefusedError(DirectoryFrozenError)
        return self.find(path)

    def _existing(self, path: str) -> Node:
        node = self._check(path)
        if node is None:
            raise RefusedError(PathNotFoundError)
        return node

    def _file(self, path: str) -> File:
        node = self._existing(path)
        if isinstance(node, Directory):
            raise RefusedError(PathIsDirectoryError)
        return node

    def _refuse_writer(self, file: File) -> None:
        if file.writer is not None and self.now_ms - file.heard_ms <= SOFT_LIMIT_MS:
            raise RefusedError(BeingWrittenError)

    def _charge(self, changes: list[tuple[Directory, int, int]]) -> None:
        """Refuse what exceeds a quota: changes of directories, of which one may occur twice.

        If it exceeds quotas of names and of space, the error may be that of either one.
        """
        sums: dict[int, tuple[Directory, int, int]] = {}
        for directory, names, space in changes:
            before = sums.get(id(directory), (directory, 0, 0))
            sums[id(directory)] = (directory, before[1] + names, before[2] + space)
        exceeded = set[type[Exception]]()
        for directory, names, space in sums.values():
            used = _usage(directory)
            for amount, now, limit, error in (
                (names, used[0], directory.names_quota, NamesQuotaExceededError),
                (space, used[1], directory.space_quota, SpaceQuotaExceededError),
            ):
                if amount > 0 and limit is not None and now + amount > limit:
                    exceeded.add(error)
        if exceeded:
            raise RefusedError(exceeded.pop() if len(exceeded) == 1 else QuotaExceededError)

    def _charge_path(self, path: str, names: int = 0, space: int = 0) -> None:
        self._charge([(directory, names, space) for directory in self._ancestors(path)])

    def _add(self, path: str, node: Node, *, parents: bool) -> None:
        """Add a new node, and directories above it."""
        names = split(path)
        made = len(names) - len(self.chain(path))
        if made and not parents:
            raise RefusedError(PathNotFoundError)
        counted = _usage(node)
        self._charge_path(path, made + counted[0], counted[1])
        at = self.root
        for name in names[:-1]:
            child = at.children.setdefault(name, Directory())
            assert isinstance(child, Directory)
            at = child
        at.children[names[-1]] = node

    # --- operations ---------------------------------------------------------------------------------------------------
    def mkdirs(self, path: str, *, parents: bool) -> bool:
        node = self._check(path)
        if isinstance(node, Directory) and parents:
            return False
        if node is not None:
            raise RefusedError(PathExistsError)
        self._add(path, Directory(), parents=parents)
        return True

    def write_file(self, path: str, content: bytes, *, overwrite: bool, replication: int) -> None:
        self._publish(path, File(content, replication), overwrite=overwrite)

    def create_with_lease(self, path: str, *, overwrite: bool) -> ModelWriter:
        file = File(heard_ms=self.now_ms)
        file.writer = ModelWriter(path, file, self.now_ms)
        self._publish(path, file, overwrite=overwrite)
        return file.writer

    def _publish(self, path: str, file: File, *, overwrite: bool) -> None:
        old = self._check(path)
        if isinstance(old, Directory):
            raise RefusedError(DirectoryInTheWayError)
        if old is None:
            self._add(path, file, parents=True)
            return
        if not overwrite:
            self._refuse_writer(old)
            raise RefusedError(PathExistsError)
        self._charge_path(path, 0, file.space - old.space)
        self._ancestors(path)[-1].children[split(path)[-1]] = file

    def append(self, path: str) -> ModelWriter:
        file = self._existing(path)
        if isinstance(file, Directory):
            raise RefusedError(DirectoryInTheWayError)
        self._refuse_writer(file)
        file.writer, file.heard_ms = ModelWriter(path, file, self.now_ms), self.now_ms
        return file.writer

    def write(self, writer: ModelWriter, data: bytes) -> None:
        if self.now_ms - writer.renewed_ms >= _RENEWAL_MS:
            if writer.file.writer is not writer:
                raise RefusedError(LeaseLostError)
            writer.renewed_ms = writer.file.heard_ms = self.now_ms
        writer.unpublished += data

    def publish(self, writer: ModelWriter, *, closes: bool) -> None:
        if writer.file.writer is not writer:
            raise RefusedError(LeaseLostError)
        present = [path for path, node in self.walk() if node is writer.file]
        if not present:
            raise RefusedError(LeaseLostError)
        (writer.path,) = present
        self._check(writer.path)
        self._charge_path(writer.path, 0, len(writer.unpublished) * writer.file.replication)
        writer.file.content += writer.unpublished
        writer.unpublished = b""
        writer.file.heard_ms = self.now_ms
        if closes:
            writer.file.writer = None

    def recover_lease(self, path: str) -> bool:
        self._file(path).writer = None
        return True

    def truncate(self, path: str, length: int) -> None:
        file = self._file(path)
        self._refuse_writer(file)
        if length > len(file.content):
            raise RefusedError(InvalidRequestError)
        file.content = file.content[:length]
        file.writer = None

    def concat(self, target: str, sources: list[str]) -> None:
        if not sources:
            raise RefusedError(InvalidRequestError)
        file = self._file(target)
        self._refuse_writer(file)
        found = []
        for source in sources:
            one = self._file(source)
            self._refuse_writer(one)
            if split(source)[:-1] != split(target)[:-1] or one is file or not one.content:
                raise RefusedError(InvalidRequestError)
            found.append(one)
        if len(set(sources)) < len(sources):
            raise RefusedError(InvalidRequestError)
        more = b"".join(one.content for one in found)
        self._charge_path(target, -len(found), len(more) * file.replication - sum(one.space for one in found))
        file.content += more
        file.writer = None
        for source, one in zip(sources, found, strict=True):
            one.writer = None
            del self._ancestors(source)[-1].children[split(source)[-1]]

    def set_replication(self, path: str, replication: int) -> bool:
        node = self._check(path)
        if node is None or isinstance(node, Directory):
            return False
        self._charge_path(path, 0, len(node.content) * (replication - node.replication))
        node.replication = replication
        return True

    def set_quota(self, path: str, names: int | None, space: int | None) -> None:
        node = self._existing(path)
        if isinstance(node, File):
            raise RefusedError(ParentNotDirectoryError)
        if not node.has_quota:
            node.pending = (0, 0)
        node.names_quota, node.space_quota = names, space

    def rename(self, source: str, target: str, *, overwrite: bool) -> str:
        self._check(source)
        self._check(target)
        moved, replaced = self.find(source), self.find(target)
        if moved is None:
            raise RefusedError(PathNotFoundError)
        if not split(source):
            raise RefusedError(RenameError)
        if split(source) == split(target):
            raise RefusedError(PathExistsError)
        if split(target)[: len(split(source))] == split(source):
            raise RefusedError(RenameError)
        if not split(target):
            raise RefusedError(RenameError)
        if len(self.chain(target)) < len(split(target)):
            raise RefusedError(PathNotFoundError)
        if replaced is not None:
            if isinstance(moved, Directory) != isinstance(replaced, Directory):
                raise RefusedError(RenameError)
            if not overwrite:
                raise RefusedError(PathExistsError)
            if isinstance(replaced, Directory) and replaced.children:
                raise RefusedError(DirectoryNotEmptyError)
        before, after = self._ancestors(source), self._ancestors(target)
        names, space = _usage(moved)
        changes = [(one, -names, -space) for one in before if one not in after]
        changes += [(one, names, space) for one in after if one not in before]
        if isinstance(replaced, File):
            changes += [(one, -1, -replaced.space) for one in after]
        self._charge(changes)
        if replaced is not None:
            self._remove(target, replaced, is_detached=isinstance(replaced, Directory))
        del before[-1].children[split(source)[-1]]
        after[-1].children[split(target)[-1]] = moved
        if isinstance(moved, Directory):
            moved.frozen_until_ms = 0
        return target

    def rename_into(self, source: str, target: str) -> bool:
        if isinstance(self.find(target), Directory) and split(source):
            destination = f"{target.rstrip('/')}/{split(source)[-1]}"
        else:
            destination = target
        try:
            self.rename(source, destination, overwrite=False)
        except RefusedError as refused:
            if not issubclass(refused.kind, PathExistsError | PathNotFoundError | RenameError):
                raise
            if split(source) == split(destination) and self.find(source) is not None and split(source):
                return refused.kind is PathExistsError
            return False
        return True

    def delete(self, path: str, *, recursive: bool) -> bool:
        node = self._check(path)
        if isinstance(node, Directory) and node.children and not recursive:
            raise RefusedError(DirectoryNotEmptyError)
        if node is None or not split(path):
            return False
        self._remove(path, node, is_detached=recursive and isinstance(node, Directory))
        return True

    def _remove(self, path: str, node: Node, *, is_detached: bool) -> None:
        ancestors = self._ancestors(path)
        if is_detached:  # it counts until it is collected
            names, space = _usage(node)
            for one in ancestors:
                if one.has_quota:
                    one.pending = (one.pending[0] + names, one.pending[1] + space)
        elif isinstance(node, File):
            node.writer = None
        del ancestors[-1].children[split(path)[-1]]

    # --- background ---------------------------------------------------------------------------------------------------
    def collect(self) -> None:
        """Do all that a collector does."""
        for _, node in self.walk():
            if isinstance(node, File) and node.writer is not None and self.now_ms - node.heard_ms > HARD_LIMIT_MS:
                node.writer = None
            if isinstance(node, Directory):
                node.pending = (0, 0)
        self.root.pending = (0, 0)
