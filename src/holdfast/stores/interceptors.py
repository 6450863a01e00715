"""Wrap a store so that a function intercepts each of its calls: to inject faults, to record, to throttle.

Worked composition::

    recorded = Recorder()
    store = InterceptedStore(MemoryStore(), recorded)
    store.put("a", b"1")
    assert recorded.count(Operation.PUT) == 1

Wrappers nest: the outer interceptor sees a call first. `capabilities`, `close` and `make_durable` are not calls to the
store and are forwarded directly.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from holdfast.stores.base import (
    Capabilities,
    Change,
    Complete,
    CopyStore,
    MultipartStore,
    ObjectInfo,
    ObjectPage,
    ObjectStore,
    Overwrite,
    Part,
    PutMode,
    RenameStore,
    Require,
    TransactionalStore,
    UploadPage,
    WritableFile,
    keys_of,
    sent_bytes,
)

T = TypeVar("T")


class Operation(enum.Enum):
    """The calls of the store protocols."""

    PUT = "put"
    GET = "get"
    HEAD = "head"
    LIST = "list_page"
    DELETE = "delete"
    DELETE_MANY = "delete_many"
    CREATE_UPLOAD = "create_upload"
    UPLOAD_PART = "upload_part"
    COMPLETE_UPLOAD = "complete_upload"
    ABORT_UPLOAD = "abort_upload"
    LIST_UPLOADS = "list_uploads_page"
    OPEN_WRITE = "open_write"
    FILE_WRITE = "file.write"
    FILE_CLOSE = "file.close"
    FILE_DISCARD = "file.discard"
    RENAME = "rename"
    CHECK_TARGETS = "check_targets"
    RENAME_DIR = "rename_dir"
    COPY = "copy"
    APPLY = "apply"

    @property
    def writes(self) -> bool:
        """Whether the call can change the store, so that a lost reply leaves its outcome unknown."""
        reads = (Operation.GET, Operation.HEAD, Operation.LIST, Operation.LIST_UPLOADS, Operation.CHECK_TARGETS)
        return self not in reads


@dataclass(frozen=True, slots=True)
class StoreCall:
    """One call, as an interceptor sees it before the store executes it.

    Attributes:
        operation: which call.
        key: the key; the prefix of a listing; the source of a rename or copy; the directory that `rename_dir` moves;
            the first key of `delete_many`, `check_targets` and `apply`.
        size_bytes: bytes that the caller sends; for a copy, bytes that the store copies.
        mode: the mode of a put, else None.
        target: the target of a copy, `rename` or `rename_dir`, else empty.
        keys: the keys of `delete_many`, `check_targets` and `apply`, else empty.
        upload_id: the id of the upload that the call uses, else empty.
        number: the number of the part, else 0.
    """

    operation: Operation
    key: str
    size_bytes: int = 0
    mode: PutMode | None = None
    target: str = ""
    keys: tuple[str, ...] = ()
    upload_id: str = ""
    number: int = 0


class Interceptor(Protocol):
    """A function called in place of the store; it calls `proceed` at most once and returns its result, or raises."""

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T: ...


class InterceptedStore:
    """A store that passes every call to an interceptor.

    Implements every protocol; `capabilities` are those of the wrapped store.

    Args:
        inner: the wrapped store.
        interceptor: called for each call to the store, in the caller's thread.
    """

    def __init__(self, inner: ObjectStore, interceptor: Interceptor) -> None:
        self._inner = inner
        self._interceptor = interceptor

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def retries(self) -> int:
        return self._inner.retries

    @property
    def _multipart(self) -> MultipartStore:
        return cast("MultipartStore", self._inner)

    @property
    def _rename(self) -> RenameStore:
        return cast("RenameStore", self._inner)

    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        call = StoreCall(Operation.PUT, key, len(data), mode=mode)
        return self._interceptor(call, lambda: self._inner.put(key, data, mode, metadata))

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        return self._interceptor(StoreCall(Operation.GET, key), lambda: self._inner.get(key, start, length, etag))

    def head(self, key: str) -> ObjectInfo:
        return self._interceptor(StoreCall(Operation.HEAD, key), lambda: self._inner.head(key))

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        call = StoreCall(Operation.LIST, prefix)
        return self._interceptor(call, lambda: self._inner.list_page(prefix, start_after, max_keys, token))

    def delete(self, key: str) -> None:
        self._interceptor(StoreCall(Operation.DELETE, key), lambda: self._inner.delete(key))

    def delete_many(self, keys: Sequence[str]) -> None:
        call = StoreCall(Operation.DELETE_MANY, keys[0] if keys else "", keys=tuple(keys))
        self._interceptor(call, lambda: self._inner.delete_many(keys))

    def close(self) -> None:
        self._inner.close()

    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        call = StoreCall(Operation.CREATE_UPLOAD, key)
        return self._interceptor(call, lambda: self._multipart.create_upload(key, metadata))

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        call = StoreCall(Operation.UPLOAD_PART, key, len(data), upload_id=upload_id, number=number)
        return self._interceptor(call, lambda: self._multipart.upload_part(key, upload_id, number, data))

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        call = StoreCall(Operation.COMPLETE_UPLOAD, key, upload_id=upload_id)
        return self._interceptor(call, lambda: self._multipart.complete_upload(key, upload_id, parts))

    def abort_upload(self, key: str, upload_id: str) -> None:
        call = StoreCall(Operation.ABORT_UPLOAD, key, upload_id=upload_id)
        self._interceptor(call, lambda: self._multipart.abort_upload(key, upload_id))

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        call = StoreCall(Operation.LIST_UPLOADS, prefix)
        return self._interceptor(call, lambda: self._multipart.list_uploads_page(prefix, marker))

    def open_write(self, key: str) -> _InterceptedFile:
        call = StoreCall(Operation.OPEN_WRITE, key)
        return _InterceptedFile(self._interceptor(call, lambda: self._rename.open_write(key)), key, self._interceptor)

    def rename(self, source: str, target: str) -> None:
        call = StoreCall(Operation.RENAME, source, target=target)
        self._interceptor(call, lambda: self._rename.rename(source, target))

    def check_targets(self, targets: Sequence[str]) -> None:
        call = StoreCall(Operation.CHECK_TARGETS, targets[0] if targets else "", keys=tuple(targets))
        self._interceptor(call, lambda: self._rename.check_targets(targets))

    def rename_dir(self, source: str, target: str) -> None:
        call = StoreCall(Operation.RENAME_DIR, source, target=target)
        self._interceptor(call, lambda: self._rename.rename_dir(source, target))

    def copy(self, source: ObjectInfo, target: str) -> None:
        call = StoreCall(Operation.COPY, source.key, source.size_bytes, target=target)
        self._interceptor(call, lambda: cast("CopyStore", self._inner).copy(source, target))

    def apply(self, changes: Sequence[Change]) -> None:
        keys = keys_of(changes)
        call = StoreCall(Operation.APPLY, keys[0] if keys else "", sent_bytes(changes), keys=keys)
        self._interceptor(call, lambda: cast("TransactionalStore", self._inner).apply(changes))

    def make_durable(self, written: Sequence[Complete | Require] = ()) -> None:
        cast("TransactionalStore", self._inner).make_durable(written)


class _InterceptedFile:
    """A `WritableFile` whose calls pass through the interceptor of the store that opened it."""

    def __init__(self, inner: WritableFile, key: str, interceptor: Interceptor) -> None:
        self._inner = inner
        self._key = key
        self._interceptor = interceptor

    def write(self, data: bytes | memoryview, /) -> int:
        call = StoreCall(Operation.FILE_WRITE, self._key, len(data))
        return self._interceptor(call, lambda: self._inner.write(data))

    def close(self) -> ObjectInfo:
        return self._interceptor(StoreCall(Operation.FILE_CLOSE, self._key), self._inner.close)

    def discard(self) -> None:
        self._interceptor(StoreCall(Operation.FILE_DISCARD, self._key), self._inner.discard)
