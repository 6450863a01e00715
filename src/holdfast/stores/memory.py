"""Store objects in memory, with the behavior of S3: the reference implementation of the protocols.

Worked composition::

    store = MemoryStore(limits=MultipartLimits(min_part_size_bytes=1))     # tiny parts in a test
    upload_id = store.create_upload("t/a")
    parts = [store.upload_part("t/a", upload_id, n, b"x") for n in (1, 2)]
    store.complete_upload("t/a", upload_id, parts)
    assert store.get("t/a") == b"xx"
"""

from __future__ import annotations

import bisect
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError, UnsupportedError
from holdfast.runtime import Clock, Ids, SystemClock, SystemIds
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
    Update,
    UploadInfo,
    UploadPage,
    replaced,
)
from holdfast.stores.checks import (
    check_changes,
    check_delete,
    check_key,
    check_move,
    check_part_number,
    check_parts,
    check_range,
    page_size,
)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a `MemoryStore`."""

    data: bytes
    info: ObjectInfo

    def at(self, key: str) -> StoredObject:
        """Return the object under another key: a rename changes neither its etag nor its time."""
        return StoredObject(self.data, replace(self.info, key=key))


@dataclass(slots=True)
class StoredUpload:
    """A pending upload of a `MemoryStore`."""

    info: UploadInfo
    metadata: Mapping[str, str]
    parts: dict[int, tuple[Part, bytes]] = field(default_factory=dict)


def _md5_hex(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class MemoryStore:
    """A store in this process's memory that can be of every kind: with uploads, copies, renames and transactions.

    With `rename`, a key is either a file or a directory, as in file systems; without it, keys are flat.

    Guarantee: every call is atomic and threads may share a store. The same calls with the same `ids` and `clock` lead
    to the same state. Etags are digests of the content, as on S3: equal bytes have equal etags.

    Args:
        limits: limits of multipart uploads; None for a store without them.
        rename: whether the store is also a `RenameStore`.
        rename_dir: whether it renames directories in one step; None means the same as `rename`. False with `rename`
            simulates a store such as GCS, where a directory would be renamed file by file.
        copy: whether the store is also a `CopyStore`.
        transactions: whether the store is also a `TransactionalStore`.
        consistent_listing: the value of this capability; the listings themselves are always complete.
        clock: supplies the times of objects and uploads.
        ids: supplies the ids of uploads.
    """

    def __init__(
        self,
        *,
        limits: MultipartLimits | None = MultipartLimits(),
        rename: bool = False,
        rename_dir: bool | None = None,
        copy: bool = True,
        transactions: bool = False,
        consistent_listing: bool = True,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        if rename_dir and not rename:
            raise InvalidRequestError("a store that renames directories also renames files: pass rename as well")
        if transactions and limits is None:
            raise InvalidRequestError("a store with transactions also has uploads: pass limits as well")
        self._limits = limits or MultipartLimits()
        self._capabilities = Capabilities(
            conditional_put=Support.YES,
            multipart=limits,
            rename=rename,
            metadata=True,
            copy=copy,
            rename_dir=rename if rename_dir is None else rename_dir,
            consistent_listing=consistent_listing,
            lists_uploads=Support.YES,
            transactions=transactions,
        )
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self._lock = threading.Lock()
        self._objects: dict[str, StoredObject] = {}
        self._keys: list[str] = []  # sorted: code-point order of str is UTF-8 byte order
        self._uploads: dict[str, StoredUpload] = {}
        self._upload_order: list[tuple[str, str]] = []  # sorted (key, upload id)
        self._renamed_directories: list[str] = []  # in the order of their renames

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def retries(self) -> int:
        return 0  # there is no network whose failures could be retried

    # --- objects ------------------------------------------------------------------------------------------------------
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        check_key(key)
        with self._lock:
            return self._put(key, bytes(data), mode, metadata or {})

    def _put(self, key: str, data: bytes, mode: PutMode, metadata: Mapping[str, str]) -> ObjectInfo:
        self._refuse_clash(key)
        self._check_put_condition(key, mode)
        return self._publish(key, data, _md5_hex(data), metadata)

    def _check_put_condition(self, key: str, mode: PutMode) -> None:
        current = self._objects.get(key)
        if isinstance(mode, Create) and current is not None:
            raise PreconditionError("the object exists: read it, then decide", key=key)
        if isinstance(mode, Update) and (current is None or current.info.etag != mode.etag):
            raise PreconditionError("the object is not the expected one: read it, then decide", key=key)

    def _publish(self, key: str, data: bytes, etag: str, metadata: Mapping[str, str]) -> ObjectInfo:
        made = self._made(key, data, etag, metadata)
        self._insert_object(made)
        return made.info

    def _made(self, key: str, data: bytes, etag: str, metadata: Mapping[str, str]) -> StoredObject:
        return StoredObject(data, ObjectInfo(key, len(data), etag, self._clock.now_s(), dict(metadata)))

    def _insert_object(self, placed: StoredObject) -> None:
        key = placed.info.key
        if key not in self._objects:
            bisect.insort(self._keys, key)
        self._objects[key] = placed

    def _existing(self, key: str) -> StoredObject:
        found = self._objects.get(key)
        if found is None:
            raise NotFoundError("no such object: check the key", key=key)
        return found

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        check_range(start, length)
        with self._lock:
            found = self._existing(key)
        if etag and found.info.etag != etag:
            raise replaced(key)
        data = found.data
        return data[start:] if length is None else data[start : start + length]

    def head(self, key: str) -> ObjectInfo:
        with self._lock:
            return self._existing(key).info

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        start_after = start_after if token is None else token
        max_keys = page_size(max_keys)
        with self._lock:
            first = bisect.bisect_left(self._keys, prefix)
            if start_after >= prefix:
                first = max(first, bisect.bisect_right(self._keys, start_after))
            found: list[ObjectInfo] = []
            for key in self._keys[first : first + max_keys + 1]:
                if not key.startswith(prefix):
                    break
                found.append(self._objects[key].info)
        page = found[:max_keys]
        return ObjectPage(page, page[-1].key if len(found) > max_keys else None)

    def delete(self, key: str) -> None:
        with self._lock:
            self._remove(key)

    def _remove(self, key: str) -> None:
        if self._objects.pop(key, None) is not None:
            del self._keys[bisect.bisect_left(self._keys, key)]

    def delete_many(self, keys: Sequence[str]) -> None:
        check_delete(keys)
        with self._lock:
            for key in keys:
                self._remove(key)

    def copy(self, source: ObjectInfo, target: str) -> None:
        check_key(target)
        with self._lock:
            found = self._existing(source.key)
            self._refuse_clash(target)
            self._publish(target, found.data, found.info.etag, found.info.metadata)

    def close(self) -> None:
        """Do nothing: the content stays."""

    # --- uploads ------------------------------------------------------------------------------------------------------
    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        check_key(key)
        with self._lock:
            self._refuse_clash(key)
            upload_id = self._ids.token()
            if upload_id in self._uploads:
                raise InvalidRequestError("the ids repeat: pass the store its own source of ids", upload_id=upload_id)
            info = UploadInfo(key, upload_id, self._clock.now_s())
            self._uploads[upload_id] = StoredUpload(info, dict(metadata or {}))
            bisect.insort(self._upload_order, (key, upload_id))
            return upload_id

    def _pending(self, key: str, upload_id: str) -> StoredUpload:
        upload = self._uploads.get(upload_id)
        if upload is None or upload.info.key != key:
            raise NotFoundError(
                "no such upload: it was completed or aborted, or never existed", key=key, upload_id=upload_id
            )
        return upload

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        check_part_number(key, number, self._limits.max_parts)
        part = Part(number, _md5_hex(data), len(data))
        with self._lock:
            self._pending(key, upload_id).parts[number] = (part, bytes(data))
        return part

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        with self._lock:
            completed = self._build_completed_object(key, upload_id, parts)
            self._refuse_clash(key)
            self._forget_upload(key, upload_id)
            self._insert_object(completed)
            return completed.info

    def _build_completed_object(self, key: str, upload_id: str, parts: Sequence[Part]) -> StoredObject:
        """Return the object that an upload becomes."""
        upload = self._pending(key, upload_id)
        data = b"".join(self._check_parts(upload, parts))
        digests = b"".join(bytes.fromhex(part.etag) for part in parts)
        return self._made(key, data, f"{_md5_hex(digests)}-{len(parts)}", upload.metadata)

    def _check_parts(self, upload: StoredUpload, parts: Sequence[Part]) -> list[bytes]:
        key = upload.info.key
        check_parts(key, parts)
        bodies: list[bytes] = []
        for part in parts:
            stored, data = upload.parts.get(part.number, (None, b""))
            if stored is None or stored.etag != part.etag:
                raise InvalidRequestError("a part is missing or has another etag", key=key, number=part.number)
            if part.number < len(parts) and len(data) < self._limits.min_part_size_bytes:
                raise InvalidRequestError(
                    "a part that is not the last is too small", key=key, number=part.number, bytes=len(data)
                )
            bodies.append(data)
        return bodies

    def abort_upload(self, key: str, upload_id: str) -> None:
        with self._lock:
            upload = self._uploads.get(upload_id)
            if upload is not None and upload.info.key == key:
                self._forget_upload(key, upload_id)

    def _forget_upload(self, key: str, upload_id: str) -> None:
        del self._uploads[upload_id]
        del self._upload_order[bisect.bisect_left(self._upload_order, (key, upload_id))]

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        """List all pending uploads below `prefix` on one page."""
        with self._lock:
            return UploadPage(
                [self._uploads[upload_id].info for key, upload_id in self._upload_order if key.startswith(prefix)], None
            )

    # --- transactions -------------------------------------------------------------------------------------------------
    def make_durable(self, written: Sequence[Complete | Require] = ()) -> None:
        """Do nothing: objects in memory last exactly as long as the process."""

    def apply(self, changes: Sequence[Change]) -> None:
        if not self._capabilities.transactions:
            raise UnsupportedError("the store cannot make several changes in one step")
        check_changes(changes)
        with self._lock:
            gone, ended, made = self._plan_changes(changes)
            for each in made:
                self._refuse_clash(each.info.key)  # also with what goes
            before = self._objects, self._keys
            self._objects = {key: found for key, found in self._objects.items() if key not in gone}
            self._objects.update((each.info.key, each) for each in made)
            self._keys = sorted(self._objects)
            try:
                for each in made:
                    self._refuse_clash(each.info.key)
            except InvalidRequestError:
                self._objects, self._keys = before
                raise
            for upload_id in ended:
                del self._uploads[upload_id]
            self._upload_order = [(key, upload_id) for key, upload_id in self._upload_order if upload_id not in ended]

    def _plan_changes(self, changes: Sequence[Change]) -> tuple[set[str], set[str], list[StoredObject]]:
        """Check all conditions; return the keys to delete, the ids of completed uploads, and the new objects."""
        gone: set[str] = set()
        ended: set[str] = set()
        made: list[StoredObject] = []
        for change in changes:
            match change:
                case Put(key, data, mode):
                    self._check_put_condition(key, mode)
                    made.append(self._made(key, bytes(data), _md5_hex(data), {}))
                case Complete(key, upload_id, parts, mode):
                    self._check_put_condition(key, mode)
                    made.append(self._build_completed_object(key, upload_id, parts))
                    ended.add(upload_id)
                case Delete(key, etag):
                    found = self._objects.get(key)
                    if found is not None and etag in ("", found.info.etag):
                        gone.add(key)
                case Require(key, etag):
                    found = self._objects.get(key)
                    if found is None or etag not in ("", found.info.etag):
                        raise PreconditionError("the object is not there: read again, then decide", key=key)
                case RequireEmpty(key):
                    if any(self._list_below(key[:-1])[0]):
                        raise PreconditionError("the directory is not empty: list it, then decide", key=key)
        return gone, ended, made

    # --- rename -------------------------------------------------------------------------------------------------------
    def open_write(self, key: str) -> MemoryFile:
        opened_after = self.begin_write(key)
        return MemoryFile(key, lambda data: self.finish_write(key, data, opened_after))

    def begin_write(self, key: str) -> int:
        """Start `open_write` for a caller that buffers the bytes itself; return a token for `finish_write`."""
        check_key(key)
        with self._lock:
            self._refuse_clash(key)
            return len(self._renamed_directories)

    def finish_write(self, key: str, data: bytes, opened_after: int) -> ObjectInfo:
        """Publish the bytes of a file that `begin_write` started; `opened_after` is the token that it returned."""
        with self._lock:
            if any(key.startswith(f"{source}/") for source in self._renamed_directories[opened_after:]):
                raise NotFoundError("the file's directory was renamed while it was open: write it again", key=key)
            return self._put(key, data, Create(), {})

    def rename(self, source: str, target: str) -> None:
        check_key(target)
        with self._lock:
            found = self._existing(source)
            self._refuse_clash(target)
            self._remove(source)
            self._insert_object(found.at(target))

    def check_targets(self, targets: Sequence[str]) -> None:
        with self._lock:
            for target in targets:
                check_key(target)
                self._refuse_clash(target)

    def rename_dir(self, source: str, target: str) -> None:
        check_move(source, target)
        if not self._capabilities.rename_dir:
            raise UnsupportedError(
                "the store cannot rename a directory in one step: rename file by file", source=source
            )
        with self._lock:
            keys, uploads = self._list_below(source)
            if not keys and not uploads:
                raise NotFoundError("nothing exists at the source: it may have been renamed before", key=source)
            self._refuse_file_above(target)
            if target in self._objects or any(self._list_below(target)):
                raise PreconditionError("the target exists: inspect it, then decide", key=target)
            moved = [self._objects[key].at(target + key[len(source) :]) for key in keys]
            for key in keys:
                self._remove(key)
            for each in moved:
                self._insert_object(each)
            for key, upload_id in uploads:
                self._move_upload(upload_id, target + key[len(source) :])
            self._renamed_directories.append(source)

    def _move_upload(self, upload_id: str, key: str) -> None:
        upload = self._uploads[upload_id]
        del self._upload_order[bisect.bisect_left(self._upload_order, (upload.info.key, upload_id))]
        upload.info = replace(upload.info, key=key)
        bisect.insort(self._upload_order, (key, upload_id))

    # --- directories --------------------------------------------------------------------------------------------------
    def _list_below(self, directory: str) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the keys below a directory, and the keys and ids of the pending uploads below it."""
        first, last = f"{directory}/", f"{directory}0"  # '0' is the character after '/'
        keys, uploads = self._keys, self._upload_order
        return (
            keys[bisect.bisect_left(keys, first) : bisect.bisect_left(keys, last)],
            uploads[bisect.bisect_left(uploads, (first, "")) : bisect.bisect_left(uploads, (last, ""))],
        )

    def _refuse_clash(self, key: str) -> None:
        """If the store supports rename, reject a file in place of a directory or below a file, as file systems do."""
        if self._capabilities.rename:
            self._refuse_file_above(key)
            if any(self._list_below(key)):
                raise InvalidRequestError(
                    "a directory stands where a file is needed: remove it, or write elsewhere", key=key
                )

    def _refuse_file_above(self, key: str) -> None:
        above = key.rpartition("/")[0]
        while above:
            if above in self._objects:
                raise InvalidRequestError(
                    "a file stands where a directory is needed: remove it, or write elsewhere", key=key
                )
            above = above.rpartition("/")[0]


class MemoryFile:
    """A `WritableFile` that publishes its bytes when it is closed."""

    def __init__(self, key: str, publish: Callable[[bytes], ObjectInfo]) -> None:
        self._key = key
        self._publish = publish
        self._published: ObjectInfo | None = None
        self._buffer = bytearray()
        self._open = True

    def write(self, data: bytes | memoryview, /) -> int:
        if not self._open:
            raise InvalidRequestError("the file is closed: open another", key=self._key)
        self._buffer += data
        return len(data)

    def close(self) -> ObjectInfo:
        if self._open:
            self._published = self._publish(bytes(self._buffer))
            self.discard()
        if self._published is None:
            raise InvalidRequestError("the file was discarded: open another", key=self._key)
        return self._published

    def discard(self) -> None:
        self._open = False
        self._buffer.clear()


_stores: dict[str, MemoryStore] = {}
_lock = threading.Lock()


def memory_store(name: str) -> MemoryStore:
    """Return the store of ``memory://name``: the same one for the same name as long as this process lives."""
    with _lock:
        return _stores.setdefault(name, MemoryStore())
