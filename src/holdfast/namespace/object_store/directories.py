"""Make the directories that objects need, and remove them when they have become empty.

An object store has no directories, so those that it makes by the way must go by the way. Others must stay: somebody
made them, and may have given them quotas, permissions or attributes. The difference has to be known by every client, so
a directory that was made for an object carries a mark: an extended attribute, with the rights that the directory had.
It is removed only as long as nothing but that is known about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import ParentNotDirectoryError, PathExistsError, PathNotFoundError
from holdfast.namespace.inode import MADE_FOR_OBJECTS, Inode
from holdfast.namespace.keys import children_range
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import PathGroup, check_chain
from holdfast.namespace.operations.delete import Delete
from holdfast.namespace.operations.mkdirs import Mkdirs
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import WRITE
from holdfast.namespace.view import Chain, View
from holdfast.transactions.base import RangeCount

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class DirectoriesOnPath:
    """The directories on a path at some moment.

    Attributes:
        ids: of all, the root first.
        removable: ids of those that were made for objects, and were as they were made: the store removes them when they
            are empty, and makes them again.
        new: ids of those that the operation made that returns this.
    """

    ids: tuple[int, ...]
    removable: frozenset[int]
    new: frozenset[int]


def mark_directories(changes: Changes[R]) -> None:
    """Mark the directories that changes make."""
    for key, inode in changes.inserts.items():
        if inode.is_directory:
            changes.inserts[key] = replace(inode, xattrs={MADE_FOR_OBJECTS: _rights(inode)})


def _rights(inode: Inode) -> bytes:
    return f"{inode.mode:o} {inode.owner} {inode.group}".encode()


def _is_as_made(inode: Inode) -> bool:
    """Check whether a directory was made for an object, and nobody has changed it since."""
    return not inode.has_quota and inode.xattrs == {MADE_FOR_OBJECTS: _rights(inode)}


def may_go(inode: Inode, *, is_in_the_way: bool) -> bool:
    """Check whether a directory that contains no files may be removed.

    Args:
        is_in_the_way: see `RemoveEmptyDirectory`. Otherwise it must have been made for an object, and nobody may have
            changed it since.
    """
    if not inode.is_directory or inode.has_quota:
        return False
    return _is_as_made(inode) or (is_in_the_way and inode.xattrs.keys() <= {MADE_FOR_OBJECTS})


def directories_below(namespace: Namespace, path: NsPath) -> list[NsPath] | None:
    """Return everything below a path if nothing of it is a file, as it is at one moment; else None.

    Raises:
        PermissionDeniedError: the caller may not list one of the directories.
    """
    below: list[NsPath] = []
    try:
        for entry in namespace.walk(str(path)):
            if not entry.is_directory:
                return None
            below.append(NsPath(tuple(entry.path[1:].encode().split(b"/"))))  # deeper than a caller may name it
    except (PathNotFoundError, ParentNotDirectoryError):
        return []
    return below


def require_no_files(changes: Changes[R], chains: Sequence[Chain]) -> None:
    """Require that directories contain nothing but those of them that are in another one.

    Args:
        chains: of the directories. Those that are gone do not count, so their parents are seen to have changed.
    """
    there = [chain for chain in chains if chain.target is not None and chain.target.is_directory]
    inside = Counter(chain.keys[-2] for chain in there if chain.path.names)
    for chain in there:
        assert chain.target is not None
        span = children_range(chain.target.id)
        changes.ranges.append(RangeCount(chain.target_key, *span, inside[chain.target_key]))


@dataclass(frozen=True, slots=True)
class MakeDirectory(PathGroup):
    """Make a directory for objects, if it is missing; returns the directories on the path, itself included.

    Group: that of `Mkdirs`.

    Attributes:
        stays: whether it is wanted for itself: it is not removed when it becomes empty, also if it exists already.
    """

    path: NsPath
    stays: bool = False

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def execute(self, view: View, context: Context) -> Changes[DirectoriesOnPath]:
        """See `Operation`.

        Raises:
            ParentNotDirectoryError: a file has the path, or is above it.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        try:
            made = Mkdirs(path=self.path).execute(view, context)
        except PathExistsError as error:
            raise ParentNotDirectoryError(
                "a component of the key is a file: choose another key", key=str(self.path)[1:]
            ) from error
        mark_directories(made)
        there = (*chain.inodes, *made.inserts.values())
        changes = Changes(
            DirectoriesOnPath(
                ids=tuple(one.id for one in there),
                removable=frozenset(one.id for one in there if _is_as_made(one)),
                new=frozenset(one.id for one in made.inserts.values()),
            ),
            inserts=made.inserts,
            adds=made.adds,
            bounds=made.bounds,
            touched=made.touched,
        )
        if self.stays and chain.target is None:
            key, new = next(reversed(changes.inserts.items()))
            changes.inserts[key] = replace(new, xattrs={})
        elif self.stays and chain.target is not None and chain.target.is_made_for_objects:
            context.caller.check(chain, len(self.path.names) - 1, WRITE)
            others = {name: value for name, value in chain.target.xattrs.items() if name != MADE_FOR_OBJECTS}
            changes.puts[chain.target_key] = replace(chain.target, xattrs=others)
        return changes


@dataclass(frozen=True, slots=True)
class RemoveEmptyDirectory(PathGroup):
    """Remove a directory that has become empty; returns whether it is gone.

    It stays if it has entries, a quota or extended attributes, or if it was not made for an object.

    Group: that of `Delete`.

    Attributes:
        is_in_the_way: whether the caller wants the directory to go: then it goes too if somebody made it otherwise, but
            not with a quota or extended attributes.
        only_id: the id of the directory: another one at the path stays. 0 for any.
    """

    path: NsPath
    is_in_the_way: bool = False
    only_id: int = 0

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return the entries of a directory that may go."""
        target = chains[0].target
        return children_range(target.id) if target is not None and self._may_go(target) else None

    def _may_go(self, inode: Inode) -> bool:
        return self.only_id in (0, inode.id) and may_go(inode, is_in_the_way=self.is_in_the_way)

    def execute(self, view: View, context: Context) -> Changes[bool]:
        """See `Operation`.

        Raises:
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        if chain.target is None:
            check_chain(chain, context)
            return Changes(True)
        if not self._may_go(chain.target) or view.has_children:
            return Changes(False)
        return Delete(path=self.path).execute(view, context)
