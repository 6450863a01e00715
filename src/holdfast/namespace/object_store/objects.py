"""Define the operations of the namespace's object store: on objects, with conditions, and on pending uploads.

Each change is an operation on one path; a `OperationBatch` makes many of them one step. A file that is being written is
replaced or removed like any other, as by `Publish` with `overwrite` and by `Delete` (and by HDFS): its writer has lost
the lease, and changes nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.errors import InvalidRequestError, PreconditionError
from holdfast.namespace.errors import (
    LeaseLostError,
    ParentNotDirectoryError,
    PathIsDirectoryError,
    PermissionDeniedError,
)
from holdfast.namespace.inode import MADE_FOR_OBJECTS, Extent, Inode, InodeKind
from holdfast.namespace.keys import children_range, data_key, upload_key
from holdfast.namespace.listing import etag_of_inode
from holdfast.namespace.operation import Changes, OperationContext
from holdfast.namespace.operations.base import (
    PathsOnlyOperation,
    SinglePathOperation,
    check_reachable_and_not_frozen,
    discard_extents,
)
from holdfast.namespace.operations.files import FileOperation, Publish
from holdfast.namespace.operations.names import Delete
from holdfast.namespace.other_records import Upload, encode_metadata, no_such_upload_error
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, WRITE, Caller
from holdfast.namespace.view import ResolvedPath, View
from holdfast.stores.base import Create, Part, PutMode, Update
from holdfast.transactions.base import RangeCount


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateObject(FileOperation):
    """Create or replace the file of an object if a condition (`mode`) holds; the result is its inode.

    Reads and writes what `Publish` does, and writes the upload.

    Attributes:
        file: the operation that publishes the file; id, content and metadata come from `upload`, if any.
        upload: the token of the pending upload that it completes, which must exist; else empty.
        parts: those that complete the upload, in their order.
        keys: filled with the record key of a new inode, by its id; a rename of a directory above keeps the key.
    """

    path: NsPath
    file: Publish
    mode: PutMode
    upload: str = ""
    parts: Sequence[Part] = ()
    keys: dict[int, bytes] = field(default_factory=dict, compare=False)

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the database keys of the file's lease, if it has one, and of the upload that the object comes from."""
        return [*self.file.extra_keys(chains), *([upload_key(self.upload)] if self.upload else ())]

    def execute(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Return the changes that publish the object, and that end the upload it completes.

        Raises:
            PreconditionError: a condition does not hold; its variable ``key`` names the key.
            NotFoundError: the upload does not exist; ``key`` names its key.
            InvalidRequestError: a part is missing.
            ParentNotDirectoryError, PathIsDirectoryError: a file is above the path, or a directory has it, even if the
                same step removes it.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        target, key = chain.target, _object_key(self.path)
        if _is_below_file(chain, context):
            raise ParentNotDirectoryError(
                "a file is above this key: delete it in an earlier call, or choose another key", key=key
            )
        if target is not None and target.is_directory:
            raise PathIsDirectoryError(
                "a directory has this key: remove what is in it in an earlier call, or choose another key", key=key
            )
        if isinstance(self.mode, Create) and target is not None:
            raise PreconditionError("the object exists already: read it, then decide", key=key)
        if isinstance(self.mode, Update) and (target is None or etag_of_inode(target) != self.mode.etag):
            raise PreconditionError("the object is not the expected one: read it, then decide", key=key)
        changes = self._publish_upload(view, context) if self.upload else self.file.execute(view, context)
        for at, inode in changes.inserts.items():
            if inode.is_directory:
                changes.inserts[at] = replace(inode, xattrs={MADE_FOR_OBJECTS: _encode_rights(inode)})
            elif not self.upload:
                self.keys[inode.id] = at
        return changes

    def _publish_upload(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Publish the file of the upload; what the parts that complete it leave out becomes garbage."""
        upload = pending_upload(view, self.upload, self.path)
        if upload is None:
            raise no_such_upload_error(_object_key(self.path), self.upload)
        extents = []
        for part in self.parts:
            extent = upload.parts.get(part.number)
            if extent is None or extent.blob != part.etag:
                raise InvalidRequestError(
                    "a part was not uploaded: upload it again", key=_object_key(self.path), part=part.number
                )
            if extent.length:
                extents.append(extent)
        file = replace(
            self.file, file_id=upload.file_id, extents=tuple(extents), xattrs=encode_metadata(upload.metadata)
        )
        changes = file.execute(view, context)
        changes.deletes.add(upload_key(self.upload))
        discard_extents(changes, _parts_left_out(upload.parts, extents), context.now_ms)
        return changes


def _parts_left_out(parts: Mapping[int, Extent], extents: Collection[Extent]) -> list[Extent]:
    """Return the parts of an upload that its file does not have."""
    kept = set(extents)
    return [part for part in parts.values() if part.length and part not in kept]


@dataclass(frozen=True, slots=True)
class DeleteObjectFile(FileOperation):
    """Delete the file of an object; do nothing if it does not exist, or has another etag than a given one. The result
    is whether it was deleted.

    Reads and writes what `Delete` does, and writes the lease of the file if it is being written.

    Attributes:
        emptied: gets the directory that loses a file: it may be empty then.
    """

    path: NsPath
    etag: str = ""
    emptied: set[NsPath] = field(default_factory=set, compare=False)

    def execute(self, view: View, context: OperationContext) -> Changes[bool]:
        """Return the changes that delete the file.

        Raises:
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        target = chain.target
        if _is_below_file(chain, context):
            return Changes(False)
        if target is not None and (target.is_directory or (self.etag and etag_of_inode(target) != self.etag)):
            return Changes(False)
        changes = Delete(path=self.path).execute(view, context)
        if changes.result:
            self.emptied.add(self.path.parent)
        return changes


@dataclass(frozen=True, slots=True)
class RequireObject(SinglePathOperation):
    """Require, in a transaction, that an object exists and has a given etag (any if empty); changes nothing.

    Reads the inodes on the path.
    """

    path: NsPath
    etag: str = ""

    def execute(self, view: View, context: OperationContext) -> Changes[None]:
        """Return no changes if the object is there.

        Raises:
            PreconditionError: there is no such file.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        target = None if _is_below_file(chain, context) else chain.target
        if target is None or target.is_directory or self.etag not in ("", etag_of_inode(target)):
            raise PreconditionError("the object is not there: read again, then decide", key=_object_key(self.path))
        return Changes(None)


@dataclass(frozen=True, slots=True)
class RequireEmptyDirectory(SinglePathOperation):
    """Require, in a transaction, that a directory is empty or does not exist; changes nothing.

    Reads the inodes on the path and that the directory is empty, and writes the directory.
    """

    path: NsPath

    def execute(self, view: View, context: OperationContext) -> Changes[None]:
        """Return the condition that the directory has no entries; the commit conflicts if it does not hold.

        Raises:
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        changes: Changes[None] = Changes(None)
        if not _is_below_file(chain, context) and chain.target is not None and chain.target.is_directory:
            context.caller.check(chain, len(self.path.names), READ | EXECUTE)
            changes.ranges.append(RangeCount(chain.target_key, *children_range(chain.target.id), 0))
        return changes


def _is_below_file(chain: ResolvedPath, context: OperationContext) -> bool:
    """Check whether something above the target is a file: then a store has no object there.

    Raises:
        NamespaceError: see `check_reachable_and_not_frozen`.
    """
    try:
        check_reachable_and_not_frozen(chain, context)
    except ParentNotDirectoryError:
        return True
    return False


def _object_key(path: NsPath) -> str:
    return str(path)[1:]


# --- directories ------------------------------------------------------------------------------------------------------
# An object store has no directories, so those that it makes by the way must go by the way. Others must stay: users made
# them, and may have given them quotas, permissions or attributes. Every client has to know the difference, so a
# directory that was made for an object carries a mark: an extended attribute, with the rights that the directory had.
@dataclass(frozen=True, slots=True)
class RemoveEmptyDirectory(SinglePathOperation):
    """Remove a directory if the object store made it and it is empty and unchanged; the result is whether it is gone.

    Reads and writes the same records as `Delete`.
    """

    path: NsPath

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        """Return the range of the directory's children if it may be removed."""
        target = chains[0].target
        return children_range(target.id) if target is not None and is_untouched_implicit_directory(target) else None

    def execute(self, view: View, context: OperationContext) -> Changes[bool]:
        """Return the changes that delete the directory.

        Raises:
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        if chain.target is None:
            check_reachable_and_not_frozen(chain, context)
            return Changes(True)
        if not is_untouched_implicit_directory(chain.target) or view.has_records_in_extra_range:
            return Changes(False)
        return Delete(path=self.path).execute(view, context)


def _encode_rights(inode: Inode) -> bytes:
    return f"{inode.mode:o} {inode.owner} {inode.group}".encode()


def is_untouched_implicit_directory(inode: Inode) -> bool:
    """Check whether a directory was made for an object, and its rights, quotas and attributes are unchanged."""
    return inode == Inode(
        id=inode.id,
        kind=InodeKind.DIRECTORY,
        mode=inode.mode,
        owner=inode.owner,
        group=inode.group,
        mtime_ms=inode.mtime_ms,
        atime_ms=inode.atime_ms,
        moving=inode.moving,
        moving_until_ms=inode.moving_until_ms,
        xattrs={MADE_FOR_OBJECTS: _encode_rights(inode)},
    )


# --- pending uploads --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class BeginUpload(SinglePathOperation):
    """Create the record of a new pending upload, without parts.

    Reads the inodes on the path.
    """

    path: NsPath
    token: str
    upload: Upload

    def execute(self, view: View, context: OperationContext) -> Changes[None]:
        """Return the change that inserts the upload's record. For the errors, see `CheckWritablePaths.execute`."""
        changes = CheckWritablePaths(self.paths).execute(view, context)
        changes.new_values[upload_key(self.token)] = self.upload.encode()
        return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class AddUploadPart(SinglePathOperation):
    """Add a part, whose bytes are stored, to a pending upload; it replaces an earlier part of the same number.

    Reads the inodes on the path, and writes the upload.

    Attributes:
        path: of the file to be.
        token: of the upload.
        data: the bytes of a small part, by the name of its blob.
        is_late: returns whether the part is so old that a sweep may take it for garbage (N3); see `Publish`.
    """

    path: NsPath
    token: str
    number: int
    part: Extent
    data: Mapping[str, bytes] = field(default_factory=dict)
    is_late: Callable[[], bool] = field(default=lambda: False, compare=False)

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the key of the upload's record."""
        return [upload_key(self.token)]

    def execute(self, view: View, context: OperationContext) -> Changes[None]:
        """Return the changes that add the part to the upload's record.

        Raises:
            NotFoundError: the upload was completed or aborted.
            PermissionDeniedError: the caller may not write the directory of the upload.
            LeaseLostError: the part has waited for longer than the safety age.
        """
        upload = pending_upload(view, self.token, self.path)
        if upload is None:
            raise no_such_upload_error(_object_key(self.path), self.token)
        _require_upload_use(view.chains[0], context)
        if self.is_late():
            raise LeaseLostError(
                "the bytes of the part have waited for longer than the safety age, and may be deleted: upload it again",
                path=str(self.path),
            )
        changes = Changes(None)
        changes.new_values.update({data_key(blob): content for blob, content in self.data.items()})
        if self.number in upload.parts:
            discard_extents(changes, [upload.parts[self.number]], context.now_ms)
        parts = {**upload.parts, self.number: self.part}
        changes.values[upload_key(self.token)] = replace(upload, parts=parts).encode()
        return changes


@dataclass(frozen=True, slots=True)
class AbortUpload(SinglePathOperation):
    """Delete a pending upload with its parts, if it exists.

    Reads the inodes on the path, and writes the upload.

    Attributes:
        path: of the file to be.
        token: of the upload.
    """

    path: NsPath
    token: str

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the key of the upload's record."""
        return [upload_key(self.token)]

    def execute(self, view: View, context: OperationContext) -> Changes[None]:
        """Return the changes that delete the upload and give up its parts.

        Raises:
            PermissionDeniedError: the caller may not write the directory of the upload.
        """
        changes: Changes[None] = Changes(None)
        upload = pending_upload(view, self.token, self.path)
        if upload is not None:
            _require_upload_use(view.chains[0], context)
            changes.deletes.add(upload_key(self.token))
            discard_extents(changes, upload.parts.values(), context.now_ms)
        return changes


def pending_upload(view: View, token: str, path: NsPath) -> Upload | None:
    """Return the pending upload with a token, from a view, if it is one for the given path; else None."""
    value = view.value(upload_key(token))
    upload = None if value is None else Upload.decode(upload_key(token), value)
    return upload if upload is not None and upload.path == str(path) else None


def _require_upload_use(chain: ResolvedPath, context: OperationContext) -> None:
    if not has_upload_permission(chain, context.caller):
        raise PermissionDeniedError(
            "the user may not write the directory of the upload: ask its owner",
            key=_object_key(chain.path),
            user=context.caller.user,
        )


# --- rights -----------------------------------------------------------------------------------------------------------
# Whether the caller may write objects is also asked in advance: a job must not run, and fail at its end (C11).
@dataclass(frozen=True, slots=True)
class CheckWritablePaths(PathsOnlyOperation):
    """Check that objects could be written to all of the paths now; changes nothing.

    Reads the inodes on the paths as one snapshot.
    """

    paths: Sequence[NsPath]

    def execute(self, view: View, context: OperationContext) -> Changes[None]:
        """Return no changes if the caller may write an object to each of the paths.

        Raises:
            PathIsDirectoryError: a directory has one of the paths.
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        for chain in view.chains:
            context.caller.check_traversal(chain)
            if chain.target is not None and chain.target.is_directory:
                raise PathIsDirectoryError("a directory has this key: choose another one", key=_object_key(chain.path))
            context.caller.check(chain, len(chain.ancestors) - 1, WRITE)
            if chain.target is not None:
                context.caller.check_removal(chain)
                context.caller.check(chain, len(chain.path.names), WRITE)
        return Changes(None)


@dataclass(frozen=True, slots=True)
class CheckUploadVisibility(PathsOnlyOperation):
    """Check for each path of a pending upload whether the caller may see the upload; the results are booleans in the
    order of the paths.

    Reads the inodes on the paths as one snapshot.
    """

    paths: Sequence[NsPath]

    def execute(self, view: View, context: OperationContext) -> Changes[list[bool]]:
        """Return the booleans as the result; raises nothing."""
        return Changes([has_upload_permission(chain, context.caller, or_read=True) for chain in view.chains])


def has_upload_permission(chain: ResolvedPath, caller: Caller, *, or_read: bool = False) -> bool:
    """Return whether the caller may add parts to the pending uploads of a path, and abort them.

    An upload belongs to the directory in which its file will be, or to the deepest one that exists. The caller must be
    able to search all directories above, and to write that one.

    Args:
        or_read: whether permission to list that directory is enough, as it is for listing its uploads.
    """
    # A file above the path makes the upload useless; it must be possible to abort it.
    above = [inode for inode in chain.ancestors if inode.is_directory]
    if not all(caller.has_permission(inode, EXECUTE) for inode in above):
        return False
    return caller.has_permission(above[-1], WRITE) or (or_read and caller.has_permission(above[-1], READ))
