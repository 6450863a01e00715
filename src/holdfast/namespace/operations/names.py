"""Make, rename and delete files and directories, each in one step, whatever the size of the tree below.

The children of a directory hang on its id, so a rename of a tree of any size deletes one key and inserts another. All
ancestors of both paths are validated: of two renames that would make a cycle together, one conflicts.

Source: HDFS's ``FSDirRenameOp``: ``rename`` returns False where ``rename2`` raises.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from holdfast.namespace.errors import (
    DirectoryFrozenError,
    DirectoryNotEmptyError,
    PathExistsError,
    PathNotFoundError,
    RenameError,
    UncheckedTreeError,
    UncountedTreeError,
)
from holdfast.namespace.inode import DIRECTORY_MODE, Inode
from holdfast.namespace.keys import children_range, inode_key, lease_key, rename_record_key
from holdfast.namespace.operation import Changes, OperationContext, charge_quotas
from holdfast.namespace.operations.base import (
    SinglePathOperation,
    check_reachable_and_not_frozen,
    create_parent_directories,
    new_directory,
    remove_empty_directory,
    remove_path_target,
)
from holdfast.namespace.other_records import Lease, encode_trail, list_ancestor_directories
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, WRITE
from holdfast.namespace.view import ResolvedPath, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Mkdirs(SinglePathOperation):
    """Make a directory; the result is whether it is new.

    Reads the inodes on the path, and inserts the missing ones.

    Attributes:
        parents: whether to make missing parents, and to accept an existing directory (``mkdir -p``).
    """

    path: NsPath
    mode: int = DIRECTORY_MODE
    parents: bool = True

    def execute(self, view: View, context: OperationContext) -> Changes[bool]:
        """Return the changes that insert the directory and its missing parents.

        Raises:
            PathExistsError: a file has the path; or a directory, without `parents`.
            ParentNotDirectoryError, PathNotFoundError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        check_reachable_and_not_frozen(chain, context)
        if chain.target is not None:
            if chain.target.is_directory and self.parents:
                return Changes(False)
            word = "directory" if chain.target.is_directory else "file"
            raise PathExistsError(f"a {word} has this path already: choose another one", path=str(self.path))
        changes = Changes(True)
        parent = create_parent_directories(changes, chain, context, mode=self.mode, allowed=self.parents)
        changes.inserts[inode_key(parent.inode.id, self.path.names[-1])] = new_directory(
            parent.inode, context, self.mode
        )
        charge_quotas(changes, chain.ancestors, names=parent.made + 1)
        return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(SinglePathOperation):
    """Delete a file or a directory; the result is whether it existed. The root is never deleted, which is no error in
    HDFS: it asks only for all permissions on a root with children.

    Reads the inodes on the path and, without `recursive`, that the target has no children; writes the target.

    Attributes:
        checked_id: the inode id of the directory below which the caller's permissions were checked; not needed for the
            superuser.
    """

    path: NsPath
    recursive: bool = False
    checked_id: int = 0

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        """Return the range of the directory's children, which must be empty if the deletion is not recursive."""
        target = chains[0].target
        if (self.recursive and self.path.names) or target is None or not target.is_directory:
            return None
        return children_range(target.id)

    def execute(self, view: View, context: OperationContext) -> Changes[bool]:
        """Return the changes that delete the file, or the directory with everything below it.

        Raises:
            DirectoryNotEmptyError: the directory has children, and `recursive` is False.
            UncheckedTreeError: the permissions in the tree were not checked.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        check_reachable_and_not_frozen(chain, context)
        target = chain.target
        has_children = view.has_records_in_extra_range
        if self.path.names:
            context.caller.check_removal(chain)
        elif target is not None and has_children and not context.caller.has_permission(target, READ | WRITE | EXECUTE):
            context.caller.raise_permission_denied(target, READ | WRITE | EXECUTE, str(self.path))
        if target is not None and target.is_directory and not self.recursive and has_children:
            raise DirectoryNotEmptyError("the directory is not empty: delete it recursively", path=str(self.path))
        if target is None or not self.path.names:
            return Changes(False)
        if target.is_directory and self.recursive and not context.caller.is_superuser:
            self._require_permissions_checked(target)
        changes = Changes(True)
        changes.touched.add(chain.keys[-2])
        if target.is_directory and not self.recursive:
            remove_empty_directory(changes, chain)
        else:
            remove_path_target(changes, chain, context)
        return changes

    def _require_permissions_checked(self, target: Inode) -> None:
        """Refuse a tree in which the caller's permissions were not checked: another one may have the path by now."""
        if target.id != self.checked_id:
            raise UncheckedTreeError("the permissions in the tree were not checked: repeat", path=str(self.path))


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """The names and the space (bytes times replication) of a tree, counted while it was frozen.

    Attributes:
        token: what `Inode.moving` of the root of the tree was while it was counted.
    """

    names: int
    space: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Rename a file, or a directory with everything below it; the result is its new path.

    Reads the inodes on both paths and that a directory that is replaced has no children; writes source and target.

    Attributes:
        overwrite: whether a file, or an empty directory, may be replaced.
        into: HDFS's old ``rename``: if the target is a directory, move the source into it.
        may_stay: HDFS's old ``rename``: do nothing if the source is at the target already, instead of refusing it.
        usage: of the tree, if it moves between quotas.
    """

    source: NsPath
    target: NsPath
    overwrite: bool = False
    into: bool = False
    may_stay: bool = False
    usage: TreeUsage | None = None

    @property
    def paths(self) -> tuple[NsPath, ...]:
        """The paths that the operation reads: source, target, and with `into` the source's name in the target."""
        if self.into and self.source.names:
            return (self.source, self.target, self.target.child(self.source.names[-1]))
        return (self.source, self.target)

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the keys of the leases of source and target, if they are files that are being written."""
        return [lease_key(chain.target.id) for chain in chains if chain.target is not None and chain.target.writer]

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        """Return the range of the children of a directory that would be replaced, which must be empty."""
        replaced = self._choose_destination(chains).target
        return (
            children_range(replaced.id) if self.overwrite and replaced is not None and replaced.is_directory else None
        )

    def _choose_destination(self, chains: Sequence[ResolvedPath]) -> ResolvedPath:
        existing = chains[1].target
        return chains[2] if len(chains) == 3 and existing is not None and existing.is_directory else chains[1]

    def execute(self, view: View, context: OperationContext) -> Changes[NsPath]:
        """Return the changes that move the inode, its quota usage, and its lease or place record.

        Raises:
            PathNotFoundError: the source, or the parent of the target, does not exist.
            PathExistsError: the target exists, and may not be replaced.
            DirectoryNotEmptyError: the target is a directory with children.
            RenameError: the source is the root or an ancestor of the target, the target is the root, or one of them is
                a directory and the other is not.
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        source, target = view.chains[0], self._choose_destination(view.chains)
        moved = self._check_rename_allowed(source, target, view, context)
        changes = Changes(target.path)
        if source.path == target.path:
            return changes
        changes.deletes.add(source.target_key)
        if target.target is not None:
            if target.target.is_directory:
                remove_empty_directory(changes, target)
            else:
                remove_path_target(changes, target, context)
            changes.deletes.discard(target.target_key)
            changes.puts[target.target_key] = moved
        else:
            changes.inserts[target.target_key] = moved
        trail = list_ancestor_directories(target, len(target.path.names) - 1)
        if moved.is_directory:
            changes.values[rename_record_key(moved.id)] = encode_trail((*trail, (moved.id, target.path.names[-1])))
        elif moved.writer:
            lease = Lease.decode(lease_key(moved.id), view.value(lease_key(moved.id)) or b"")
            changes.values[lease_key(moved.id)] = replace(lease, key=target.target_key, trail=trail).encode()
        changes.touched |= {source.keys[-2], target.keys[-2]}
        self._move_quota_usage(changes, moved, source, target)
        return changes

    def _check_rename_allowed(
        self, source: ResolvedPath, target: ResolvedPath, view: View, context: OperationContext
    ) -> Inode:
        check_reachable_and_not_frozen(source, context, own_mark="" if self.usage is None else self.usage.token)
        check_reachable_and_not_frozen(target, context)
        context.caller.check_removal(source)
        context.caller.check(target, max(0, min(len(target.inodes), len(target.path.names)) - 1), WRITE)
        moved = source.target
        if moved is None:
            raise PathNotFoundError("the source does not exist: check the path", path=str(self.source))
        if self.usage is not None and moved.moving != self.usage.token:
            raise DirectoryFrozenError("the tree changed while it was counted: repeat later", path=str(self.source))
        if not source.path.names:
            raise RenameError("the root cannot be renamed: rename its entries", target=str(target.path))
        if target.path == source.path:
            if self.may_stay:
                return moved
            raise PathExistsError("source and target are the same: choose another target", path=str(self.source))
        if moved.id in {inode.id for inode in target.ancestors}:
            raise RenameError(
                "a directory cannot be moved into itself: choose another target",
                source=str(self.source),
                target=str(target.path),
            )
        if not target.path.names:
            raise RenameError("the root cannot be replaced: choose another target", path="/")
        if target.parent is None:
            raise PathNotFoundError("the parent of the target does not exist: create it", path=str(target.path.parent))
        if target.target is not None:
            self._check_target_replaceable(source, target, view, context)
        return replace(moved, moving="", moving_until_ms=0) if moved.moving else moved

    def _check_target_replaceable(
        self, source: ResolvedPath, target: ResolvedPath, view: View, context: OperationContext
    ) -> None:
        moved, replaced = source.target, target.target
        assert moved is not None and replaced is not None
        if moved.is_directory != replaced.is_directory:
            raise RenameError(
                "a file and a directory cannot replace each other: choose another target", path=str(target.path)
            )
        if not self.overwrite:
            raise PathExistsError("the target exists: choose another one, or overwrite it", path=str(target.path))
        if replaced.id in {inode.id for inode in source.ancestors} or view.has_records_in_extra_range:
            raise DirectoryNotEmptyError("the target is a directory that is not empty: empty it", path=str(target.path))
        context.caller.check_removal(target)

    def _move_quota_usage(
        self, changes: Changes[NsPath], moved: Inode, source: ResolvedPath, target: ResolvedPath
    ) -> None:
        """Move the usage between the quotas that lie on only one of the two paths."""
        before = {inode.id: inode for inode in source.ancestors}
        after = {inode.id: inode for inode in target.ancestors}
        left = [inode for number, inode in before.items() if number not in after]
        entered = [inode for number, inode in after.items() if number not in before]
        if not any(inode.has_quota for inode in (*left, *entered)):
            return
        if not moved.is_directory:
            names, space = 1, moved.space
        elif self.usage is not None:
            names, space = self.usage.names, self.usage.space
        else:
            raise UncountedTreeError("the tree moves between quotas: count it first", path=str(self.source))
        charge_quotas(changes, left, names=-names, space=-space)
        charge_quotas(changes, entered, names=names, space=space)
