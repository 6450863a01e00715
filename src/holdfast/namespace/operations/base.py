"""Share what operations have in common: base classes, checks of paths, and changes that make directories or discard
files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from holdfast.namespace.errors import (
    DirectoryFrozenError,
    ParentNotDirectoryError,
    PathIsDirectoryError,
    PathNotFoundError,
)
from holdfast.namespace.inode import Extent, Inode, InodeKind
from holdfast.namespace.keys import (
    children_range,
    data_key,
    deleted_key,
    directory_record_keys,
    garbage_key,
    inode_key,
    lease_key,
)
from holdfast.namespace.operation import Changes, OperationContext, charge_quotas
from holdfast.namespace.other_records import DeletedTree, Trail, list_ancestor_directories
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, WRITE, Caller
from holdfast.namespace.view import ResolvedPath, View
from holdfast.transactions.base import RangeCount

R = TypeVar("R")


class PathsOnlyOperation:
    """Base class of operations that read nothing but the inodes on their paths."""

    __slots__ = ()

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return no further keys: nothing is read besides the inodes on the paths."""
        return ()

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        """Return None: no range of keys is read."""
        return None


class SinglePathOperation(PathsOnlyOperation):
    """Base class of operations on one path, their attribute `path`."""

    __slots__ = ()
    path: NsPath

    @property
    def paths(self) -> Sequence[NsPath]:
        """The paths that the operation reads: only `path`, unless a subclass has several."""
        return (self.path,)


@dataclass(frozen=True, slots=True)
class ReadInode(SinglePathOperation):
    """Read the inode at a path that must exist; it is the result.

    Reads the inodes on the path as one snapshot.
    """

    path: NsPath

    def execute(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Return the inode at the path as the result.

        Raises:
            PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        return Changes(get_reachable_target(view.chains[0], context.caller))


def get_reachable_target(chain: ResolvedPath, caller: Caller) -> Inode:
    """Return the inode at a path, if it exists and the caller may search all directories above it. A frozen tree is no
    obstacle.

    Raises:
        PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
    """
    caller.check_traversal(chain)
    return get_target(chain)


def check_reachable_and_not_frozen(chain: ResolvedPath, context: OperationContext, own_mark: str = "") -> None:
    """Check that the caller may search all directories above the target, and that no other client has frozen a tree on
    the path.

    Args:
        own_mark: the token of a freeze of the caller's own, which is no obstacle.

    Raises:
        ParentNotDirectoryError, PermissionDeniedError: see the message.
        DirectoryFrozenError: a tree on the path is being counted.
    """
    context.caller.check_traversal(chain)
    check_not_frozen(chain, context, own_mark)


def check_not_frozen(chain: ResolvedPath, context: OperationContext, own_mark: str = "") -> None:
    """Check that no other client has frozen a directory on the path, to count the tree below it.

    Args:
        own_mark: the token of a freeze of the caller's own, which is no obstacle.

    Raises:
        DirectoryFrozenError: a directory on the path is frozen. Repeat later.
    """
    for inode in chain.inodes:
        if inode.moving not in ("", own_mark) and inode.is_tree_frozen(context.now_ms):
            raise DirectoryFrozenError("a directory on the path is being counted: repeat later", path=str(chain.path))


def get_unfrozen_target(chain: ResolvedPath, context: OperationContext, own_mark: str = "") -> Inode:
    """Check a path as `check_reachable_and_not_frozen` does, and return the inode at it.

    Args:
        own_mark: see `check_reachable_and_not_frozen`.

    Raises:
        PathNotFoundError: the path does not exist.
        ParentNotDirectoryError, PermissionDeniedError, DirectoryFrozenError: see `check_reachable_and_not_frozen`.
    """
    check_reachable_and_not_frozen(chain, context, own_mark)
    return get_target(chain)


def get_target(chain: ResolvedPath) -> Inode:
    """Return the inode at a resolved path, without any check.

    Raises:
        PathNotFoundError: it does not exist.
    """
    if chain.target is None:
        raise PathNotFoundError("the path does not exist: check it", path=str(chain.path))
    return chain.target


def get_unfrozen_file(chain: ResolvedPath, context: OperationContext) -> Inode:
    """Check a path as `check_reachable_and_not_frozen` does, and return the inode of the file at it.

    Raises:
        PathNotFoundError: it does not exist.
        PathIsDirectoryError: it is a directory.
    """
    inode = get_unfrozen_target(chain, context)
    if inode.is_directory:
        raise PathIsDirectoryError("the path is a directory, and a file is needed: check it", path=str(chain.path))
    return inode


@dataclass(frozen=True, slots=True)
class _CreatedParents:
    """The parent of a new entry, the directories on its path, and how many were made."""

    inode: Inode
    trail: Trail
    made: int


def create_parent_directories(
    changes: Changes[R], chain: ResolvedPath, context: OperationContext, *, mode: int | None, allowed: bool = True
) -> _CreatedParents:
    """Add the missing directories above a path to the changes; return its parent, the directories down to it, and how
    many are new.

    Args:
        mode: of the new directories; None takes the mode of the deepest existing ancestor. Their owner may always write
            and search, as in HDFS.
        allowed: False refuses to make any.

    Raises:
        PathNotFoundError: a directory is missing, and `allowed` is False.
        ParentNotDirectoryError: an ancestor is a file.
    """
    depth = min(len(chain.inodes), len(chain.path.names)) - 1
    parent = chain.inodes[depth]
    if not parent.is_directory:
        raise ParentNotDirectoryError("a component of the path is a file: check the path", path=str(chain.path))
    context.caller.check(chain, depth, WRITE | EXECUTE)
    missing = chain.path.names[depth:-1]
    if missing and not allowed:
        raise PathNotFoundError("the parent directory does not exist: create it first", path=str(chain.path.parent))
    changes.touched.add(chain.keys[depth])
    trail = list(list_ancestor_directories(chain, depth))
    bits = (parent.mode if mode is None else mode) & 0o777 | 0o300
    for name in missing:
        child = new_directory(parent, context, bits)
        changes.inserts[inode_key(parent.id, name)] = child
        trail.append((child.id, name))
        parent = child
    return _CreatedParents(parent, tuple(trail), len(missing))


def new_directory(parent: Inode, context: OperationContext, mode: int) -> Inode:
    """Return the inode of a new directory of the caller. Its group is that of its parent, as in HDFS."""
    return Inode(
        id=context.new_id(),
        kind=InodeKind.DIRECTORY,
        mode=mode & 0o1777,
        owner=context.caller.user,
        group=parent.group,
        mtime_ms=context.now_ms,
    )


def discard_content_and_lease(changes: Changes[R], inode: Inode, now_ms: int) -> None:
    """Add the changes that give up the content and the lease of a file whose inode is deleted."""
    discard_blobs(changes, inode, now_ms)
    end_lease(changes, inode)


def end_lease(changes: Changes[R], inode: Inode) -> None:
    """Delete the lease of a file, if it has one, so that its writer cannot change the file any more."""
    if inode.writer:
        changes.deletes.add(lease_key(inode.id))


def discard_blobs(changes: Changes[R], inode: Inode, now_ms: int) -> None:
    """Give up all blobs of a file: delete the records of small ones, and write garbage notes for the others, which
    readers may need for a while.

    The notes have the latest of `now_ms` and the file's own times, in case this process's clock is behind.
    """
    discard_extents(changes, inode.extents, max(now_ms, inode.mtime_ms, inode.atime_ms))


def discard_extents(changes: Changes[R], extents: Iterable[Extent], since_ms: int) -> None:
    """Give up the blobs of extents: delete the records of small ones, and write garbage notes for the others.

    Args:
        since_ms: the time in the garbage notes, milliseconds since the epoch.
    """
    for extent in extents:
        if extent.inline:
            changes.deletes.add(data_key(extent.blob))
        else:
            changes.new_values[garbage_key(since_ms, extent.blob)] = b""


def record_deleted_tree(
    changes: Changes[R], inode: Inode, ancestors: Iterable[Inode], path: NsPath, now_ms: int
) -> None:
    """Note a directory, whose inode is deleted in the same changes, as a deleted tree; the collector removes what is
    below it later.

    Nothing can be created below it any more: an operation that tries has validated the record of this directory, which
    is gone.
    """
    charged = tuple(one.quota_id for one in ancestors if one.has_quota)
    changes.new_values[deleted_key(inode.id)] = DeletedTree(inode, str(path), now_ms, charged).encode()


def remove_empty_directory(changes: Changes[R], chain: ResolvedPath) -> None:
    """Delete the directory at a path with all its records; the commit fails if it has entries."""
    target = chain.target
    assert target is not None
    changes.deletes |= {chain.target_key, *directory_record_keys(target.id, target.quota_id)}
    changes.ranges.append(RangeCount(chain.target_key, *children_range(target.id), 0))
    charge_quotas(changes, chain.ancestors, names=-1)


def remove_path_target(changes: Changes[R], chain: ResolvedPath, context: OperationContext) -> None:
    """Delete what is at a path: a file with its content, a directory as a deleted tree that the collector removes."""
    target = chain.target
    assert target is not None
    changes.deletes.add(chain.target_key)
    if target.is_directory:
        record_deleted_tree(changes, target, chain.ancestors, chain.path, context.now_ms)
    else:
        discard_content_and_lease(changes, target, context.now_ms)
        charge_quotas(changes, chain.ancestors, names=-1, space=-target.space)
