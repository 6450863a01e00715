"""Open files for reading; concatenate and truncate files by changing only their metadata."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import InvalidRequestError
from holdfast.namespace.errors import PathIsDirectoryError, PathNotFoundError
from holdfast.namespace.inode import Extent, Inode, is_integer_in_range
from holdfast.namespace.keys import data_key
from holdfast.namespace.operation import Changes, OperationContext, charge_quotas
from holdfast.namespace.operations.base import SinglePathOperation, discard_blobs, end_lease, get_unfrozen_file
from holdfast.namespace.operations.files import MAX_EXTENTS, FileOperation, require_no_live_writer
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import READ, WRITE
from holdfast.namespace.view import ResolvedPath, View

_MOST_LOADED_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OpenForReading(SinglePathOperation):
    """Read the inode of a file, and the bytes of its small blobs as a dict by the names of the blobs.

    Reads the inodes on the path and the small blobs as one snapshot. So a reader gets a small file
    as it was at one moment, even if it is replaced at the same time. A file that consists of very many small
    blobs is an exception: its bytes are read later.
    """

    path: NsPath

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the keys of the records with the bytes of the file's small blobs; none if they have more than 1 MiB in
        all.
        """
        target = chains[0].target
        small = [] if target is None else [extent for extent in target.extents if extent.inline]
        if sum(extent.length for extent in small) > _MOST_LOADED_BYTES:
            return ()
        return [data_key(extent.blob) for extent in small]

    def execute(self, view: View, context: OperationContext) -> Changes[tuple[Inode, Mapping[str, bytes]]]:
        """Return the inode and the stored bytes of small blobs as the result.

        Raises:
            PathNotFoundError, PathIsDirectoryError, ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        context.caller.check_traversal(chain)
        inode = chain.target
        if inode is None:
            raise PathNotFoundError("the file does not exist: check the path", path=str(self.path))
        if inode.is_directory:
            raise PathIsDirectoryError("the path is a directory: list it instead", path=str(self.path))
        context.caller.check(chain, len(self.path.names), READ)
        values = {extent.blob: view.value(data_key(extent.blob)) for extent in inode.extents if extent.inline}
        return Changes((inode, {blob: value for blob, value in values.items() if value is not None}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Concat(FileOperation):
    """Append the content of source files to a target file, and delete the sources. No bytes are copied. The result is
    the target's inode.

    Reads the inodes on all paths, and writes target, sources, and the leases of silent writers.

    Source: HDFS's ``FSDirConcatOp``, whose restrictions these are; but silent writers lose their leases.
    """

    target: NsPath
    sources: tuple[NsPath, ...]

    @property
    def paths(self) -> Sequence[NsPath]:
        """The paths that the operation reads: the target, then the sources."""
        return (self.target, *self.sources)

    def execute(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Return the changes that move the sources' blobs to the target and delete the sources.

        Raises:
            InvalidRequestError: there are no sources, one occurs twice, is the target, is empty, is in another
                directory, or has larger blocks than the target.
            PathNotFoundError, PathIsDirectoryError, BeingWrittenError, PermissionDeniedError: see the message.
        """
        if not self.sources:
            raise InvalidRequestError("concat needs sources: name at least one")
        target_chain = view.chains[0]
        target = get_unfrozen_file(target_chain, context)
        context.caller.check(target_chain, len(self.target.names), WRITE)
        require_no_live_writer(view, target, target_chain, context.now_ms)
        changes = Changes(target)
        extents = list(target.extents)
        space = 0
        for chain in view.chains[1:]:
            source = self._check_source(view, chain, target, context)
            extents += source.extents
            changes.deletes.add(chain.target_key)
            end_lease(changes, source)
            space += source.space
        if len(set(self.paths)) != len(self.paths):
            raise InvalidRequestError("concat needs sources that differ from each other: name each once")
        if len(extents) > MAX_EXTENTS:
            raise InvalidRequestError(f"a file has at most {MAX_EXTENTS} extents: copy the files", extents=len(extents))
        changed = replace(target, extents=tuple(extents), mtime_ms=context.now_ms, writer="")
        changes.puts[target_chain.target_key] = changes.result = changed
        end_lease(changes, target)
        changes.touched.add(target_chain.keys[-2])
        charge_quotas(
            changes, target_chain.ancestors, names=-len(self.sources), space=changed.space - target.space - space
        )
        return changes

    def _check_source(self, view: View, chain: ResolvedPath, target: Inode, context: OperationContext) -> Inode:
        """Check that a source may be appended to the target, and removed; return its inode."""
        source = get_unfrozen_file(chain, context)
        context.caller.check(chain, len(chain.path.names), READ)
        context.caller.check_removal(chain)
        require_no_live_writer(view, source, chain, context.now_ms)
        reason = ""
        if chain.path.parent != self.target.parent:
            reason = "in the directory of the target: move them"
        elif source.id == target.id:
            reason = "that are not the target: leave it out"
        elif not source.size:
            reason = "that are not empty: delete the empty ones"
        elif source.block_size > target.block_size:
            reason = "whose blocks are not larger than the target's: copy them"
        if reason:
            raise InvalidRequestError(f"concat needs sources {reason}", path=str(chain.path))
        return source


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(FileOperation):
    """Cut a file to a length; the result is its inode. The lease of a writer that has been silent for more than a
    minute ends.

    Reads the inodes on the path, and writes the target and the lease of a silent writer.
    """

    path: NsPath
    length: int

    def execute(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Return the changes that shorten the file and give up the blobs behind its new end.

        Raises:
            InvalidRequestError: the file is shorter.
            PathNotFoundError, PathIsDirectoryError, BeingWrittenError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        inode = get_unfrozen_file(chain, context)
        context.caller.check(chain, len(self.path.names), WRITE)
        require_no_live_writer(view, inode, chain, context.now_ms)
        if not is_integer_in_range(self.length, 0, inode.size):
            raise InvalidRequestError(
                "a file can only be cut: the length is from 0 to its size", length=self.length, size=inode.size
            )
        kept: list[Extent] = []
        cut: list[Extent] = []
        left = self.length
        for extent in inode.extents:
            if left > 0:
                kept.append(replace(extent, length=min(left, extent.length)))
                left -= extent.length
            else:
                cut.append(extent)
        changed = replace(inode, extents=tuple(kept), mtime_ms=context.now_ms, writer="")
        if changed.extents != inode.extents:
            changed = replace(changed, cuts=inode.cuts + 1)
        changes = Changes(changed)
        if changed.extents != inode.extents or inode.writer:
            changes.puts[chain.target_key] = changed
            end_lease(changes, inode)
            discard_blobs(changes, replace(inode, extents=tuple(cut)), context.now_ms)
            charge_quotas(changes, chain.ancestors, space=changed.space - inode.space)
        return changes
