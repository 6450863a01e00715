"""Change objects and pending uploads: the operations of the namespace, with the conditions of an object store.

Each change is an operation on one path; `Batch` makes many of them one step. A file that is being written is
replaced or removed like any other, as by `Publish` with `overwrite` and by `Delete` (and by HDFS): its writer has lost
the lease, and changes nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from holdfast.errors import InvalidRequestError, PreconditionError
from holdfast.namespace.errors import (
    LeaseLostError,
    ParentNotDirectoryError,
    PathIsDirectoryError,
    PermissionDeniedError,
)
from holdfast.namespace.inode import Extent, Inode
from holdfast.namespace.keys import data_key, parts_key, upload_key
from holdfast.namespace.listing import etag_of
from holdfast.namespace.object_store.directories import mark_directories, require_no_files
from holdfast.namespace.operation import Changes, Context
from holdfast.namespace.operations.base import OnePath, PathGroup, check_chain, discard_extents
from holdfast.namespace.operations.files import FileGroup, Publish
from holdfast.namespace.operations.names import Delete
from holdfast.namespace.other_records import (
    Upload,
    decode_parts,
    encode_metadata,
    encode_parts,
    no_such_upload,
    page_of,
)
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, WRITE, Caller
from holdfast.namespace.view import Chain, View

R = TypeVar("R")


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
            self.file, path=self.path, file_id=upload.file_id, extents=extents, xattrs=encode_metadata(upload.metadata)
        )
        changes = file.execute(view, context)
        mark_directories(changes)
        changes.deletes.update(self._records())
        discard_extents(changes, _left_out(parts, extents), context.now_ms)
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
class RequireObject(OnePath):
    """Change nothing; refuse if a file does not exist, or has another etag than a given one.

    Group: the inodes on the path, shared.
    """

    path: NsPath
    etag: str = ""

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
        paths: of the directory, and of all below it that were just seen.
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


# --- pending uploads --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class BeginUpload(OnePath):
    """Note a new upload, which has no parts yet.

    Group: the inodes on the path, shared.
    """

    path: NsPath
    token: str
    upload: Upload

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `CheckTargets`."""
        changes = CheckTargets(self.paths, by_rename=False).execute(view, context)
        changes.new_values[upload_key(self.token)] = self.upload.encode()
        return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPart(OnePath):
    """Note a part, whose bytes are durable, in its page of the upload; a part of the same number goes.

    Group: the inodes on the path, and the upload, shared; the page, exclusively. The first page, and the numbers of the
    others, are in the record of the upload.

    Attributes:
        path: of the file to be.
        token: of the upload.
        data: the bytes of a small part, by the name of its blob.
        is_late: tells whether the part is so old by now that a sweep may take it for garbage (N3): see `Publish`.
    """

    path: NsPath
    token: str
    number: int
    part: Extent
    data: Mapping[str, bytes] = field(default_factory=dict)
    is_late: Callable[[], bool] = field(default=lambda: False, compare=False)

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the record of the upload, and that of the page."""
        return {upload_key(self.token), self._page_key}

    @property
    def _page_key(self) -> bytes:
        page = page_of(self.number)
        return parts_key(self.token, page) if page else upload_key(self.token)

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `Operation`.

        Raises:
            NotFoundError: the upload was completed or aborted, or its directory renamed.
            PermissionDeniedError: the caller may not write the directory of the upload.
            LeaseLostError: the part has waited for longer than the safety age.
        """
        upload = pending_upload(view, self.token, self.path)
        if upload is None:
            raise no_such_upload(str(self.path)[1:], self.token)
        _check_use(view.chains[0], context)
        if self.is_late():
            raise LeaseLostError(
                "the bytes of the part have waited for longer than the safety age, and may be deleted: upload it again",
                path=str(self.path),
            )
        changes = Changes(None)
        changes.new_values.update({data_key(blob): content for blob, content in self.data.items()})
        page = page_of(self.number)
        parts = parts_of(view.value, upload, self.token, [page])
        if self.number in parts:
            discard_extents(changes, [parts[self.number]], context.now_ms)
        parts[self.number] = self.part
        if not page:
            changes.values[self._page_key] = replace(upload, parts=parts).encode()
            return changes
        changes.values[self._page_key] = encode_parts(parts)
        if page not in upload.pages:
            changes.values[upload_key(self.token)] = replace(upload, pages=upload.pages | {page}).encode()
        return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortUpload(OnePath):
    """Remove a pending upload with its parts; returns whether it is gone. It stays if it has got another page.

    Group: the inodes on the path, shared; the upload and its pages, exclusively.

    Attributes:
        path: of the file to be.
        token: of the upload.
        pages: those that the upload had just before.
    """

    path: NsPath
    token: str
    pages: Collection[int] = ()

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the record of the upload, and those of its pages."""
        return [upload_key(self.token), *(parts_key(self.token, page) for page in self.pages)]

    def execute(self, view: View, context: Context) -> Changes[bool]:
        """See `Operation`.

        Raises:
            PermissionDeniedError: the caller may not write the directory of the upload.
        """
        changes = Changes(True)
        upload = pending_upload(view, self.token, self.path)
        if upload is None:
            return changes
        _check_use(view.chains[0], context)
        if not upload.pages.issubset(self.pages):
            return Changes(False)
        changes.deletes.update(self.also(view.chains))
        discard_extents(changes, parts_of(view.value, upload, self.token, [0, *self.pages]).values(), context.now_ms)
        return changes


def parts_of(
    value_of: Callable[[bytes], bytes | None], upload: Upload, token: str, pages: Iterable[int]
) -> dict[int, Extent]:
    """Return the parts of an upload that are in some of its pages.

    Args:
        value_of: returns the value of a page's record; None if it does not exist.
    """
    found: dict[int, Extent] = {}
    for page in pages:
        key = parts_key(token, page)
        value = value_of(key)
        found.update(upload.parts if not page else {} if value is None else decode_parts(key, value))
    return found


def pending_upload(view: View, token: str, path: NsPath) -> Upload | None:
    """Return the pending upload of a path."""
    value = view.value(upload_key(token))
    upload = None if value is None else Upload.decode(upload_key(token), value)
    return upload if upload is not None and upload.path == str(path) else None


def _check_use(chain: Chain, context: Context) -> None:
    if not may_use(chain, context.caller):
        raise PermissionDeniedError(
            "the user may not write the directory of the upload: ask its owner",
            key=str(chain.path)[1:],
            user=context.caller.user,
        )


# --- rights -----------------------------------------------------------------------------------------------------------
# Whether the caller may write objects is also asked in advance: a job must not run, and fail at its end (C11).
@dataclass(frozen=True, slots=True)
class CheckTargets(PathGroup):
    """Change nothing; refuse if an object could not be written to one of the paths now.

    Group: the inodes on the paths, as one snapshot.

    Attributes:
        by_rename: whether a file is renamed to the path, which needs no permission on a file that it replaces.
    """

    paths: Sequence[NsPath]
    by_rename: bool

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `Operation`.

        Raises:
            PathIsDirectoryError: a directory has one of the paths.
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        for chain in view.chains:
            context.caller.check_traversal(chain)
            if chain.target is not None and chain.target.is_directory:
                raise PathIsDirectoryError("a directory has this key: choose another one", key=str(chain.path)[1:])
            context.caller.check(chain, len(chain.ancestors) - 1, WRITE)
            if chain.target is not None:
                context.caller.check_removal(chain)
                if not self.by_rename:
                    context.caller.check(chain, len(chain.path.names), WRITE)
        return Changes(None)


@dataclass(frozen=True, slots=True)
class MaySee(PathGroup):
    """Return, for each path of a pending upload, whether the caller may see the upload.

    Group: the inodes on the paths, as one snapshot.
    """

    paths: Sequence[NsPath]

    def execute(self, view: View, context: Context) -> Changes[list[bool]]:
        """See `Operation`."""
        return Changes([may_use(chain, context.caller, or_read=True) for chain in view.chains])


def may_use(chain: Chain, caller: Caller, *, or_read: bool = False) -> bool:
    """Check whether a caller may add parts to the pending uploads of a path, and abort them.

    An upload belongs to the directory in which its file will be, or to the deepest one that exists. Whoever may write
    that directory may use it; whoever may list it, or write it, sees it.

    Args:
        or_read: whether permission to list the directory is enough.
    """
    # A file above the path makes the upload useless; it must be possible to abort it.
    above = [inode for inode in chain.ancestors if inode.is_directory]
    if not all(caller.may(inode, EXECUTE) for inode in above):
        return False
    return caller.may(above[-1], WRITE) or (or_read and caller.may(above[-1], READ))
