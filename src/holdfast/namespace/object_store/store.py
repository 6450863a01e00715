"""Offer a namespace as an object store that makes many changes in one transaction.

A key is a path without its first slash. The store makes the directories that its objects need, and removes them again
when it has deleted or renamed their last file, up to the directory that it was opened for. All other directories stay:
those that somebody made, and those to which somebody has given a quota, other permissions or attributes (see
`directories`). Listings show files only. The permissions of the namespace hold in every call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from holdfast.errors import HoldfastError, NotFoundError, OutcomeUnknownError, PreconditionError, UnavailableError
from holdfast.namespace.errors import (
    DirectoryNotEmptyError,
    ParentNotDirectoryError,
    PathExistsError,
    PathIsDirectoryError,
)
from holdfast.namespace.file_reader import FileReader
from holdfast.namespace.inode import Extent, Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, kind_range, parts_key, upload_key
from holdfast.namespace.listing import etag_of
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.change_set import MOST_KEY_BYTES, ChangeSet, Contents, completed, created, path_of
from holdfast.namespace.object_store.directories import (
    DirectoriesOnPath,
    MakeDirectory,
    RemoveEmptyDirectory,
    StreamedFile,
    directories_below,
)
from holdfast.namespace.object_store.moves import MoveDirectory, MoveFile
from holdfast.namespace.object_store.objects import AbortUpload, AddPart, BeginUpload, CheckTargets, MaySee, parts_of
from holdfast.namespace.object_store.pages import list_files
from holdfast.namespace.operation import Parts
from holdfast.namespace.operations.names import Rename
from holdfast.namespace.other_records import TRACED_S, Upload, decode_metadata, encode_metadata, no_such_upload, page_of
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import require_own_root, scan_pages
from holdfast.stores.base import (
    Capabilities,
    Change,
    Complete,
    Delete,
    MultipartLimits,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    PutMode,
    Require,
    Support,
    UploadInfo,
    UploadPage,
    replaced,
)
from holdfast.stores.checks import (
    check_changes,
    check_delete,
    check_move,
    check_part_number,
    check_parts,
    check_range,
    page_size,
)
from holdfast.transactions.base import Record

_LIMITS = MultipartLimits(min_part_size_bytes=1, max_parts=10_000)
_UPLOADS = 1000
_PATHS = 1000
"""How many paths are looked up at once."""


class NamespaceStore:
    """An object store in a namespace: a `MultipartStore` and a `TransactionalStore`.

    Args:
        keep: key of a directory that is not removed when it becomes empty, nor are those above it.
        close_namespace: whether `close` closes the namespace too.
    """

    def __init__(self, namespace: Namespace, *, keep: str = "", close_namespace: bool = True) -> None:
        self.namespace = namespace
        self._contents = Contents(namespace)
        self._keep = tuple(keep.encode().split(b"/")) if keep else ()
        self._close_namespace = close_namespace

    @property
    def capabilities(self) -> Capabilities:
        configuration = self.namespace.configuration
        return self.capabilities_of(f"{configuration.name} {configuration.created_ms}")

    @staticmethod
    def capabilities_of(server: str) -> Capabilities:
        """Return what every namespace promises; `server` identifies one: see `Capabilities`."""
        return Capabilities(
            conditional_put=Support.YES,
            multipart=_LIMITS,
            rename=True,
            rename_dir=True,
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
        if key.endswith("/") and not data:
            path = path_of(key.rstrip("/"))  # a marker of a directory: make the directory
            self.namespace.run(MakeDirectory(path, stays=True))
            return ObjectInfo(key, 0)
        path, file_id, expiry = path_of(key), self.namespace.new_id(), self.namespace.expiry()
        extents, small = self._contents.store(file_id, bytes(data))
        template = replace(self._contents.template(), xattrs=encode_metadata(metadata), is_late=expiry.is_over)
        file = replace(template, path=path, file_id=file_id, extents=extents, data=small)
        with self._contents.unless_refused(extents, expiry):
            return _info(path, self.namespace.run(created(file, mode)))

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        check_range(start, length)
        reader = self._open(path_of(key))
        if etag and etag_of(reader.inode) != etag:
            raise replaced(key)
        return reader.read(start, length)

    def head(self, key: str) -> ObjectInfo:
        path = path_of(key)
        return _info(path, self._open(path).inode)

    def _open(self, path: NsPath) -> FileReader:
        try:
            return self.namespace.open(str(path))
        except (PathIsDirectoryError, ParentNotDirectoryError) as error:
            raise NotFoundError("no such object: check the key", key=str(path)[1:]) from error

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        after, max_keys = start_after if token is None else token, page_size(max_keys)
        with self.namespace.database.snapshot() as reader:
            identity = self.namespace.configuration.identity
            found = list_files(reader, self.namespace.caller, prefix, after, max_keys + 1, identity)
        objects = [_info(path, inode) for path, inode in found[:max_keys]]
        return ObjectPage(objects, objects[-1].key if len(found) > max_keys else None)

    def delete(self, key: str) -> None:
        self.delete_many([key])

    def delete_many(self, keys: Sequence[str]) -> None:
        check_delete(keys)
        markers = {key: path_of(key.rstrip("/")) for key in keys if key.endswith("/")}
        if len(markers) < len(keys):
            self.apply([Delete(key) for key in dict.fromkeys(keys) if key not in markers])
        for path in markers.values():
            if self._may_go(path) and self._remove(RemoveEmptyDirectory(path, is_in_the_way=True)):
                self._prune({path.parent})

    # --- uploads ------------------------------------------------------------------------------------------------------
    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        path = path_of(key)
        token = self.namespace.environment.ids.token()
        upload = Upload(str(path), self.namespace.new_id(), self.namespace.operations.now_ms(), dict(metadata or {}))
        self.namespace.run(BeginUpload(path, token, upload))
        return token

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        check_part_number(key, number, _LIMITS.max_parts)
        path, upload, expiry = path_of(key), self._upload(key, upload_id), self.namespace.expiry()
        extents, small = self._contents.store(upload.file_id, bytes(data))
        part = extents[0] if extents else Extent(f"empty-{self.namespace.environment.ids.token()}", 0, inline=True)
        with self._contents.unless_refused(extents, expiry):
            self.namespace.run(
                AddPart(path=path, token=upload_id, number=number, part=part, data=small, is_late=expiry.is_over)
            )
        return Part(number, part.blob, len(data))

    def _upload(self, key: str, upload_id: str) -> Upload:
        upload = self._find_upload(upload_id)
        if upload is None or upload.path != f"/{key}":
            raise no_such_upload(key, upload_id)
        return upload

    def _find_upload(self, upload_id: str) -> Upload | None:
        key = upload_key(upload_id)
        found = self.namespace.database.get_many([key, ROOT_KEY])
        self._check_root(found)
        return Upload.decode(key, found[key].value) if key in found else None

    def _check_root(self, found: Mapping[bytes, Record]) -> None:
        """Check that the uploads that were read with the root are those of this namespace: see `require_own_root`."""
        root = decode_inode(ROOT_KEY, found[ROOT_KEY].value) if ROOT_KEY in found else None
        require_own_root(root, self.namespace.configuration.identity)

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        check_parts(key, parts)
        pages = self._upload(key, upload_id).pages  # refuses the id of another key
        change = Complete(key, upload_id, tuple(parts), Overwrite())
        return _info(path_of(key), self.namespace.run(completed(self._contents.template(), change, pages)))

    def abort_upload(self, key: str, upload_id: str) -> None:
        path, is_gone = path_of(key), False
        while not is_gone:  # an upload gets no more pages than a hundred
            upload = self._find_upload(upload_id)
            pages = frozenset() if upload is None else upload.pages
            is_gone = self.namespace.run(AbortUpload(path=path, token=upload_id, pages=pages))

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        start, end = kind_range(b"p")
        if marker is not None:
            start = upload_key(marker[1]) + b"\0"
        page = self.namespace.database.scan(start, end, _UPLOADS, [ROOT_KEY])
        self._check_root(page.guards)
        found = [(key[1:].decode(), Upload.decode(key, record.value)) for key, record in page.records]
        wanted = [(token, upload) for token, upload in found if upload.path[1:].startswith(prefix)]
        seen = [True] * len(wanted)
        if wanted and not self.namespace.caller.is_superuser:
            seen = self.namespace.run(MaySee([NsPath.parse(upload.path) for _, upload in wanted]))
        uploads = [
            UploadInfo(upload.path[1:], token, upload.initiated_ms / 1000)
            for (token, upload), is_seen in zip(wanted, seen, strict=True)
            if is_seen
        ]
        return UploadPage(uploads, (found[-1][1].path[1:], found[-1][0]) if page.more else None)

    # --- renames ------------------------------------------------------------------------------------------------------
    def open_write(self, key: str) -> StreamedFile:
        path = path_of(key)
        self.check_targets([key])
        opened = replace(self.namespace.expiry(), most_age_s=TRACED_S)
        # The protocol refuses an existing key when the file is closed.
        writer = self.namespace.create(str(path), check=False)
        directories = self.namespace.run(MakeDirectory(path.parent))
        return StreamedFile(
            key=key,
            namespace=self.namespace,
            writer=writer,
            directories=directories,
            opened=opened,
            remove_new=partial(self._remove_new, path, directories),
        )

    def rename(self, source: str, target: str) -> None:
        old = path_of(source)
        self.namespace.run(MoveFile(rename=Rename(source=old, target=path_of(target), overwrite=True, may_stay=True)))
        self._prune({old.parent})

    def _remove_new(self, path: NsPath, directories: DirectoriesOnPath) -> None:
        """Remove the directories that were made for a file that has not come, those that are empty; raises nothing."""
        with suppress(HoldfastError):
            for depth, number in reversed(list(enumerate(directories.ids))):
                directory = NsPath(path.names[:depth])
                may_go = number in directories.new and self._may_go(directory)
                if not may_go or not self._remove(RemoveEmptyDirectory(directory, only_id=number)):
                    return

    def check_targets(self, targets: Sequence[str]) -> None:
        paths = [path_of(target) for target in targets]
        for start in range(0, len(paths), _PATHS):
            self.namespace.run(CheckTargets(paths[start : start + _PATHS], by_rename=True))

    def rename_dir(self, source: str, target: str) -> None:
        check_move(source, target, MOST_KEY_BYTES)
        old, new = path_of(source), path_of(target)
        try:
            self.namespace.move(Rename(source=old, target=new), self._move)
        except PathExistsError as error:
            raise PreconditionError("the target exists: inspect it, then decide", key=target) from error
        self._prune({old.parent})

    def _move(self, rename: Rename) -> None:
        """Move a directory; each try looks again at what is below source and target."""

        def parts() -> list[MoveDirectory]:
            below = directories_below(self.namespace, rename.target)
            moved, in_the_way = self._uploads_below(rename.source), self._uploads_below(rename.target)
            return [
                MoveDirectory(
                    rename=rename, uploads=moved, below=below or (), is_taken=below is None or bool(in_the_way)
                )
            ]

        self.namespace.run(Parts(rename.paths, parts))

    def _uploads_below(self, directory: NsPath) -> list[str]:
        """Return the tokens of the pending uploads below a directory, also of those that the caller may not see."""
        return [
            key[1:].decode()
            for page in scan_pages(self.namespace.database, *kind_range(b"p"), _UPLOADS)
            for key, record in page.records
            if Upload.decode(key, record.value).path.startswith(f"{directory}/")
        ]

    # --- transactions -------------------------------------------------------------------------------------------------
    def apply(self, changes: Sequence[Change]) -> None:
        check_changes(changes, MOST_KEY_BYTES)
        if not changes:
            return
        whole = ChangeSet(self._contents, changes)
        try:
            whole.apply()
        except (PreconditionError, NotFoundError):
            self.make_durable()  # perhaps an earlier call of this caller, whose reply was lost, is in the way
            raise
        self._settle(whole)
        self._prune(whole.emptied)

    def make_durable(self, written: Sequence[Complete | Require] = ()) -> None:
        self.namespace.database.make_durable()
        for one in written:
            if isinstance(one, Require):
                self.head(one.key)
        uploads = [one for one in written if isinstance(one, Complete)]
        for start in range(0, len(uploads), _UPLOADS):
            self._require_uploads(uploads[start : start + _UPLOADS])

    def _require_uploads(self, uploads: Sequence[Complete]) -> None:
        """Check that uploads are pending and have their parts, with one read."""
        pages = {one.upload_id: sorted({page_of(part.number) for part in one.parts}) for one in uploads}
        keys = [upload_key(token) for token in pages]
        keys += [parts_key(token, page) for token, numbers in pages.items() for page in numbers if page]
        found = self.namespace.database.get_many([ROOT_KEY, *keys])
        self._check_root(found)
        values = {key: record.value for key, record in found.items()}
        for one in uploads:
            key = upload_key(one.upload_id)
            kept: dict[int, str] = {}
            if key in values:
                parts = parts_of(values.get, Upload.decode(key, values[key]), one.upload_id, pages[one.upload_id])
                kept = {number: part.blob for number, part in parts.items()}
            if key not in values or any(kept.get(part.number) != part.etag for part in one.parts):
                raise NotFoundError(
                    "the upload is not there, or lacks a part: upload the object again",
                    key=one.key,
                    upload_id=one.upload_id,
                )

    def _settle(self, made: ChangeSet) -> None:
        """Make changes durable that were just made, and look whether they are there: others may be in their place.

        What neither creates a file nor deletes a certain one leaves nothing that could be told from others' changes.

        Raises:
            OutcomeUnknownError: it is unknown whether they are durable.
            UnavailableError: the database crashed before it was asked for that, and has lost them.
        """
        try:
            self.make_durable()
            is_there = self._is_there(made)
        except UnavailableError as error:
            raise OutcomeUnknownError("it is unknown whether changes are durable: read them, then decide") from error
        if not is_there:
            raise UnavailableError(
                "the database has lost what it had committed: repeat the call", key=made.changes[0].key
            )

    def _is_there(self, made: ChangeSet) -> bool:
        if made.published:
            # One is enough, as all were made in one step; by its key, as a directory above may have been renamed since.
            file_id, key = next(iter(made.published.items()))
            record = self.namespace.database.get_many([key]).get(key)
            return record is not None and decode_inode(key, record.value).id == file_id
        deleted = next((one for one in made.changes if isinstance(one, Delete) and one.etag), None)
        found = None if deleted is None else self.namespace.find(str(path_of(deleted.key)))
        return found is None or deleted is None or found.etag != deleted.etag

    def _prune(self, directories: Collection[NsPath]) -> None:
        """Remove directories that have become empty, from the bottom up, each of them once.

        Guarantee: raises nothing, because what made them empty has taken effect. Listings do not show empty ones.
        """
        levels: dict[int, set[NsPath]] = {}
        for directory in directories:
            levels.setdefault(len(directory.names), set()).add(directory)
        for level in range(max(levels, default=0), 0, -1):
            for directory in levels.get(level, ()):
                with suppress(HoldfastError):
                    if self._may_go(directory) and self._remove(RemoveEmptyDirectory(directory)):
                        levels.setdefault(level - 1, set()).add(directory.parent)

    def _may_go(self, directory: NsPath) -> bool:
        return bool(directory.names) and directory.names != self._keep[: len(directory.names)]

    def _remove(self, operation: RemoveEmptyDirectory) -> bool:
        try:
            return self.namespace.run(operation)
        except DirectoryNotEmptyError:
            return False

    def close(self) -> None:
        if self._close_namespace:
            self.namespace.close()


def _info(path: NsPath, inode: Inode) -> ObjectInfo:
    return ObjectInfo(str(path)[1:], inode.size, etag_of(inode), inode.mtime_ms / 1000, decode_metadata(inode.xattrs))
