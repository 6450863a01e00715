"""A store in memory: the reference for what the protocols mean, with the rules of S3.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.errors import InvalidRequestError, NotFoundError, PreconditionError
from holdfast.seams.clock import Clock, SystemClock
from holdfast.seams.ids import Ids, SystemIds
from holdfast.stores.base import (
    Capabilities,
    Create,
    MultipartLimits,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    PutMode,
    Trit,
    Update,
    UploadInfo,
    UploadPage,
    check_key,
)

__all__ = ["MemoryStore"]

_UPLOADS_PER_PAGE = 1000
"""As S3 does it."""


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    info: ObjectInfo


@dataclass(slots=True)
class _Upload:
    info: UploadInfo
    metadata: Mapping[str, str]
    parts: dict[int, tuple[Part, bytes]] = field(default_factory=dict)


def _digest(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class MemoryStore:
    """A `MultipartStore`, `CopyStore` and, if asked, `RenameStore` in this process's memory.

    Guarantee: every call is atomic and threads may share a store. The same calls with the same `ids` and `clock`
    give the same state. Etags are made of the content, as on S3: equal bytes have equal etags.

    Args:
        limits: limits of multipart uploads; None for a store without them.
        rename: whether the store is a `RenameStore` too.
        clock: dates objects and uploads.
        ids: names uploads.
    """

    def __init__(
        self,
        *,
        limits: MultipartLimits | None = MultipartLimits(),
        rename: bool = False,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._limits = limits or MultipartLimits()
        self._capabilities = Capabilities(
            conditional_put=Trit.YES, multipart=limits, rename=rename, metadata=True, copy=True
        )
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self._lock = threading.Lock()
        self._objects: dict[str, _Object] = {}
        self._keys: list[str] = []  # sorted: code-point order of str is UTF-8 byte order
        self._uploads: dict[str, _Upload] = {}
        self._upload_order: list[tuple[str, str]] = []  # sorted (key, upload id)

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def retries(self) -> int:
        return 0  # nothing between us and the data can fail for a moment

    # --- objects ------------------------------------------------------------------------------------------------------
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        check_key(key)
        with self._lock:
            current = self._objects.get(key)
            if isinstance(mode, Create) and current is not None:
                raise PreconditionError("the object exists: read it, then decide", key=key)
            if isinstance(mode, Update) and (current is None or current.info.etag != mode.etag):
                raise PreconditionError("the object is not the expected one: read it, then decide", key=key)
            return self._publish(key, bytes(data), _digest(data), metadata or {})

    def _publish(self, key: str, data: bytes, etag: str, metadata: Mapping[str, str]) -> ObjectInfo:
        info = ObjectInfo(key, len(data), etag, self._clock.now_s(), dict(metadata))
        if key not in self._objects:
            bisect.insort(self._keys, key)
        self._objects[key] = _Object(data, info)
        return info

    def _existing(self, key: str) -> _Object:
        found = self._objects.get(key)
        if found is None:
            raise NotFoundError("no such object: check the key", key=key)
        return found

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        with self._lock:
            data = self._existing(key).data
        return data[start:] if length is None else data[start : start + length]

    def head(self, key: str) -> ObjectInfo:
        with self._lock:
            return self._existing(key).info

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        start_after = start_after if token is None else token
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
        if len(keys) > 1000:
            raise InvalidRequestError("at most 1000 keys in one call: use batched_keys", keys=len(keys))
        with self._lock:
            for key in keys:
                self._remove(key)

    def copy(self, source: ObjectInfo, target: str) -> None:
        check_key(target)
        with self._lock:
            found = self._existing(source.key)
            self._publish(target, found.data, found.info.etag, found.info.metadata)

    def close(self) -> None:
        """Nothing to release; the content stays."""

    # --- uploads ------------------------------------------------------------------------------------------------------
    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        check_key(key)
        with self._lock:
            upload_id = self._ids.token()
            if upload_id in self._uploads:
                raise InvalidRequestError("the ids repeat: give the store its own source of ids", upload_id=upload_id)
            info = UploadInfo(key, upload_id, self._clock.now_s())
            self._uploads[upload_id] = _Upload(info, dict(metadata or {}))
            bisect.insort(self._upload_order, (key, upload_id))
            return upload_id

    def _pending(self, key: str, upload_id: str) -> _Upload:
        upload = self._uploads.get(upload_id)
        if upload is None or upload.info.key != key:
            raise NotFoundError("no such upload: completed, aborted or never there", key=key, upload_id=upload_id)
        return upload

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        if not 1 <= number <= self._limits.max_parts:
            raise InvalidRequestError(
                "a part number is out of range", key=key, number=number, max_parts=self._limits.max_parts
            )
        part = Part(number, _digest(data), len(data))
        with self._lock:
            self._pending(key, upload_id).parts[number] = (part, bytes(data))
        return part

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        with self._lock:
            upload = self._pending(key, upload_id)
            data = b"".join(self._checked_parts(upload, parts))
            digests = b"".join(bytes.fromhex(part.etag) for part in parts)
            del self._uploads[upload_id]
            del self._upload_order[bisect.bisect_left(self._upload_order, (key, upload_id))]
            return self._publish(key, data, f"{_digest(digests)}-{len(parts)}", upload.metadata)

    def _checked_parts(self, upload: _Upload, parts: Sequence[Part]) -> list[bytes]:
        key = upload.info.key
        if not parts or [part.number for part in parts] != list(range(1, len(parts) + 1)):
            raise InvalidRequestError("parts have to be numbered from 1 without a gap", key=key)
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
                del self._uploads[upload_id]
                del self._upload_order[bisect.bisect_left(self._upload_order, (key, upload_id))]

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        with self._lock:
            first = bisect.bisect_left(self._upload_order, (prefix, ""))
            if marker is not None:
                first = max(first, bisect.bisect_right(self._upload_order, marker))
            found: list[UploadInfo] = []
            for key, upload_id in self._upload_order[first : first + _UPLOADS_PER_PAGE + 1]:
                if not key.startswith(prefix):
                    break
                found.append(self._uploads[upload_id].info)
        page = found[:_UPLOADS_PER_PAGE]
        more = len(found) > _UPLOADS_PER_PAGE
        return UploadPage(page, (page[-1].key, page[-1].upload_id) if more else None)

    # --- rename -------------------------------------------------------------------------------------------------------
    def open_write(self, key: str) -> _MemoryFile:
        check_key(key)
        return _MemoryFile(self, key)

    def rename(self, source: str, target: str) -> None:
        check_key(target)
        with self._lock:
            found = self._existing(source)
            self._remove(source)
            self._publish(target, found.data, found.info.etag, found.info.metadata)


class _MemoryFile:
    """A `WritableFile` that puts its bytes, create-only, when it is closed."""

    def __init__(self, store: MemoryStore, key: str) -> None:
        self._store = store
        self._key = key
        self._buffer = bytearray()
        self._open = True

    def write(self, data: bytes | memoryview, /) -> int:
        if not self._open:
            raise InvalidRequestError("the file is closed: open another", key=self._key)
        self._buffer += data
        return len(data)

    def close(self) -> None:
        if self._open:
            self._store.put(self._key, bytes(self._buffer), Create())
            self.discard()

    def discard(self) -> None:
        self._open = False
        self._buffer.clear()
