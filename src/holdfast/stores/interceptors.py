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
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from holdfast.stores.base import (
    Capabilities,
    Change,
    Complete,
    ObjectInfo,
    ObjectStore,
    Overwrite,
    PutMode,
    Require,
    WritableFile,
    keys_of,
    sum_put_bytes,
)

T = TypeVar("T")


class StoreOperation(enum.Enum):
    """The kinds of calls to a store, by the names of the protocols' methods."""

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
        reads = (
            StoreOperation.GET,
            StoreOperation.HEAD,
            StoreOperation.LIST,
            StoreOperation.LIST_UPLOADS,
            StoreOperation.CHECK_TARGETS,
        )
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

    operation: StoreOperation
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


def _describe_key_call(operation: StoreOperation) -> Callable[..., StoreCall]:
    return lambda key, *_others, **_named: StoreCall(operation, key)


def _describe_keys_call(operation: StoreOperation) -> Callable[..., StoreCall]:
    return lambda keys: StoreCall(operation, keys[0] if keys else "", keys=tuple(keys))


def _describe_two_key_call(operation: StoreOperation) -> Callable[..., StoreCall]:
    return lambda source, target: StoreCall(operation, source, target=target)


def _describe_upload_call(operation: StoreOperation) -> Callable[..., StoreCall]:
    return lambda key, upload_id, *_parts: StoreCall(operation, key, upload_id=upload_id)


def _describe_put(key: str, data: bytes, mode: PutMode = Overwrite(), metadata: object = None) -> StoreCall:
    return StoreCall(StoreOperation.PUT, key, len(data), mode=mode)


def _describe_upload_part(key: str, upload_id: str, number: int, data: bytes) -> StoreCall:
    return StoreCall(StoreOperation.UPLOAD_PART, key, len(data), upload_id=upload_id, number=number)


def _describe_copy(source: ObjectInfo, target: str) -> StoreCall:
    return StoreCall(StoreOperation.COPY, source.key, source.size_bytes, target=target)


def _describe_apply_call(changes: Sequence[Change]) -> StoreCall:
    keys = keys_of(changes)
    return StoreCall(StoreOperation.APPLY, keys[0] if keys else "", sum_put_bytes(changes), keys=keys)


_CALLS: Mapping[str, Callable[..., StoreCall]] = {
    **{
        one.value: _describe_key_call(one)
        for one in (StoreOperation.GET, StoreOperation.HEAD, StoreOperation.LIST, StoreOperation.DELETE)
    },
    **{one.value: _describe_key_call(one) for one in (StoreOperation.CREATE_UPLOAD, StoreOperation.LIST_UPLOADS)},
    **{one.value: _describe_keys_call(one) for one in (StoreOperation.DELETE_MANY, StoreOperation.CHECK_TARGETS)},
    **{one.value: _describe_two_key_call(one) for one in (StoreOperation.RENAME, StoreOperation.RENAME_DIR)},
    **{one.value: _describe_upload_call(one) for one in (StoreOperation.COMPLETE_UPLOAD, StoreOperation.ABORT_UPLOAD)},
    "put": _describe_put,
    "upload_part": _describe_upload_part,
    "copy": _describe_copy,
    "apply": _describe_apply_call,
}
"""Describes a call by its name, given its arguments."""


class InterceptedStore:
    """A store that passes every call to an interceptor.

    Implements every protocol, by a method for each row of `_CALLS`; `capabilities` are those of the wrapped store.

    Args:
        inner: the wrapped store.
        interceptor: called for each call to the store, in the caller's thread.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, inner: ObjectStore, interceptor: Interceptor) -> None:
        self._inner: Any = inner
        self._interceptor = interceptor

    @property
    def capabilities(self) -> Capabilities:
        return cast("Capabilities", self._inner.capabilities)

    @property
    def retries(self) -> int:
        return int(self._inner.retries)

    def close(self) -> None:
        self._inner.close()

    def make_durable(self, written: Sequence[Complete | Require] = ()) -> None:
        self._inner.make_durable(written)

    def open_write(self, key: str) -> _InterceptedFile:
        file = self._interceptor(StoreCall(StoreOperation.OPEN_WRITE, key), lambda: self._inner.open_write(key))
        return _InterceptedFile(file, key, self._interceptor)


def _make_intercepted_method(name: str, describe: Callable[..., StoreCall]) -> Callable[..., Any]:
    def call_intercepted(self: InterceptedStore, *args: Any, **named: Any) -> Any:
        method = getattr(self._inner, name)
        return self._interceptor(describe(*args, **named), lambda: method(*args, **named))

    return call_intercepted


for _name, _describe in _CALLS.items():
    setattr(InterceptedStore, _name, _make_intercepted_method(_name, _describe))


class _InterceptedFile:
    """A `WritableFile` whose calls pass through the interceptor of the store that opened it."""

    def __init__(self, inner: WritableFile, key: str, interceptor: Interceptor) -> None:
        self._inner = inner
        self._key = key
        self._interceptor = interceptor

    def write(self, data: bytes | memoryview, /) -> int:
        call = StoreCall(StoreOperation.FILE_WRITE, self._key, len(data))
        return self._interceptor(call, lambda: self._inner.write(data))

    def close(self) -> ObjectInfo:
        return self._interceptor(StoreCall(StoreOperation.FILE_CLOSE, self._key), self._inner.close)

    def discard(self) -> None:
        self._interceptor(StoreCall(StoreOperation.FILE_DISCARD, self._key), self._inner.discard)
