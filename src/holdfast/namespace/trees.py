"""Count trees: for summaries while they change, and exactly, for quotas, while nobody may change them.

A directory that moves into another quota, or that gets one, must be counted exactly. So the tree is *frozen* first: the
inode of its root is marked. Every operation below validates that inode, so those on their way conflict, and later ones
find the mark and wait. A mark has an end, so a client that dies does not freeze a tree for ever; the operation that
relies on the count validates that its own mark is still there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from holdfast.errors import InvalidRequestError
from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import ParentNotDirectoryError, PathNotFoundError, TreeMovingError
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import usage_key
from holdfast.namespace.listing import Lister
from holdfast.namespace.operation import Context, Operations
from holdfast.namespace.operations.base import PathGroup, check_chain, existing
from holdfast.namespace.operations.rename import TreeUsage
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.status import ContentSummary
from holdfast.namespace.view import Chain, View

__all__ = ["TreeCounter"]

_FREEZE_MS = 10 * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Freeze(PathGroup):
    """Mark a directory, or remove the mark.

    Group: the inodes on the path, shared; the target, exclusively.
    """

    path: NsPath
    token: str
    until_ms: int

    @property
    def paths(self) -> tuple[NsPath]:
        return (self.path,)

    def execute(self, view: View, context: Context) -> Changes[Inode]:
        (chain,) = view.chains
        inode = chain.target
        if self.until_ms:
            inode = existing(chain, context)
        changes: Changes[Inode] = Changes(inode)  # type: ignore[arg-type]  # None only when a mark is removed
        if inode is not None and self.until_ms:
            changes.puts[chain.target_key] = replace(inode, moving=self.token, moving_until_ms=self.until_ms)
        elif inode is not None and inode.moving == self.token:
            changes.puts[chain.target_key] = replace(inode, moving="", moving_until_ms=0)
        return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class _SetQuota(PathGroup):
    """Set the quotas of a directory, and the counters of what it uses. Needs no count if it has no quota afterwards.

    Group: the inodes on the path, shared; the target and its counters, exclusively.
    """

    path: NsPath
    names: int | None
    space: int | None
    usage: TreeUsage | None

    @property
    def paths(self) -> tuple[NsPath]:
        return (self.path,)

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        target = chains[0].target
        return () if target is None else [usage_key(target.id, b"n"), usage_key(target.id, b"s")]

    def execute(self, view: View, context: Context) -> Changes[None]:
        (chain,) = view.chains
        context.caller.check_superuser("set quotas")
        if self.usage is None:
            check_chain(chain, context)
        inode = chain.target
        if inode is None or (self.usage is not None and inode.moving != self.usage.token):
            raise TreeMovingError("the tree changed while it was counted: repeat later", path=str(self.path))
        changes = Changes(None)
        changes.puts[chain.target_key] = replace(
            inode, names_quota=self.names, space_quota=self.space, moving="", moving_until_ms=0
        )
        names_key, space_key = self.also(view.chains)
        if self.usage is None:
            changes.deletes |= {names_key, space_key}
            return changes
        for key, used in ((names_key, self.usage.names), (space_key, self.usage.space)):
            entry = view.entries.get(key)
            changes.adds[key] = used - (0 if entry is None else entry.number)
        return changes


@dataclass(frozen=True, slots=True)
class TreeCounter:
    """Counts the trees of one namespace."""

    operations: Operations
    lister: Lister

    def summary(self, path: NsPath, caller: Caller) -> ContentSummary:
        """Count a tree, page by page, while others may change it, as HDFS does.

        Raises:
            PathNotFoundError, PermissionDeniedError: see the message.
        """
        inode = self.operations.read(_Existing(path), caller)
        files = directories = size = space = 0
        if inode.is_directory:
            directories = 1
            for entry in self.lister.walk(path, caller):
                directories += entry.is_directory
                files += not entry.is_directory
                size += entry.size
                space += entry.size * entry.replication
        else:
            files, size, space = 1, inode.size, inode.space
        return ContentSummary(
            files=files,
            directories=directories,
            size=size,
            space=space,
            names_quota=inode.names_quota,
            space_quota=inode.space_quota,
        )

    def set_quota(self, path: NsPath, caller: Caller, names: int | None, space: int | None) -> None:
        """Limit what a directory may contain; None removes a limit.

        Raises:
            ParentNotDirectoryError: the path is a file.
            InvalidRequestError: a limit is not positive.
            PathNotFoundError, PermissionDeniedError, TreeMovingError: see the message.

        Crash: the directory may stay frozen for ten minutes; its quotas are the old ones or the new ones.
        """
        caller.check_superuser("set quotas")
        if any(limit is not None and limit <= 0 for limit in (names, space)):
            raise InvalidRequestError("a quota is positive: change it, or clear it", names=names, space=space)
        inode = self.operations.read(_Existing(path), caller)
        if not inode.is_directory:
            raise ParentNotDirectoryError("only directories have quotas: check the path", path=str(path))
        if names is None and space is None:
            self.operations.run(_SetQuota(path=path, names=None, space=None, usage=None), caller)
            return
        with self.frozen(path, caller) as usage:
            self.operations.run(_SetQuota(path=path, names=names, space=space, usage=usage), caller)

    @contextmanager
    def frozen(self, path: NsPath, caller: Caller) -> Iterator[TreeUsage]:
        """Count a tree exactly: until the block ends, nobody changes it.

        Raises:
            PathNotFoundError, PermissionDeniedError: see the message.
            TreeMovingError: somebody else has frozen it, or the count took too long.
        """
        token = self.operations.environment.ids.token()
        until_ms = self.operations.now_ms() + _FREEZE_MS
        self.operations.run(_Freeze(path=path, token=token, until_ms=until_ms), caller)
        try:
            # Whoever may move the tree may count it, whatever it contains.
            counted = self.summary(path, replace(caller, is_superuser=True))
            if self.operations.now_ms() >= until_ms:
                raise TreeMovingError("the tree is too large to be counted in time: repeat later", path=str(path))
            yield TreeUsage(counted.files + counted.directories, counted.space, token)
        finally:
            # Finds no mark if the block moved the tree or set its quota.
            self.operations.run(_Freeze(path=path, token=token, until_ms=0), caller)


@dataclass(frozen=True, slots=True)
class _Existing(PathGroup):
    """Read the inode at a path that must exist."""

    path: NsPath

    @property
    def paths(self) -> tuple[NsPath]:
        return (self.path,)

    def execute(self, view: View, context: Context) -> Changes[Inode]:
        (chain,) = view.chains
        context.caller.check_traversal(chain)
        if chain.target is None:
            raise PathNotFoundError("the path does not exist: check it", path=str(self.path))
        return Changes(chain.target)
