"""Make the changes of an object store: the operations of the namespace, with the conditions of a store.

Each change is an operation on one path; `Together` makes many of them one step. A file that somebody is writing is
replaced or removed like any other, as by `Publish` with `overwrite` and by `Delete` (and by HDFS): its writer has lost
the lease, and changes nothing any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.errors import InvalidRequestError, PreconditionError
from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import ParentNotDirectoryError, PathIsDirectoryError
from holdfast.namespace.inode import Extent, Inode
from holdfast.namespace.keys import parts_key, upload_key
from holdfast.namespace.object_store.directories import mark_directories, require_no_files
from holdfast.namespace.object_store.parts import parts_of, pending_upload
from holdfast.namespace.object_store.uploads import Upload, encode_metadata, no_such_upload, page_of
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import PathGroup, check_chain, discard_blobs
from holdfast.namespace.operations.delete import Delete
from holdfast.namespace.operations.files import FileGroup, Publish
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ
from holdfast.namespace.status import etag_of
from holdfast.namespace.view import Chain, View


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateObject(FileGroup):
    """Create or replace a file under a condition; returns its inode.

    Group: that of `Publish`, and the upload with its pages, exclusively.

    Attributes:
        file: the file to be. An upload knows its path, id, content and metadata by itself.
        upload: the token of the pending upload that it completes, which must exist; else empty.
        numbers: the parts of the upload, each with its blob, in their order.
        pages: the pages that the upload has, as far as the caller knows; those of `numbers` are known.
        must_be_absent: whether the path must be free.
        etag: what the existing file's etag must be; empty for any.
        keys: gets the key of the inode's record: it stays the same if a directory above the file is renamed.
    """

    path: NsPath
    file: Publish
    upload: str = ""
    numbers: Sequence[tuple[int, str]] = ()
    pages: frozenset[int] = frozenset()
    must_be_absent: bool = False
    etag: str = ""
    keys: dict[int, bytes] = field(default_factory=dict, compare=False)

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the records of the lease, of the upload, and of its pages."""
        return [*self.file.also(chains), *self._records()]

    def _pages(self) -> set[int]:
        return {0, *self.pages, *(page_of(number) for number, _ in self.numbers)}

    def _records(self) -> list[bytes]:
        """Return the keys of the upload: its record, and those of its pages."""
        if not self.upload:
            return []
        return [upload_key(self.upload), *(parts_key(self.upload, page) for page in self._pages() if page)]

    def execute(self, view: View, context: Context) -> Changes[Inode]:
        """See `Operation`.

        Raises:
            PreconditionError: a condition does not hold; its variable ``key`` names the key.
            NotFoundError: the upload does not exist; ``key`` names its key.
            InvalidRequestError: a part is missing; or the upload has parts on other pages.
            ParentNotDirectoryError, PathIsDirectoryError: a file is above the path, or a directory has it, even if the
                same step removes it.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        target = chain.target
        key = _key(self.path)
        if _is_below_file(chain, context):
            raise ParentNotDirectoryError(
                "a file is above this key: delete it in an earlier call, or choose another key", key=key
            )
        if target is not None and target.is_directory:
            raise PathIsDirectoryError(
                "a directory has this key: remove what is in it in an earlier call, or choose another key", key=key
            )
        if self.must_be_absent and target is not None:
            raise PreconditionError("the object exists already: read it, then decide", key=key)
        if self.etag and (target is None or etag_of(target) != self.etag):
            raise PreconditionError("the object is not the expected one: read it, then decide", key=key)
        if not self.upload:
            changes = self.file.execute(view, context)
            mark_directories(changes)
            self.keys.update((inode.id, key) for key, inode in changes.inserts.items() if inode is changes.result)
            return changes
        upload = self._pending(view, key)
        parts = parts_of(view.value, upload, self.upload, self._pages())
        extents = self._extents(parts, key)
        file = replace(
            self.file,
            path=self.path,
            file_id=upload.file_id,
            extents=extents,
            xattrs=encode_metadata(upload.metadata),
        )
        changes = file.execute(view, context)
        mark_directories(changes)
        changes.deletes.update(self._records())
        discard_blobs(changes, replace(changes.result, extents=_left_out(parts, extents)), context.now_ms)
        return changes

    def _pending(self, view: View, key: str) -> Upload:
        upload = pending_upload(view, self.upload, self.path)
        if upload is None:
            raise no_such_upload(key, self.upload)
        if not upload.pages.issubset(self._pages()):
            raise InvalidRequestError(
                "the upload has parts beyond those that complete it: abort it, and upload the object again", key=key
            )
        return upload

    def _extents(self, parts: Mapping[int, Extent], key: str) -> tuple[Extent, ...]:
        """Return the extents of the parts that complete an upload."""
        extents = []
        for number, blob in self.numbers:
            part = parts.get(number)
            if part is None or part.blob != blob:
                raise InvalidRequestError("a part was not uploaded: upload it again", key=key, part=number)
            if part.length:
                extents.append(part)
        return tuple(extents)


@dataclass(frozen=True, slots=True)
class RemoveObject(FileGroup):
    """Remove a file; nothing happens if it does not exist, or has another etag than a given one.

    Group: that of `Delete`, and the lease of the file if it is being written.

    Attributes:
        emptied: gets the directory that loses a file: it may be empty then.
    """

    path: NsPath
    etag: str = ""
    emptied: set[NsPath] = field(default_factory=set, compare=False)

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def execute(self, view: View, context: Context) -> Changes[bool]:
        """Return whether the file was there. For the rest, see `Operation`.

        Raises:
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        target = chain.target
        if _is_below_file(chain, context):
            return Changes(False)
        if target is not None and (target.is_directory or (self.etag and etag_of(target) != self.etag)):
            return Changes(False)
        changes = Delete(path=self.path).execute(view, context)
        if changes.result:
            self.emptied.add(self.path.parent)
        return changes


@dataclass(frozen=True, slots=True)
class RequireObject(PathGroup):
    """Change nothing; refuse if a file does not exist, or has another etag than a given one.

    Group: the inodes on the path, shared.
    """

    path: NsPath
    etag: str = ""

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `Operation`.

        Raises:
            PreconditionError: there is no such file.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        target = None if _is_below_file(chain, context) else chain.target
        if target is None or target.is_directory or self.etag not in ("", etag_of(target)):
            raise PreconditionError("the object is not there: read again, then decide", key=_key(self.path))
        return Changes(None)


@dataclass(frozen=True, slots=True)
class RequireNoObjects(PathGroup):
    """Change nothing; conflict if a directory contains anything but certain directories. It need not exist.

    Group: the inodes on the paths, shared; the directories, exclusively; the absence of anything else in them.

    Attributes:
        paths: of the directory, and of all below it that somebody has just seen.
    """

    paths: Sequence[NsPath]

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `Operation`.

        Raises:
            PermissionDeniedError: see the message.
        """
        changes: Changes[None] = Changes(None)
        chains = [chain for chain in view.chains if not _is_below_file(chain, context)]
        for chain in chains:
            if chain.target is not None and chain.target.is_directory:
                context.caller.check(chain, len(chain.path.names), READ | EXECUTE)
        require_no_files(changes, chains)
        return changes


def _left_out(parts: Mapping[int, Extent], extents: Collection[Extent]) -> tuple[Extent, ...]:
    """Return the parts of an upload that its file does not have."""
    kept = set(extents)
    return tuple(part for part in parts.values() if part.length and part not in kept)


def _is_below_file(chain: Chain, context: Context) -> bool:
    """Check whether something above the target is a file: then a store has no object there. Else, see `check_chain`."""
    try:
        check_chain(chain, context)
    except ParentNotDirectoryError:
        return True
    return False


def _key(path: NsPath) -> str:
    return str(path)[1:]
