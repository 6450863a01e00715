"""Publish whole files, and write files under a lease: create, append, sync, complete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.errors import InvalidRequestError, OutcomeUnknownError
from holdfast.namespace.errors import BeingWrittenError, DirectoryInTheWayError, LeaseLostError, PathExistsError
from holdfast.namespace.inode import FILE_MODE, Extent, Inode, InodeKind, check_block_size, check_replication
from holdfast.namespace.keys import data_key, inode_key, lease_key
from holdfast.namespace.operation import Changes, OperationContext, charge_quotas
from holdfast.namespace.operations.base import (
    SinglePathOperation,
    check_not_frozen,
    check_reachable_and_not_frozen,
    create_parent_directories,
    discard_content_and_lease,
    get_unfrozen_file,
    get_unfrozen_target,
)
from holdfast.namespace.other_records import SOFT_LIMIT_MS, Lease, list_ancestor_directories
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import WRITE
from holdfast.namespace.view import ResolvedPath, View

MAX_EXTENTS = 10_000
"""HDFS's ``dfs.namenode.fs-limits.max-blocks-per-file``."""


class FileOperation(SinglePathOperation):
    """Base class of operations that read the inodes on their paths, and the lease of each file that is being
    written.
    """

    __slots__ = ()

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the keys of the leases of those target files that are being written."""
        return [lease_key(chain.target.id) for chain in chains if chain.target is not None and chain.target.writer]


def require_no_live_writer(view: View, inode: Inode, chain: ResolvedPath, now_ms: int) -> None:
    """Check that no live writer has a file open: the lease, if any, was not renewed for a minute.

    Raises:
        BeingWrittenError: the writer is alive.
    """
    if not inode.writer:
        return
    key = lease_key(inode.id)
    value = view.value(key)
    if value is not None and not Lease.decode(key, value).is_renewal_overdue(now_ms, SOFT_LIMIT_MS):
        raise BeingWrittenError("another client is writing the file: wait until it closes it", path=str(chain.path))


def _make_lease(chain: ResolvedPath, writer: str, now_ms: int) -> Lease:
    """Return the lease of a writer on the target of a path."""
    return Lease(writer, now_ms, chain.target_key, list_ancestor_directories(chain, len(chain.path.names) - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish(FileOperation):
    """Create a file with its whole content, or replace one; the result is its inode.

    Reads the inodes on the path, and inserts or replaces the target.

    Attributes:
        file_id: the id of the new inode: it is in the names of the blobs.
        extents: the content; the blobs are durable already.
        data: the bytes of small blobs, by name: they become records in the same transaction.
        overwrite: whether a file may be replaced.
        parents: whether to make missing parents.
        writer: if not empty, the file is created for this writer, who gets a lease and completes it later.
        xattrs: extended attributes of the new file.
        mtime_ms: the modification time of the new file; None for the present.
        is_repeated: whether an earlier call may have published the file: then it is only looked for, because meanwhile
            it may have been renamed or deleted, and its blobs must not belong to two files.
        is_late: returns whether a blob is so old that a sweep, which sees no file that refers to it, may take it for
            garbage (N3). It is called after the view was read. The view contains the root, which every sweep rewrites
            before it lists the blobs (`maintenance`), so a sweep that begins later makes the commit fail.
    """

    path: NsPath
    file_id: int
    extents: tuple[Extent, ...] = ()
    data: Mapping[str, bytes] = field(default_factory=dict)
    mode: int = FILE_MODE
    overwrite: bool = False
    parents: bool = True
    replication: int = 1
    block_size: int = 128 * 1024 * 1024
    writer: str = ""
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    mtime_ms: int | None = None
    is_repeated: bool = False
    is_late: Callable[[], bool] = field(default=lambda: False, compare=False)

    def execute(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Return the changes that insert or replace the file, with its parents, small blobs and lease.

        Raises:
            OutcomeUnknownError: the call is repeated, and the path has no such file.
            PathExistsError: the path exists, and `overwrite` is False.
            DirectoryInTheWayError: a directory has the path.
            BeingWrittenError: another client is writing the file, and `overwrite` is False.
            InvalidRequestError: replication or block size are out of range.
            LeaseLostError: the blobs have waited for longer than the safety age.
            ParentNotDirectoryError, PathNotFoundError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        check_reachable_and_not_frozen(chain, context)
        if chain.target is not None and chain.target.id == self.file_id:
            return Changes(chain.target)  # an earlier call, whose reply was lost, has published it
        if self.is_repeated:
            raise OutcomeUnknownError(
                "it is unknown whether the file was published: look for it, or write it again", path=str(self.path)
            )
        if self.is_late():
            raise LeaseLostError(
                "the bytes of the file have waited for longer than the safety age, and may be deleted: write it again, "
                "under a lease if that takes so long",
                path=str(self.path),
            )
        check_replication(self.replication)
        check_block_size(self.block_size)
        if not self.path.names:
            raise DirectoryInTheWayError("the root is a directory: choose another path", path="/")
        deepest = chain.inodes[min(len(chain.inodes), len(self.path.names)) - 1]
        new = Inode(
            id=self.file_id,
            kind=InodeKind.FILE,
            mode=self.mode & 0o777,
            owner=context.caller.user,
            group=deepest.group,  # directories that have to be made in between have it too
            mtime_ms=context.now_ms if self.mtime_ms is None else self.mtime_ms,
            atime_ms=context.now_ms,
            replication=self.replication,
            block_size=self.block_size,
            extents=self.extents,
            writer=self.writer,
            xattrs=self.xattrs,
        )
        changes = Changes(new)
        if chain.target is None:
            parent = create_parent_directories(changes, chain, context, mode=None, allowed=self.parents)
            key = inode_key(parent.inode.id, self.path.names[-1])
            changes.inserts[key] = new
            charge_quotas(changes, chain.ancestors, names=parent.made + 1, space=new.space)
            trail = parent.trail
        else:
            key = chain.target_key
            self._check_file_replaceable(view, chain, context)
            changes.puts[key] = new
            discard_content_and_lease(changes, chain.target, context.now_ms)
            charge_quotas(changes, chain.ancestors, space=new.space - chain.target.space)
            changes.touched.add(chain.keys[-2])
            trail = list_ancestor_directories(chain, len(self.path.names) - 1)
        if self.writer:
            changes.new_values[lease_key(new.id)] = Lease(self.writer, context.now_ms, key, trail).encode()
        changes.new_values.update({data_key(blob): data for blob, data in self.data.items()})
        return changes

    def _check_file_replaceable(self, view: View, chain: ResolvedPath, context: OperationContext) -> None:
        """Check that the existing file may be replaced, even if it is being written."""
        target = chain.target
        assert target is not None
        context.caller.check(chain, len(self.path.names) - 1, WRITE)
        if target.is_directory:
            raise DirectoryInTheWayError("a directory has this path: choose another one", path=str(self.path))
        if not self.overwrite:
            require_no_live_writer(view, target, chain, context.now_ms)
            raise PathExistsError("a file has this path already: overwrite it or choose another", path=str(self.path))
        context.caller.check(chain, len(self.path.names), WRITE)
        context.caller.check_removal(chain)  # the new file belongs to the caller: its owner would lose it


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(FileOperation):
    """Open an existing file for appending: take its lease. The result is its inode before that; its content stays
    visible.

    Reads the inodes on the path, and writes the target and its lease.
    """

    path: NsPath
    writer: str

    def execute(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Return the changes that give the file's lease to the writer.

        Raises:
            PathNotFoundError, DirectoryInTheWayError, BeingWrittenError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        inode = get_unfrozen_target(chain, context)
        if inode.is_directory:
            raise DirectoryInTheWayError("the path is a directory, and a file is needed: check it", path=str(self.path))
        context.caller.check(chain, len(self.path.names), WRITE)
        if inode.writer != self.writer:  # else an earlier try has taken it
            require_no_live_writer(view, inode, chain, context.now_ms)
        lease = _make_lease(chain, self.writer, context.now_ms).encode()
        puts = {chain.target_key: replace(inode, writer=self.writer)}
        return Changes(inode, puts=puts, values={lease_key(inode.id): lease})


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteUnderLease(FileOperation):
    """Append extents to the file of a lease, and close the file if `closes`; the result is its inode.

    The lease is the writer's right: permissions on the path do not matter, as in HDFS. So a writer may go on after its
    file was moved to where the writer could not have opened it.

    Reads the inodes on the path, and writes the target and its lease.

    Attributes:
        path: the present path; see `find_path`.
        file_id: the id of the file: another file may now have the path.
        extents, data: what to add: see `Publish`. Extents that the file has already are not added again, so a writer
            may repeat them if it does not know whether they were added.
        closes: whether the writer is done: the lease ends.
        newest: the last blob of the file, as this writer knows it; empty if there was none, None if it does not matter.
            If the database has lost commits, the file may be shorter: new extents would be at a wrong offset.
        proof: a blob that nothing but an earlier call with `closes` can have added: if the file has it, that call has
            closed the file. Empty if there was no such call, or if it had nothing to add.
    """

    path: NsPath
    file_id: int
    writer: str
    extents: tuple[Extent, ...] = ()
    data: Mapping[str, bytes] = field(default_factory=dict)
    closes: bool = True
    newest: str | None = None
    proof: str = ""

    def execute(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Return the changes that add the extents, and renew or end the lease.

        Raises:
            LeaseLostError: the file does not have this path anymore, or the lease was recovered, even if the
                writer has nothing to add; or the database has lost what the writer had published.
            InvalidRequestError: the file would have too many extents.
        """
        (chain,) = view.chains
        inode = chain.target
        known = set() if inode is None else {extent.blob for extent in inode.extents}
        if inode is not None and inode.id == self.file_id and self._is_file_already_closed(known):
            return Changes(inode)
        if inode is None or inode.id != self.file_id or inode.writer != self.writer:
            raise LeaseLostError("the file is no longer this writer's: write it again", path=str(self.path))
        self._require_unchanged_file_end(inode, known)
        check_not_frozen(chain, context)
        extents = (*inode.extents, *(extent for extent in self.extents if extent.blob not in known))
        if len(extents) > MAX_EXTENTS:
            raise InvalidRequestError(
                f"a file has at most {MAX_EXTENTS} extents: write larger pieces, or copy the file", path=str(self.path)
            )
        written = replace(inode, extents=extents, mtime_ms=context.now_ms, writer="" if self.closes else self.writer)
        changes = Changes(written)
        changes.puts[chain.target_key] = written
        if self.closes:
            changes.deletes.add(lease_key(inode.id))
        else:
            changes.values[lease_key(inode.id)] = _make_lease(chain, self.writer, context.now_ms).encode()
        changes.new_values.update({data_key(blob): data for blob, data in self.data.items() if blob not in known})
        charge_quotas(changes, chain.ancestors, space=written.space - inode.space)
        return changes

    def _require_unchanged_file_end(self, inode: Inode, known: set[str]) -> None:
        """Check that the file ends with what this writer has published last."""
        if self.newest is None:
            return
        published = [self.newest, *(extent.blob for extent in self.extents if extent.blob in known)]
        if published[-1] != (inode.extents[-1].blob if inode.extents else ""):
            raise LeaseLostError(
                "the database has lost a part of the file that was synced, in a failover, a crash or a restore: write "
                "the file again",
                path=str(self.path),
            )

    def _is_file_already_closed(self, known: set[str]) -> bool:
        """Check whether an earlier call, whose reply was lost, has closed the file with this content."""
        return self.closes and self.proof in known and all(extent.blob in known for extent in self.extents)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverLease(FileOperation):
    """End the lease of a file, even of a live writer; what the writer has synced stays. The result is True: the file is
    closed.

    Reads the inodes on the path, and writes the target and its lease.

    Source: HDFS's ``recoverLease``, which does not ask whether the writer is silent.
    """

    path: NsPath

    def execute(self, view: View, context: OperationContext) -> Changes[bool]:
        """Return the changes that close the file and delete its lease.

        Raises:
            PathNotFoundError, PathIsDirectoryError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        inode = get_unfrozen_file(chain, context)
        if not inode.writer:
            return Changes(True)
        context.caller.check(chain, len(self.path.names), WRITE)
        key = lease_key(inode.id)
        return Changes(True, puts={chain.target_key: replace(inode, writer="")}, deletes={key})
