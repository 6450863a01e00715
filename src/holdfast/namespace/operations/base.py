"""Share what operations have in common: a base for their groups, checks of chains, new directories, discarded files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from holdfast.namespace.errors import ParentNotDirectoryError, PathIsDirectoryError, PathNotFoundError, TreeMovingError
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
from holdfast.namespace.operation import Changes, Context, charge_quotas
from holdfast.namespace.other_records import DeletedTree, Trail, trail_of
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, WRITE, Caller
from holdfast.namespace.view import Chain, View
from holdfast.transactions.base import RangeCount

R = TypeVar("R")


class PathGroup:
    """The group of most operations: nothing but the inodes on its paths."""

    __slots__ = ()

    def extra_keys(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return nothing."""
        return ()

    def extra_range(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return no range."""
        return None


class OnePath(PathGroup):
    """The group of an operation on one path."""

    __slots__ = ()
    path: NsPath

    @property
    def paths(self) -> Sequence[NsPath]:
        """The path, unless the operation has several."""
        return (self.path,)


@dataclass(frozen=True, slots=True)
class ReadInode(OnePath):
    """Read the inode at a path that must exist.

    Group: the inodes on the path, as one snapshot; nothing is locked.
    """

    path: NsPath

    def execute(self, view: View, context: Context) -> Changes[Inode]:
        """See `Operation`.

        Raises:
            PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        return Changes(get_readable_target(view.chains[0], context.caller))


def get_readable_target(chain: Chain, caller: Caller) -> Inode:
    """Return the target of a path that must exist and that the caller may follow.

    Raises:
        PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
    """
    caller.check_traversal(chain)
    return get_target(chain)


def check_path(chain: Chain, context: Context, own_mark: str = "") -> None:
    """Check that the caller may follow the path, and that no other client counts a tree on it.

    Args:
        own_mark: the token of a mark that does not stop the caller.

    Raises:
        ParentNotDirectoryError, PermissionDeniedError: see the message.
        TreeMovingError: a tree on the path is being counted.
    """
    context.caller.check_traversal(chain)
    check_not_frozen(chain, context, own_mark)


def check_not_frozen(chain: Chain, context: Context, own_mark: str = "") -> None:
    """Check that no other client counts a tree on the path; for `own_mark`, see `check_path`.

    Raises:
        TreeMovingError: a tree on the path is being counted.
    """
    for inode in chain.inodes:
        if inode.moving not in ("", own_mark) and inode.is_frozen(context.now_ms):
            raise TreeMovingError("a directory on the path is being counted: repeat later", path=str(chain.path))


def get_unfrozen_target(chain: Chain, context: Context, own_mark: str = "") -> Inode:
    """Return the target of a path that must exist; for `own_mark`, see `check_path`.

    Raises:
        PathNotFoundError: it does not.
    """
    check_path(chain, context, own_mark)
    return get_target(chain)


def get_target(chain: Chain) -> Inode:
    """Return the target of a path.

    Raises:
        PathNotFoundError: it does not exist.
    """
    if chain.target is None:
        raise PathNotFoundError("the path does not exist: check it", path=str(chain.path))
    return chain.target


def get_unfrozen_file(chain: Chain, context: Context) -> Inode:
    """Return the target of a path that must be a file.

    Raises:
        PathNotFoundError: it does not exist.
        PathIsDirectoryError: it is a directory.
    """
    inode = get_unfrozen_target(chain, context)
    if inode.is_directory:
        raise PathIsDirectoryError("the path is a directory, and a file is needed: check it", path=str(chain.path))
    return inode


@dataclass(frozen=True, slots=True)
class _NewParents:
    """The parent of a new entry, the directories on its path, and how many were made."""

    inode: Inode
    trail: Trail
    made: int


def make_parents(
    changes: Changes[R], chain: Chain, context: Context, *, mode: int | None, allowed: bool = True
) -> _NewParents:
    """Add the missing directories above the target of a path to the changes.

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
    trail = list(trail_of(chain, depth))
    bits = (parent.mode if mode is None else mode) & 0o777 | 0o300
    for name in missing:
        child = new_directory(parent, context, bits)
        changes.inserts[inode_key(parent.id, name)] = child
        trail.append((child.id, name))
        parent = child
    return _NewParents(parent, tuple(trail), len(missing))


def new_directory(parent: Inode, context: Context, mode: int) -> Inode:
    """Return a new directory; its group is that of its parent (HDFS follows BSD)."""
    return Inode(
        id=context.new_id(),
        kind=InodeKind.DIRECTORY,
        mode=mode & 0o1777,
        owner=context.caller.user,
        group=parent.group,
        mtime_ms=context.now_ms,
    )


def discard_file(changes: Changes[R], inode: Inode, now_ms: int) -> None:
    """Give up the content and the lease of a file whose inode goes."""
    discard_blobs(changes, inode, now_ms)
    end_lease(changes, inode)


def end_lease(changes: Changes[R], inode: Inode) -> None:
    """Delete the lease of a file, if it has one: a silent writer that comes back must not find its right again."""
    if inode.writer:
        changes.deletes.add(lease_key(inode.id))


def discard_blobs(changes: Changes[R], inode: Inode, now_ms: int) -> None:
    """Delete the records of small blobs, and note the others as garbage: readers may still read them for a while.

    The file has been there since its times, by whatever clock. So if ours is behind, they are the better date.
    """
    discard_extents(changes, inode.extents, max(now_ms, inode.mtime_ms, inode.atime_ms))


def discard_extents(changes: Changes[R], extents: Iterable[Extent], since_ms: int) -> None:
    """Delete the records of small blobs, and note the others as garbage since a time."""
    for extent in extents:
        if extent.inline:
            changes.deletes.add(data_key(extent.blob))
        else:
            changes.new_values[garbage_key(since_ms, extent.blob)] = b""


def detach_directory(changes: Changes[R], inode: Inode, ancestors: Iterable[Inode], path: NsPath, now_ms: int) -> None:
    """Take a directory out of the tree, with all below it, by one record; the collector removes the tree later.

    Nothing can be created below it any more: an operation that tries has validated the record of this directory, which
    is gone.
    """
    charged = tuple(one.quota_id for one in ancestors if one.has_quota)
    changes.new_values[deleted_key(inode.id)] = DeletedTree(inode, str(path), now_ms, charged).encode()


def remove_empty(changes: Changes[R], chain: Chain) -> None:
    """Remove the target of a path, an empty directory, with all its records at once: nothing is left to collect."""
    target = chain.target
    assert target is not None
    changes.deletes |= {chain.target_key, *directory_record_keys(target.id, target.quota_id)}
    changes.ranges.append(RangeCount(chain.target_key, *children_range(target.id), 0))
    charge_quotas(changes, chain.ancestors, names=-1)


def remove_target(changes: Changes[R], chain: Chain, context: Context) -> None:
    """Remove the target of a path: a file at once, a directory by detaching it."""
    target = chain.target
    assert target is not None
    changes.deletes.add(chain.target_key)
    if target.is_directory:
        detach_directory(changes, target, chain.ancestors, chain.path, context.now_ms)
    else:
        discard_file(changes, target, context.now_ms)
        charge_quotas(changes, chain.ancestors, names=-1, space=-target.space)
