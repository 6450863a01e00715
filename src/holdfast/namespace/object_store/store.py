"""Offer a namespace as an object store that makes many changes in one transaction.

A key is a path without its first slash. The store makes the directories that its objects need, and removes them again
when it has deleted their last file, up to the directory that it was opened for. All other directories stay: those that
users made, and those to which users have given a quota, other permissions or attributes (see `RemoveEmptyDirectory`).
Listings show files only. The permissions of the namespace hold in every call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any

from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
)
from holdfast.namespace.errors import ParentNotDirectoryError, PathIsDirectoryError
from holdfast.namespace.file_reader import FileReader
from holdfast.namespace.file_writer import MOST_INLINE_BYTES
from holdfast.namespace.inode import Extent, Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, kind_range, new_inode_id, upload_key
from holdfast.namespace.listing import TreeEntry, etag_of_inode, walk_descendants
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.objects import (
    AbortUpload,
    AddUploadPart,
    BeginUpload,
    CheckUploadVisibility,
    CheckWritablePaths,
    CreateObject,
    DeleteObjectFile,
    RemoveEmptyDirectory,
    RequireEmptyDirectory,
    RequireObject,
)
from holdfast.namespace.operation import Operation, OperationBatch
from holdfast.namespace.operations.base import ReadInode
from holdfast.namespace.operations.files import Publish
from holdfast.namespace.other_records import Upload, decode_metadata, encode_metadata, no_such_upload_error
from holdfast.namespace.paths import MAX_PATH_CHARACTERS, NsPath
from holdfast.namespace.view import read_view, require_expected_namespace_root
from holdfast.stores.base import (
    Capabilities,
    Change,
    Complete,
    Create,
    Delete,
    MultipartLimits,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    Put,
    PutMode,
    Require,
    RequireEmpty,
    Support,
    UploadInfo,
    UploadPage,
    replaced,
)
from holdfast.stores.checks import (
    check_changes,
    check_delete,
    check_key,
    check_part_number,
    check_parts,
    check_range,
    page_size,
)
from holdfast.transactions.base import Record, SnapshotReader

_MOST_KEY_BYTES = 4 * MAX_PATH_CHARACTERS
"""So many bytes has the longest path: the limits of paths are those of keys, in every call."""

_LIMITS = MultipartLimits(min_part_size_bytes=1, max_parts=10_000)
_UPLOADS = 1000
_PATHS = 1000
"""How many paths are looked up at once."""


class NamespaceStore:
    """A namespace as an object store: a `MultipartStore` and a `TransactionalStore`.

    Args:
        keep: key of a directory that is not removed when it becomes empty, nor are those above it.
        close_namespace: whether `close` closes the namespace too.
    """

    def __init__(self, namespace: Namespace, *, keep: str = "", close_namespace: bool = True) -> None:
        self.namespace = namespace
        self._keep = tuple(keep.encode().split(b"/")) if keep else ()
        self._close_namespace = close_namespace

    @property
    def capabilities(self) -> Capabilities:
        configuration = self.namespace.configuration
        return self.capabilities_of(f"{configuration.name} {configuration.created_ms}")

    @staticmethod
    def capabilities_of(server: str) -> Capabilities:
        """Return the capabilities of every namespace's store; `server` identifies the namespace: see `Capabilities`."""
        return Capabilities(
            conditional_put=Support.YES,
            multipart=_LIMITS,
            metadata=True,
            lists_uploads=Support.YES,
            transactions=True,
            server=server,
        )

    @property
    def retries(self) -> int:
        return 0

    # --- objects ------------------------------------------------------------------------------------------------------
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        path, file_id, expiry = path_of_key(key), new_inode_id(self.namespace.environment), self.namespace.expiry()
        configuration, blobs = self.namespace.configuration, self.namespace.blobs
        extents, small = blobs.put(file_id, bytes(data), configuration.inline_bytes)
        file = replace(
            _make_publish_operation(self.namespace, path, file_id),
            extents=extents,
            data=small,
            xattrs=encode_metadata(metadata),
            is_late=expiry.is_over,
        )
        with blobs.delete_if_publishing_fails(extents, expiry):
            return _object_info(path, self.namespace.run(CreateObject(path=path, file=file, mode=mode)))

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        check_range(start, length)
        reader = self._open_reader(path_of_key(key))
        if etag and etag_of_inode(reader.inode) != etag:
            raise replaced(key)
        return reader.read(start, length)

    def head(self, key: str) -> ObjectInfo:
        path = path_of_key(key)
        return _object_info(path, self._open_reader(path).inode)

    def _open_reader(self, path: NsPath) -> FileReader:
        try:
            return self.namespace.open(str(path))
        except (PathIsDirectoryError, ParentNotDirectoryError) as error:
            raise NotFoundError("no such object: check the key", key=str(path)[1:]) from error

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        after, max_keys = start_after if token is None else token, page_size(max_keys)
        with self.namespace.database.snapshot() as reader:
            found = list(islice(self._iter_files(reader, prefix, after), max_keys + 1))
        objects = [_object_info(one.path, one.inode) for one in found[:max_keys]]
        return ObjectPage(objects, objects[-1].key if len(found) > max_keys else None)

    def _iter_files(self, reader: SnapshotReader, prefix: str, start_after: str) -> Iterator[TreeEntry]:
        """Yield the files whose key starts with `prefix` and comes after `start_after`.

        The names in a directory are in the order of their bytes, and what is below a directory comes in its place: so
        all of ``a/`` comes before ``a-b``. As in HDFS, whoever lists must be able to read and search every directory
        that the listing has to enter: without the files that the caller may not see, it would look complete.
        """
        *names, beginning = _encode_text(prefix, "prefix").split(b"/")
        after = _encode_text(start_after, "start_after").split(b"/") if start_after else []
        above, path, caller = after[: len(names)], NsPath(tuple(names)), self.namespace.caller
        (chain,) = read_view(reader, self.namespace.operations.hints, ReadInode(path)).chains
        try:
            caller.check_traversal(chain)
        except ParentNotDirectoryError:
            return
        if above <= names and chain.target is not None and chain.target.is_directory:
            rest = list(takewhile(bool, after[len(names) :])) if above == names else []
            entries = walk_descendants(
                reader, path, chain.target, caller.check_listing, beginning=beginning, after=rest
            )
            yield from (one for one in entries if not one.inode.is_directory)

    def delete(self, key: str) -> None:
        self.delete_many([key])

    def delete_many(self, keys: Sequence[str]) -> None:
        check_delete(keys)
        self.apply([Delete(key) for key in dict.fromkeys(keys)])

    # --- uploads ------------------------------------------------------------------------------------------------------
    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        path = path_of_key(key)
        token = self.namespace.environment.ids.token()
        upload = Upload(
            str(path),
            new_inode_id(self.namespace.environment),
            self.namespace.operations.now_ms(),
            dict(metadata or {}),
        )
        self.namespace.run(BeginUpload(path, token, upload))
        return token

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        check_part_number(key, number, _LIMITS.max_parts)
        path, upload, expiry = path_of_key(key), self._read_upload(key, upload_id), self.namespace.expiry()
        blobs = self.namespace.blobs
        extents, small = blobs.put(upload.file_id, bytes(data), self.namespace.configuration.inline_bytes)
        part = extents[0] if extents else Extent(f"empty-{self.namespace.environment.ids.token()}", 0, inline=True)
        with blobs.delete_if_publishing_fails(extents, expiry):
            self.namespace.run(
                AddUploadPart(path=path, token=upload_id, number=number, part=part, data=small, is_late=expiry.is_over)
            )
        return Part(number, part.blob, len(data))

    def _read_upload(self, key: str, upload_id: str) -> Upload:
        token = upload_key(upload_id)
        found = self.namespace.database.get_many([token, ROOT_KEY])
        self._check_root_identity(found)
        upload = Upload.decode(token, found[token].value) if token in found else None
        if upload is None or upload.path != f"/{key}":
            raise no_such_upload_error(key, upload_id)
        return upload

    def _check_root_identity(self, found: Mapping[bytes, Record]) -> None:
        """Check that uploads read with the root are of this namespace; see `require_expected_namespace_root`."""
        root = decode_inode(ROOT_KEY, found[ROOT_KEY].value) if ROOT_KEY in found else None
        require_expected_namespace_root(root, self.namespace.configuration.identity)

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        check_parts(key, parts)
        change = Complete(key, upload_id, tuple(parts), Overwrite())
        return _object_info(
            path_of_key(key), self.namespace.run(_make_complete_upload_operation(self.namespace, change))
        )

    def abort_upload(self, key: str, upload_id: str) -> None:
        self.namespace.run(AbortUpload(path_of_key(key), upload_id))

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        start, end = kind_range(b"p")
        if marker is not None:
            start = upload_key(marker[1]) + b"\0"
        page = self.namespace.database.scan(start, end, _UPLOADS, [ROOT_KEY])
        self._check_root_identity(page.guards)
        found = [(key[1:].decode(), Upload.decode(key, record.value)) for key, record in page.records]
        wanted = [(token, upload) for token, upload in found if upload.path[1:].startswith(prefix)]
        seen = [True] * len(wanted)
        if wanted and not self.namespace.caller.is_superuser:
            seen = self.namespace.run(CheckUploadVisibility([NsPath.parse(upload.path) for _, upload in wanted]))
        uploads = [
            UploadInfo(upload.path[1:], token, upload.initiated_ms / 1000)
            for (token, upload), is_seen in zip(wanted, seen, strict=True)
            if is_seen
        ]
        return UploadPage(uploads, (found[-1][1].path[1:], found[-1][0]) if page.more else None)

    # --- transactions -------------------------------------------------------------------------------------------------
    def check_targets(self, targets: Sequence[str]) -> None:
        paths = [path_of_key(target) for target in targets]
        for start in range(0, len(paths), _PATHS):
            self.namespace.run(CheckWritablePaths(paths[start : start + _PATHS]))

    def apply(self, changes: Sequence[Change]) -> None:
        check_changes(changes, _MOST_KEY_BYTES)
        if not changes:
            return
        whole = ChangeSet(self.namespace, changes)
        try:
            whole.apply()
        except (PreconditionError, NotFoundError):
            self.make_durable()  # perhaps an earlier call of this caller, whose reply was lost, is in the way
            raise
        self._confirm_changes_durable(whole)
        self._prune_directories(whole.emptied)

    def make_durable(self, written: Sequence[Complete | Require] = ()) -> None:
        self.namespace.database.make_durable()
        for one in written:
            if isinstance(one, Require):
                self.head(one.key)
        uploads = [one for one in written if isinstance(one, Complete)]
        for start in range(0, len(uploads), _UPLOADS):
            self._require_pending_uploads(uploads[start : start + _UPLOADS])

    def _require_pending_uploads(self, uploads: Sequence[Complete]) -> None:
        """Check that uploads are pending and have their parts, with one read."""
        found = self.namespace.database.get_many([ROOT_KEY, *(upload_key(one.upload_id) for one in uploads)])
        self._check_root_identity(found)
        for one in uploads:
            key = upload_key(one.upload_id)
            parts = Upload.decode(key, found[key].value).parts if key in found else {}
            blobs = {number: part.blob for number, part in parts.items()}
            if key not in found or any(blobs.get(part.number) != part.etag for part in one.parts):
                raise NotFoundError(
                    "the upload is not there, or lacks a part: upload the object again",
                    key=one.key,
                    upload_id=one.upload_id,
                )

    def _confirm_changes_durable(self, made: ChangeSet) -> None:
        """Make changes durable that were just made, and look whether they are there: others may be in their place.

        What neither creates a file nor deletes a certain one leaves nothing that could be told from others' changes.

        Raises:
            OutcomeUnknownError: it is unknown whether they are durable.
            UnavailableError: the database crashed before it was asked for that, and has lost them.
        """
        try:
            self.make_durable()
            is_there = self._are_changes_visible(made)
        except UnavailableError as error:
            raise OutcomeUnknownError("it is unknown whether changes are durable: read them, then decide") from error
        if not is_there:
            raise UnavailableError(
                "the database has lost what it had committed: repeat the call", key=made.changes[0].key
            )

    def _are_changes_visible(self, made: ChangeSet) -> bool:
        if made.published:
            # One is enough, as all were made in one step; by its key, as a directory above may have been renamed since.
            file_id, key = next(iter(made.published.items()))
            record = self.namespace.database.get_many([key]).get(key)
            return record is not None and decode_inode(key, record.value).id == file_id
        deleted = next((one for one in made.changes if isinstance(one, Delete) and one.etag), None)
        found = None if deleted is None else self.namespace.find(str(path_of_key(deleted.key)))
        return found is None or deleted is None or found.etag != deleted.etag

    def _prune_directories(self, directories: Collection[NsPath]) -> None:
        """Remove directories that have become empty, from the bottom up, each of them once.

        Guarantee: raises nothing, because what made them empty has taken effect. Listings do not show empty ones.
        """
        levels: dict[int, set[NsPath]] = {}
        for directory in directories:
            levels.setdefault(len(directory.names), set()).add(directory)
        for level in range(max(levels, default=0), 0, -1):
            for directory in levels.get(level, ()):
                with suppress(HoldfastError):
                    may_go = directory.names != self._keep[:level]
                    if may_go and self.namespace.run(RemoveEmptyDirectory(directory)):
                        levels.setdefault(level - 1, set()).add(directory.parent)

    def close(self) -> None:
        if self._close_namespace:
            self.namespace.close()


def _object_info(path: NsPath, inode: Inode) -> ObjectInfo:
    return ObjectInfo(
        str(path)[1:], inode.size, etag_of_inode(inode), inode.mtime_ms / 1000, decode_metadata(inode.xattrs)
    )


def _encode_text(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(f"the {what} of a listing must be valid Unicode: change it", text=text) from error


def path_of_key(key: str) -> NsPath:
    """Return the path in the namespace of an object key.

    Raises:
        InvalidRequestError: the key cannot be a path.
    """
    check_key(key, _MOST_KEY_BYTES)
    if key.endswith("/"):
        raise InvalidRequestError("the key of a file must not end in a slash: remove it", key=key)
    return NsPath.parse(f"/{key}")


def _make_publish_operation(namespace: Namespace, path: NsPath, file_id: int = 0) -> Publish:
    """Return the operation that publishes a file, without its content."""
    configuration = namespace.configuration
    return Publish(
        path=path,
        file_id=file_id,
        overwrite=True,
        replication=configuration.replication,
        block_size=configuration.block_size,
    )


def _make_complete_upload_operation(namespace: Namespace, change: Complete) -> CreateObject:
    """Return the operation that completes an upload."""
    path = path_of_key(change.key)
    return CreateObject(
        path=path,
        file=_make_publish_operation(namespace, path),
        mode=change.mode,
        upload=change.upload_id,
        parts=change.parts,
    )


@dataclass(slots=True)
class ChangeSet:
    """Changes of objects that `apply` makes in one transaction; they were checked by `check_changes`.

    There may be hundreds of thousands, so nothing is kept for each of them but the change itself, which the caller has,
    and what the transaction writes.

    Attributes:
        emptied: once the changes are made, the directories that have lost a file.
        published: once the changes are made, the id and the record key of at least one file that was created; empty
            if none was.
    """

    namespace: Namespace
    changes: Sequence[Change]
    emptied: set[NsPath] = field(default_factory=set)
    published: dict[int, bytes] = field(default_factory=dict)

    def apply(self) -> None:
        """Store the large contents, then make all changes in one transaction, or none. For the errors, see
        `TransactionalStore.apply`.
        """
        stored: list[Extent] = []
        expiry = self.namespace.expiry()
        with self.namespace.blobs.delete_if_publishing_fails(stored, expiry):
            large: dict[int, Publish] = {}
            for position, one in self._iter_large_puts():
                path, file_id = path_of_key(one.key), new_inode_id(self.namespace.environment)
                extents, _ = self.namespace.blobs.put(file_id, bytes(one.data), 0)
                stored += extents
                large[position] = replace(
                    _make_publish_operation(self.namespace, path, file_id), extents=extents, is_late=expiry.is_over
                )
            paths = [path_of_key(one.key.rstrip("/")) for one in (self.changes[0], self.changes[-1])]
            self.namespace.operations.run(
                OperationBatch(paths, lambda: self._iter_operations(large)), self.namespace.caller
            )

    def _iter_large_puts(self) -> Iterator[tuple[int, Put]]:
        """Yield the puts whose content is too large for the database, with their positions."""
        room_bytes = MOST_INLINE_BYTES
        for position, one in enumerate(self.changes):
            if isinstance(one, Put) and one.data:
                if len(one.data) > min(room_bytes, self.namespace.configuration.inline_bytes):
                    yield position, one
                else:
                    room_bytes -= len(one.data)

    def _iter_operations(self, large: Mapping[int, Publish]) -> Iterator[Operation[Any]]:
        """Yield what refers to the state before, then what makes room, then what needs it.

        Raises:
            PreconditionError: a directory that must be empty is not.
        """
        self.emptied.clear()  # this may be another try
        self.published.clear()
        for one in self.changes:
            if isinstance(one, RequireEmpty):
                path = path_of_key(one.key.rstrip("/"))
                self._refuse_nonempty_directory(path)
                yield RequireEmptyDirectory(path)
            elif isinstance(one, Require):
                yield RequireObject(path_of_key(one.key), one.etag)
        yield from (
            DeleteObjectFile(path_of_key(one.key), one.etag, self.emptied)
            for one in self.changes
            if isinstance(one, Delete)
        )
        for position, one in enumerate(self.changes):
            if isinstance(one, Complete):
                yield _make_complete_upload_operation(self.namespace, one)
            elif isinstance(one, Put):
                file = large.get(position) or self._make_small_publish(one)
                is_first = not self.published and isinstance(one.mode, Create)
                keys = self.published if is_first else {}
                yield CreateObject(path=file.path, file=file, mode=one.mode, keys=keys)

    def _make_small_publish(self, change: Put) -> Publish:
        file = _make_publish_operation(
            self.namespace, path_of_key(change.key), new_inode_id(self.namespace.environment)
        )
        extents, data = self.namespace.blobs.put(file.file_id, bytes(change.data), len(change.data))
        return replace(file, extents=extents, data=data)

    def _refuse_nonempty_directory(self, path: NsPath) -> None:
        """Refuse a directory that is not empty: the transaction would only find a conflict."""
        with suppress(NotFoundError, ParentNotDirectoryError):
            page = self.namespace.list_page(str(path), limit=1)
            if any(entry.path != str(path) for entry in page.entries):
                raise PreconditionError("the directory is not empty: list it, then decide", key=f"{path}/"[1:])
