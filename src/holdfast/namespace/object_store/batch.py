"""Create, replace and remove many files in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError
from holdfast.namespace.accounting import charge
from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import PathIsDirectoryError
from holdfast.namespace.inode import FILE_MODE, Extent, Inode, Kind
from holdfast.namespace.keys import children_range, data_key, inode_key, upload_key
from holdfast.namespace.object_store.uploads import Upload, encode_metadata
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import (
    PathGroup,
    check_chain,
    discard_file,
    grown,
    make_parents,
)
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import WRITE
from holdfast.namespace.view import Chain, View
from holdfast.transactions.base import RangeCount

__all__ = ["Batch", "Create", "Remove", "etag_of"]


def etag_of(inode: Inode) -> str:
    """Return a text that changes with the content of a file, and never comes again."""
    text = "".join(f"{one.blob}:{one.length};" for one in inode.extents)
    return f"{inode.id:x}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """A file to create.

    Attributes:
        file_id: the id of the new inode.
        extents, data: the content: see `Publish`.
        metadata: of the object.
        upload: the token of the pending upload that it completes, which must exist; else empty.
        numbers: the parts of the upload, each with its blob, in their order.
        must_be_absent: whether the path must be free.
        etag: what the existing file's etag must be; empty for any.
    """

    path: NsPath
    file_id: int
    extents: tuple[Extent, ...] = ()
    data: Mapping[str, bytes] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    upload: str = ""
    numbers: Sequence[tuple[int, str]] = ()
    must_be_absent: bool = False
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Remove:
    """A file to remove; nothing happens if it does not exist, or has another etag than a given one."""

    path: NsPath
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(PathGroup):
    """Create, replace and remove files; returns the new inodes, in the order of `creates`.

    Group: the inodes on all paths, shared; targets and uploads, exclusively.

    Attributes:
        required: paths of files that must exist.
        empty: a directory that must have no entries, if it exists.
    """

    creates: Sequence[Create] = ()
    removes: Sequence[Remove] = ()
    required: Sequence[NsPath] = ()
    empty: NsPath | None = None
    replication: int = 1
    block_size: int = 128 * 1024 * 1024

    @property
    def paths(self) -> Sequence[NsPath]:
        """All paths; the directory that must be empty comes last."""
        paths = [one.path for one in self.creates]
        paths += [one.path for one in self.removes]
        paths += self.required
        return paths if self.empty is None else [*paths, self.empty]

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the records of the uploads."""
        return [upload_key(one.upload) for one in self.creates if one.upload]

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return the entries of the directory that must be empty."""
        target = chains[-1].target if self.empty is not None else None
        return children_range(target.id) if target is not None and target.is_directory else None

    def execute(self, view: View, context: Context) -> Changes[list[Inode]]:
        """See `Operation`.

        Raises:
            PreconditionError: a condition does not hold; its variable ``key`` names the key.
            NotFoundError: an upload does not exist; ``key`` names its key.
            InvalidRequestError: a part is missing, or a path is or is below something that forbids the file.
            PermissionDeniedError: see the message.
        """
        changes: Changes[list[Inode]] = Changes([])
        builder = _Builder(changes, view, context)
        count = len(self.creates)
        for one, chain in zip(self.creates, view.chains, strict=False):
            changes.result.append(builder.create(one, chain, self))
        for gone, chain in zip(self.removes, view.chains[count:], strict=False):
            builder.remove(gone, chain)
        for path, chain in zip(self.required, view.chains[count + len(self.removes) :], strict=False):
            if chain.target is None or chain.target.is_directory:
                raise PreconditionError("the object does not exist: read again, then decide", key=_key(path))
        span = self.peek(view.chains)
        if span is not None and self.empty is not None:
            if view.has_children:
                raise PreconditionError("the directory is not empty: list it, then decide", key=f"{_key(self.empty)}/")
            changes.ranges.append(RangeCount(view.chains[-1].target_key, *span, 0))
        return changes


def _key(path: NsPath) -> str:
    return str(path)[1:]


class _Builder:
    """Adds files to the changes."""

    def __init__(self, changes: Changes[Any], view: View, context: Context) -> None:
        self._changes = changes
        self._view = view
        self._context = context

    def create(self, one: Create, chain: Chain, batch: Batch) -> Inode:
        chain = grown(chain, self._view, self._changes)
        check_chain(chain, self._context)
        target = chain.target
        if target is not None and target.is_directory:
            raise PathIsDirectoryError("a directory has this key: choose another one", key=_key(one.path))
        if one.must_be_absent and target is not None:
            raise PreconditionError("the object exists already: read it, then decide", key=_key(one.path))
        if one.etag and (target is None or etag_of(target) != one.etag):
            raise PreconditionError("the object is not the expected one: read it, then decide", key=_key(one.path))
        upload = self._upload(one)
        parent = self._parent(chain)
        inode = Inode(
            id=one.file_id if upload is None else upload.file_id,
            kind=Kind.FILE,
            mode=FILE_MODE,
            owner=self._context.caller.user,
            group=parent.group,
            mtime_ms=self._context.now_ms,
            atime_ms=self._context.now_ms,
            replication=batch.replication,
            block_size=batch.block_size,
            extents=one.extents if upload is None else _extents(one, upload),
            xattrs=encode_metadata(one.metadata if upload is None else upload.metadata),
        )
        self._changes.new_values.update({data_key(blob): data for blob, data in one.data.items()})
        if target is None:
            self._changes.inserts[inode_key(parent.id, one.path.names[-1])] = inode
            charge(self._changes, chain.ancestors, names=1, space=inode.space)
        else:
            self._context.caller.check(chain, len(one.path.names), WRITE)
            self._changes.puts[chain.target_key] = inode
            discard_file(self._changes, target, self._context.now_ms)
            charge(self._changes, chain.ancestors, space=inode.space - target.space)
        return inode

    def _upload(self, one: Create) -> Upload | None:
        if not one.upload:
            return None
        key = upload_key(one.upload)
        value = self._view.value(key)
        if value is None:
            raise NotFoundError("no such upload: it was completed or aborted", key=_key(one.path), upload_id=one.upload)
        upload = Upload.decode(key, value)
        if upload.path != str(one.path):
            raise NotFoundError("no such upload: it has another key", key=_key(one.path), upload_id=one.upload)
        self._changes.deletes.add(key)
        return upload

    def _parent(self, chain: Chain) -> Inode:
        """Return the parent of a target, and make the directories that are missing above it."""
        if chain.parent is not None and chain.parent.is_directory:
            self._context.caller.check(chain, len(chain.path.names) - 1, WRITE)
            self._changes.touched.add(chain.keys[-2])
            return chain.parent
        parents = make_parents(self._changes, chain, self._context, mode=None)
        charge(self._changes, chain.ancestors, names=parents.made)
        return parents.inode

    def remove(self, one: Remove, chain: Chain) -> None:
        target = chain.target
        if target is None or target.is_directory or (one.etag and etag_of(target) != one.etag):
            return
        check_chain(chain, self._context)
        self._context.caller.check_removal(chain)
        self._changes.touched.add(chain.keys[-2])
        self._changes.deletes.add(chain.target_key)
        discard_file(self._changes, target, self._context.now_ms)
        charge(self._changes, chain.ancestors, names=-1, space=-target.space)


def _extents(one: Create, upload: Upload) -> tuple[Extent, ...]:
    """Return the extents of the parts that complete an upload."""
    extents = []
    for number, blob in one.numbers:
        part = upload.parts.get(number)
        if part is None or part.blob != blob:
            raise InvalidRequestError("a part was not uploaded: upload it again", key=_key(one.path), part=number)
        if part.length:
            extents.append(part)
    return tuple(extents)
