"""What an object store can do for a commit protocol, and no more.

A store is one bucket (or one directory tree). Keys are ``/``-separated UTF-8 strings without a leading slash.
Every method is one call to the store: one point where a process can die, a reply can be lost, a test can look.
Loops over pages are the functions `iter_objects` and `iter_uploads`; they hold the checks that no server may break.

Errors that any method may raise besides its own: `AccessDeniedError`, `UnavailableError` (nothing happened),
`OutcomeUnknownError` (a write may have happened), `NotFoundError` (also: the bucket is missing).

Worked composition::

    store = MemoryStore()
    upload_id = store.create_upload("t/a", {})
    part = store.upload_part("t/a", upload_id, 1, b"rows")
    assert list(iter_objects(store, "t/")) == []          # pending: nothing to see
    store.complete_upload("t/a", upload_id, [part])       # now it is there, whole
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from holdfast.errors import CorruptDataError, InvalidRequestError, UnsupportedError

__all__ = [
    "Capabilities",
    "CopyStore",
    "Create",
    "MultipartLimits",
    "MultipartStore",
    "ObjectInfo",
    "ObjectPage",
    "ObjectStore",
    "Overwrite",
    "Part",
    "PutMode",
    "RenameStore",
    "Trit",
    "Update",
    "UploadInfo",
    "UploadPage",
    "WritableFile",
    "batched_keys",
    "check_key",
    "iter_objects",
    "iter_uploads",
    "multipart",
    "rename",
]


# --- conditional writes: a sum type -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Overwrite:
    """Write whatever is there."""


@dataclass(frozen=True, slots=True)
class Create:
    """Write only if no object has this key; else `PreconditionError`."""


@dataclass(frozen=True, slots=True)
class Update:
    """Write only over the object with this etag; else (also if it is gone) `PreconditionError`."""

    etag: str


PutMode: TypeAlias = Overwrite | Create | Update


# --- what a store can do ----------------------------------------------------------------------------------------------
class Trit(enum.Enum):
    """A capability that is known, known to be missing, or has to be probed."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipartLimits:
    """Limits of a multipart upload.

    Attributes:
        min_part_size_bytes: least size of any part but the last.
        max_parts: greatest number of parts in one upload.
    """

    min_part_size_bytes: int = 5 * 1024 * 1024
    max_parts: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store promises.

    Attributes:
        conditional_put: whether `Create` and `Update` are honoured (S3-compatible servers differ: probe).
        multipart: limits if the store is a `MultipartStore`, else None.
        rename: whether the store is a `RenameStore` (atomic file rename).
        metadata: whether metadata given to `create_upload` and `put` comes back from `head`.
        copy: whether the store is a `CopyStore` (the bytes need not pass through the client).
    """

    conditional_put: Trit = Trit.UNKNOWN
    multipart: MultipartLimits | None = None
    rename: bool = False
    metadata: bool = False
    copy: bool = False


# --- records ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as `head`, `put` and listings show it; `etag` may be empty and only its equality means something."""

    key: str
    size_bytes: int
    etag: str = ""
    modified_at_s: float = 0.0
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """One page of a listing; `next_token` is None on the last one, else opaque to the caller."""

    objects: Sequence[ObjectInfo]
    next_token: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """An uploaded part: what `complete_upload` needs to name it."""

    number: int
    etag: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class UploadInfo:
    """A pending upload."""

    key: str
    upload_id: str
    initiated_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class UploadPage:
    """One page of pending uploads; `next_marker` is None on the last one, else opaque to the caller."""

    uploads: Sequence[UploadInfo]
    next_marker: tuple[str, str] | None


# --- protocols --------------------------------------------------------------------------------------------------------
class ObjectStore(Protocol):
    """The calls that every store has."""

    @property
    def capabilities(self) -> Capabilities:
        """What this store promises; constant."""
        ...

    @property
    def retries(self) -> int:
        """How many requests this handle has sent again so far, in this process."""
        ...

    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        """Write a whole object, atomically and durably.

        Guarantee: a reader sees the old object or the new one, never a mixture.

        Raises:
            PreconditionError: `mode` was not met. It may be the caller's own earlier put whose reply was lost:
                read back.
            UnsupportedError: the store refuses conditional writes.
            StorageFullError: no room.
        """
        ...

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """Read an object, or `length` bytes of it from `start` (to its end if None; fewer at the end of the object).

        Raises:
            NotFoundError: no such object.
        """
        ...

    def head(self, key: str) -> ObjectInfo:
        """Describe an object, with its metadata.

        Raises:
            NotFoundError: no such object.
        """
        ...

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        """List objects whose key starts with `prefix`: use `iter_objects`.

        Guarantee: within a directory, in ascending UTF-8 byte order of names. So are whole keys on S3 itself, but
        SeaweedFS shows all of ``a/`` before ``a-b``: nothing may rest on the order across directories.

        Args:
            prefix: any start of a key.
            start_after: only keys greater than this; for keys of one directory, because of that order.
            max_keys: at most so many on this page; 1000 is the most that S3 gives.
            token: goes on with a listing of the same prefix and `start_after` where its last page ended.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete an object; a missing one is no error."""
        ...

    def delete_many(self, keys: Sequence[str]) -> None:
        """Delete at most 1000 objects in one call; missing ones are no error.

        Raises:
            UnavailableError: some were not deleted; repeat the whole call.
        """
        ...

    def close(self) -> None:
        """Release sockets and threads. Safe to call twice."""
        ...


class MultipartStore(ObjectStore, Protocol):
    """Uploads that stay invisible until completed, by whichever process completes them."""

    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        """Start an upload; returns its id. Nothing becomes visible."""
        ...

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        """Upload part `number` (from 1). Repeating a number replaces the part.

        Raises:
            NotFoundError: no such upload.
        """
        ...

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        """Make the object visible, whole. `parts` ascending and contiguous from 1, at least one.

        Raises:
            NotFoundError: no such upload: completed before, aborted, or never there. Settle it by `head`.
            InvalidRequestError: a part is missing, has another etag, or is too small.
        """
        ...

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Drop an upload and its parts; a missing upload is no error."""
        ...

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        """List pending uploads. Servers differ in what they return here: use `iter_uploads`."""
        ...


class WritableFile(Protocol):
    """A new file that is being written from start to end; invisible at its key or hidden until closed."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Append."""
        ...

    def close(self) -> None:
        """Make the bytes durable and the file visible at its key."""
        ...

    def discard(self) -> None:
        """Drop what was written. Safe after `close` failed, no-op after it succeeded."""
        ...


class RenameStore(ObjectStore, Protocol):
    """A filesystem with atomic file rename."""

    def open_write(self, key: str) -> WritableFile:
        """Open a new file for streaming; its directory is made. `PreconditionError` on close if the key exists."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move one file atomically and durably, making the target's directory, replacing the target.

        Raises:
            NotFoundError: no file at `source` (it may have been renamed before: settle it by ``head(target)``).
        """
        ...


class CopyStore(ObjectStore, Protocol):
    """A store that copies an object by itself: what a rename costs on a store without rename."""

    def copy(self, source: ObjectInfo, target: str) -> None:
        """Copy an object, as a listing shows it, with its metadata; atomically replaces the target.

        Raises:
            NotFoundError: no object at the source's key.
        """
        ...


# --- functions over stores --------------------------------------------------------------------------------------------
def multipart(store: ObjectStore) -> MultipartStore:
    """The store as a `MultipartStore`; `UnsupportedError` if it is none."""
    if store.capabilities.multipart is None:
        raise UnsupportedError("the store has no multipart uploads")
    return store  # type: ignore[return-value]  # the capability is the promise; wrappers implement every method


def rename(store: ObjectStore) -> RenameStore:
    """The store as a `RenameStore`; `UnsupportedError` if it is none."""
    if not store.capabilities.rename:
        raise UnsupportedError("the store has no atomic rename")
    return store  # type: ignore[return-value]  # the capability is the promise; wrappers implement every method


def iter_objects(store: ObjectStore, prefix: str, start_after: str = "", page_size: int = 1000) -> Iterator[ObjectInfo]:
    """Every object whose key starts with `prefix`, page by page, in the order that `ObjectStore.list_page` describes.

    Raises:
        CorruptDataError: the server gave the same token twice, so that the walk would not end.
    """
    token: str | None = None
    seen: set[str] = set()
    while True:
        page = store.list_page(prefix, start_after, page_size, token)
        yield from (info for info in page.objects if info.key.startswith(prefix))
        token = page.next_token
        if token is None:
            return
        if token in seen:
            raise CorruptDataError("a listing does not advance; report it to the store's maker", prefix=prefix)
        seen.add(token)


def iter_uploads(store: MultipartStore, prefix: str) -> Iterator[UploadInfo]:
    """Every pending upload below `prefix`, filtered here because servers return neighbours (``t1`` for ``t1/``).

    Args:
        prefix: a directory: ends in ``/`` or is empty, so that ``dataset1`` never reaches into ``dataset10``.

    Markers need not be ordered (SeaweedFS pages are unsorted), but none may come twice, or the walk would not end.

    Raises:
        InvalidRequestError: the prefix does not end in ``/``.
        CorruptDataError: the server gave the same marker twice.
    """
    if prefix and not prefix.endswith("/"):
        raise InvalidRequestError("uploads are listed below a directory: end the prefix in '/'", prefix=prefix)
    marker: tuple[str, str] | None = None
    seen: set[tuple[str, str]] = set()
    while True:
        page = store.list_uploads_page(prefix, marker)
        yield from (upload for upload in page.uploads if upload.key.startswith(prefix))
        marker = page.next_marker
        if marker is None:
            return
        if marker in seen:
            raise CorruptDataError(
                "a listing of uploads does not advance; report it to the store's maker", prefix=prefix
            )
        seen.add(marker)


def check_key(key: str, max_bytes: int = 1024) -> None:
    """Refuse a key that some store would refuse or change: empty, with a leading slash, not UTF-8, too long.

    Raises:
        InvalidRequestError: with the reason.
    """
    if not key or key.startswith("/"):
        raise InvalidRequestError("a key is neither empty nor starts with '/'", key=key)
    if "\0" in key:
        raise InvalidRequestError("a key holds no NUL character", key=key)
    try:
        size_bytes = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequestError("a key has to be valid unicode", key=key) from error
    if size_bytes > max_bytes:
        raise InvalidRequestError(f"a key has at most {max_bytes} bytes: shorten it", key=key, bytes=size_bytes)


def batched_keys(keys: Iterable[str], size: int = 1000) -> Iterator[list[str]]:
    """Keys in lists of at most `size`, as `ObjectStore.delete_many` takes them."""
    batch: list[str] = []
    for key in keys:
        batch.append(key)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
