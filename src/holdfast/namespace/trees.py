"""Count the files and bytes of trees: in a snapshot, for summaries; or exactly, for quotas, while the tree is frozen.

A directory that moves into another quota, or that gets one, must be counted exactly. So the tree is *frozen* first: the
inode of its root is marked. Every operation below validates that inode, so those on their way conflict, and later ones
find the mark and wait. A mark has an end, so a client that dies does not freeze a tree forever. A client that finds a
mark that has expired removes it, in the transaction of its own operation; the operation that relies on the count
validates that its mark is still there. So a slow client, or a wrong clock, makes the count fail, and never makes it
wrong.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain as chained

from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.namespace.errors import (
    DirectoryFrozenError,
    PathNotDirectoryError,
    PermissionDeniedError,
    UncountedTreeError,
)
from holdfast.namespace.inode import FREEZE_MS, Inode, decode_inode, encode_inode, is_integer_in_range
from holdfast.namespace.listing import ContentSummary, QuotaUsage, walk_descendants
from holdfast.namespace.operation import Changes, OperationContext, usage_keys
from holdfast.namespace.operations.base import ReadInode, SinglePathOperation, get_reachable_target, get_unfrozen_target
from holdfast.namespace.operations.names import TreeUsage
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, WRITE, Caller
from holdfast.namespace.phases import TOTAL_RETRY, OperationRunner
from holdfast.namespace.view import ResolvedPath, View, read_view
from holdfast.transactions.base import MAX_NUMBER, Commit, Committed


class Kept(enum.Enum):
    """Stands for a quota that stays as it is."""

    AS_IT_IS = "as it is"


NewQuota = int | Kept | None
"""A quota that is to be set: a limit, or None to remove it, or whatever it is in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MarkTreeFrozen(SinglePathOperation):
    """Mark a directory; returns the key of its inode, and the inode.

    Reads the inodes on the path, and writes the target.
    """

    path: NsPath
    token: str
    until_ms: int

    def execute(self, view: View, context: OperationContext) -> Changes[tuple[bytes, Inode]]:
        (chain,) = view.chains
        inode = get_unfrozen_target(chain, context, own_mark=self.token)
        frozen = replace(inode, moving=self.token, moving_until_ms=self.until_ms)
        return Changes((chain.target_key, inode), puts={chain.target_key: frozen})


@dataclass(frozen=True, slots=True, kw_only=True)
class _SetQuota(SinglePathOperation):
    """Set the quotas of a directory, or clear them.

    A directory that had no quota needs a count of what it uses. With a count, the directory gets counters of their own,
    under a new quota id, so whatever still waits to be subtracted from the old ones changes nothing.

    Reads the inodes on the path, and writes the target.
    """

    path: NsPath
    names: NewQuota
    space: NewQuota
    usage: TreeUsage | None = None

    def execute(self, view: View, context: OperationContext) -> Changes[None]:
        (chain,) = view.chains
        context.caller.check_superuser("set quotas")
        inode = get_unfrozen_target(chain, context, own_mark="" if self.usage is None else self.usage.token)
        if not inode.is_directory:
            raise PathNotDirectoryError("only directories have quotas: check the path", path=str(self.path))
        if self.usage is not None and inode.moving != self.usage.token:
            raise DirectoryFrozenError("the tree changed while it was counted: repeat later", path=str(self.path))
        names = inode.names_quota if self.names is Kept.AS_IT_IS else self.names
        space = inode.space_quota if self.space is Kept.AS_IT_IS else self.space
        is_limited = names is not None or space is not None
        if is_limited and not inode.has_quota and self.usage is None:
            raise UncountedTreeError("the directory gets a quota: count it first", path=str(self.path))
        if self.usage is not None:
            quota_id = context.new_id()
        else:
            quota_id = inode.quota_id if is_limited else 0
        changed = replace(inode, names_quota=names, space_quota=space, quota_id=quota_id, moving="", moving_until_ms=0)
        changes = Changes(None)
        if changed != inode:
            changes.puts[chain.target_key] = changed
        if inode.has_quota and quota_id != inode.quota_id:
            changes.deletes.update(usage_keys(inode))
        if self.usage is not None:
            names_key, space_key = usage_keys(changed)
            changes.adds |= {names_key: self.usage.names, space_key: self.usage.space}
        return changes


def _is_quota(value: NewQuota, least: int) -> bool:
    return value is None or value is Kept.AS_IT_IS or is_integer_in_range(value, least, MAX_NUMBER)


@dataclass(frozen=True, slots=True)
class TreeUsageCounter:
    """Counts trees of a namespace, and sets quotas, which need such counts."""

    operations: OperationRunner

    def summary(self, path: NsPath, caller: Caller) -> ContentSummary:
        """Count the files, directories and bytes of a tree, in one snapshot, while others may change it.

        Raises:
            PathNotFoundError, PermissionDeniedError: see the message.
        """
        files = directories = size = space = 0
        with self.operations.database.snapshot() as reader:
            (chain,) = read_view(reader, self.operations.hints, ReadInode(path)).chains
            top = get_reachable_target(chain, caller)
            below = walk_descendants(reader, path, top, caller.check_listing) if top.is_directory else ()
            for inode in chained([top], (found.inode for found in below)):
                directories += inode.is_directory
                files += not inode.is_directory
                size += inode.size
                space += inode.space
        return ContentSummary(
            files=files,
            directories=directories,
            size=size,
            space=space,
            names_quota=top.names_quota,
            space_quota=top.space_quota,
        )

    def set_quota(
        self, path: NsPath, caller: Caller, names: NewQuota, space: NewQuota, runner: OperationRunner
    ) -> None:
        """Set the quotas of names and of space of a directory, in one step. Only the superuser may.

        Args:
            runner: runs the last step, which sets them.

        Raises:
            PathNotDirectoryError: the path is a file.
            InvalidRequestError: a limit is out of range.
            PathNotFoundError, PermissionDeniedError, DirectoryFrozenError: see the message.

        Crash: the directory may stay frozen for ten minutes; its quotas are the old ones or the new ones.
        """
        caller.check_superuser("set quotas")
        if not _is_quota(names, 1) or not _is_quota(space, 0):
            raise InvalidRequestError(
                f"a quota of names is positive, one of space not negative, and both are at most {MAX_NUMBER}: change "
                "it, or clear it",
                names=names,
                space=space,
            )
        operation = _SetQuota(path=path, names=names, space=space)
        try:
            runner.run(operation, caller)
        except UncountedTreeError:
            with self.freeze_and_count_tree(path, caller) as usage:
                runner.run(replace(operation, usage=usage), caller)

    def recount_usage(self, path: NsPath, caller: Caller) -> None:
        """Count again what a directory with quotas uses, and correct its counters; the quotas stay.

        Raises:
            InvalidRequestError: the directory has no quota.
            PathNotFoundError, PermissionDeniedError, DirectoryFrozenError: see the message.

        Crash: the directory may stay frozen for ten minutes; its counters are the old ones or the new ones.
        """
        with self.freeze_and_count_tree(path, caller) as usage:
            inode = self.operations.read(ReadInode(path), caller)  # it is frozen now
            if not inode.has_quota:
                raise InvalidRequestError("the directory has no quota: there is nothing to count", path=str(path))
            operation = _SetQuota(path=path, names=inode.names_quota, space=inode.space_quota, usage=usage)
            self.operations.run(operation, caller)

    @contextmanager
    def freeze_and_count_tree(self, path: NsPath, caller: Caller) -> Iterator[TreeUsage]:
        """Freeze a tree, count it exactly, and yield its usage; no operation changes the tree until the block ends.

        The tree is counted by the ids of its directories, because its path may change meanwhile: an ancestor may be
        renamed. A caller who may move the tree may count it, whatever it contains.

        Raises:
            PathNotFoundError, PermissionDeniedError: see the message.
            DirectoryFrozenError: another client has frozen it, or the count took too long.
        """
        token = self.operations.environment.ids.token()
        until_ms = self.operations.now_ms() + FREEZE_MS
        key, root = self.operations.run_again(_MarkTreeFrozen(path=path, token=token, until_ms=until_ms), caller)
        try:
            names, space = self._count_tree(root, path, until_ms)
            yield TreeUsage(names, space, token)
        finally:
            with suppress(HoldfastError):  # the block has taken effect, or failed for another reason; the mark expires
                self._remove_freeze_mark(key, token)

    def _remove_freeze_mark(self, key: bytes, token: str) -> None:
        """Remove a mark, unless the tree was moved or got its quota. A rename of an ancestor does not change its key.

        If others keep changing the inode, the mark stays, and ends by itself.
        """
        store = self.operations.database
        for _ in range(TOTAL_RETRY):
            record = store.get_many([key]).get(key)
            inode = None if record is None else decode_inode(key, record.value)
            if record is None or inode is None or inode.moving != token:
                return
            value = encode_inode(replace(inode, moving="", moving_until_ms=0))
            if isinstance(store.commit(Commit(reads={key: record.version}, puts={key: value})), Committed):
                return

    def _count_tree(self, root: Inode, path: NsPath, until_ms: int) -> tuple[int, int]:
        """Return the names and the space of the tree below an inode, itself included."""
        names, space = 1, root.space

        def require_time_left(at: NsPath, directory: Inode) -> None:
            if self.operations.now_ms() >= until_ms:
                raise DirectoryFrozenError("the tree is too large to be counted in time: repeat later", path=str(path))

        for found in (
            walk_descendants(self.operations.database, path, root, require_time_left) if root.is_directory else ()
        ):
            names += 1
            space += found.inode.space
        return names, space

    def check_removal(self, path: NsPath, caller: Caller) -> int:
        """Check that the caller may delete every entry of a tree.

        Each directory with entries needs all permissions, and sticky ones let only owners remove entries.

        Guarantee: the tree is checked as it was at one moment, in one snapshot. Later changes are not checked.

        Returns:
            The inode id of the directory; 0 if the path does not exist, or is a file.

        Raises:
            PermissionDeniedError: see the message.
        """
        with self.operations.database.snapshot() as reader:
            (chain,) = read_view(reader, self.operations.hints, ReadInode(path)).chains
            caller.check_traversal(chain)
            root = chain.target
            if root is None or not root.is_directory:
                return 0
            for found in walk_descendants(reader, path, root, lambda at, directory: None):
                above = found.directory
                if not caller.has_permission(above, READ | WRITE | EXECUTE) or not caller.passes_sticky_bit_check(
                    above, found.inode
                ):
                    raise PermissionDeniedError(
                        "permission denied: the user may not remove what is in a directory of the tree",
                        user=caller.user,
                        path=str(found.path),
                    )
        return root.id


@dataclass(frozen=True, slots=True)
class ReadQuota(SinglePathOperation):
    """Read the quotas of a path and their usage counters; the result is a `QuotaUsage`.

    Reads the inodes on the path and the counters as one snapshot.
    """

    path: NsPath

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the keys of the usage counters of a directory with a quota."""
        target = chains[0].target
        return usage_keys(target) if target is not None and target.has_quota else ()

    def execute(self, view: View, context: OperationContext) -> Changes[QuotaUsage]:
        """Return the quotas and their usage as the result.

        Raises:
            PathNotFoundError, PermissionDeniedError: see the message.
        """
        inode = ReadInode(self.path).execute(view, context).result
        used = [view.entries[key].number if key in view.entries else 0 for key in self.extra_keys(view.chains)] or [
            0,
            0,
        ]
        return Changes(
            QuotaUsage(names_quota=inode.names_quota, space_quota=inode.space_quota, names=used[0], space=used[1])
        )
