"""Define what a commit protocol needs from an object store, and no more.

A store is one bucket (or one directory tree). Keys are ``/``-separated UTF-8 strings without a leading slash.
Each method is one call to the store: a point at which a process can die, a reply can be lost, or a test can intervene.

Any method may raise `AccessDeniedError`, `UnavailableError` (nothing happened), `OutcomeUnknownError` (a write may have
happened) and `NotFoundError` (the bucket is missing).

Worked composition::

    store = MemoryStore()
    upload_id = store.create_upload("t/a", {})
    part = store.upload_part("t/a", upload_id, 1, b"rows")
    assert list(iter_objects(store, "t/")) == []          # pending: invisible
    store.complete_upload("t/a", upload_id, [part])       # now the whole object is visible
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from holdfast.errors import CorruptDataError, InvalidRequestError, PreconditionError, UnsupportedError


# --- conditional writes: a sum type -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Overwrite:
    """The mode of an unconditional write, which replaces any object."""


@dataclass(frozen=True, slots=True)
class Create:
    """The mode of a write that succeeds only if no object has the key; otherwise it raises `PreconditionError`."""


@dataclass(frozen=True, slots=True)
class Update:
    """The mode of a write that succeeds only if the object has this etag; otherwise it raises `PreconditionError`."""

    etag: str

    def __post_init__(self) -> None:
        if not self.etag:
            raise InvalidRequestError("an update needs the etag of the object that it replaces: head the object first")


PutMode: TypeAlias = Overwrite | Create | Update


# --- what a store can do ----------------------------------------------------------------------------------------------
class Support(enum.Enum):
    """Whether a store has a capability; if this is unknown, the store must be probed."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipartLimits:
    """Limits of a multipart upload.

    Attributes:
        min_part_size_bytes: minimum size of every part except the last.
        max_parts: maximum number of parts in one upload.
    """

    min_part_size_bytes: int = 5 * 1024 * 1024
    max_parts: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities that a store promises.

    Attributes:
        conditional_put: whether `Create` and `Update` are honored. S3-compatible servers differ: probe.
        multipart: the limits if the store is a `MultipartStore`, else None.
        rename: whether the store is a `RenameStore` (atomic file rename).
        metadata: whether `head` returns the metadata given to `create_upload` and `put`.
        copy: whether the store is a `CopyStore` (the bytes need not pass through the client).
        rename_dir: whether the store is a `RenameStore` whose `rename_dir` is one atomic step. False where a directory
            would be renamed file by file (GCS: papers 000 and 002), or not at all.
        consistent_listing: whether a listing contains every object that was written before it began, and none that was
            deleted before. True of S3 since December 2020; required by committers that find their files by listing.
        lists_uploads: whether pending uploads are listed by directory, as `iter_uploads` requests them. MinIO lists
            them by whole keys only. If this is unknown, `stores.probe.find_upload_listing_support` tests it.
        transactions: whether the store is a `TransactionalStore`. Such a store is also a `MultipartStore` and honors
            conditional puts.
        server: identifies the server and the bucket, so that handles in the same process can share probe results; empty
            if no other handle can reach the same data.
    """

    conditional_put: Support = Support.UNKNOWN
    multipart: MultipartLimits | None = None
    rename: bool = False
    metadata: bool = False
    copy: bool = False
    rename_dir: bool = False
    consistent_listing: bool = True
    lists_uploads: Support = Support.UNKNOWN
    transactions: bool = False
    server: str = field(default="", compare=False)


# --- records ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """The description of an object. Etags can only be compared for equality; an etag may be empty."""

    key: str
    size_bytes: int
    etag: str = ""
    modified_at_s: float = 0.0
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """One page of a listing; `next_token` is opaque to the caller, and None on the last page."""

    objects: Sequence[ObjectInfo]
    next_token: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """An uploaded part, as `complete_upload` needs it.

    Attributes:
        checksum_algorithm, checksum: in S3's spelling, for uploads that other tools created with checksums.
    """

    number: int
    etag: str
    size_bytes: int
    checksum_algorithm: str = ""
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class UploadInfo:
    """A pending upload, as a listing shows it."""

    key: str
    upload_id: str
    initiated_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class UploadPage:
    """One page of pending uploads; `next_marker` is opaque to the caller, and None on the last page."""

    uploads: Sequence[UploadInfo]
    next_marker: tuple[str, str] | None


# --- changes in one step: a sum type, with the conditions for making them ---------------------------------------------
@dataclass(frozen=True, slots=True)
class Put:
    """A change that writes a whole object, like `ObjectStore.put`, under the condition of `mode`."""

    key: str
    data: bytes = field(repr=False)
    mode: PutMode = Overwrite()  # a frozen value


@dataclass(frozen=True, slots=True)
class Complete:
    """A change that completes an upload, under the condition of `mode` for the object that it becomes."""

    key: str
    upload_id: str
    parts: tuple[Part, ...]
    mode: PutMode = Create()  # a frozen value


@dataclass(frozen=True, slots=True)
class Delete:
    """A change that deletes an object if it exists with the given etag, as in listings; an empty etag matches any."""

    key: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Require:
    """A condition: all changes are refused unless this object exists with the given etag; an empty etag matches any."""

    key: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class RequireEmpty:
    """A condition: all changes are refused if an object exists below the directory `key`, which ends in ``/``."""

    key: str


Change: TypeAlias = Put | Complete | Delete | Require | RequireEmpty


def keys_of(changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the key of each change, in the same order."""
    return tuple(change.key for change in changes)


def sum_put_bytes(changes: Iterable[Change]) -> int:
    """Return the total size of the objects that the changes put, in bytes."""
    return sum(len(change.data) for change in changes if isinstance(change, Put))


# --- the calls, one protocol per capability ---------------------------------------------------------------------------
class ObjectStore(Protocol):
    """A bucket or a directory tree with objects under keys: the calls that every store supports."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that this store promises. They never change."""
        ...

    @property
    def retries(self) -> int:
        """The number of requests that this handle has retried so far in this process."""
        ...

    def put(
        self,
        key: str,
        data: bytes,
        mode: PutMode = Overwrite(),  # a frozen value
        metadata: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Write a whole object, atomically and durably.

        Guarantee: a reader sees the old object or the new one, never a mixture.

        Raises:
            PreconditionError: the condition of `mode` does not hold. The existing object may be the caller's own, from
                an earlier put whose reply was lost: read the object to find out.
            UnsupportedError: the store rejects conditional writes.
            StorageFullError: the store has no space left.
        """
        ...

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        """Read an object, or `length` bytes of it from `start`.

        Returns fewer bytes if the object ends earlier.

        Args:
            length: None reads to the end of the object.
            etag: the etag of the expected object, as `head` and listings return it; empty accepts any object. A caller
                that reads an object in several ranges passes the etag, so that all ranges come from the same version of
                the object.

        Raises:
            NotFoundError: no such object.
            PreconditionError: the object has another etag. List again and start over.
            InvalidRequestError: `start` or `length` is negative, or beyond the size of any object.
        """
        ...

    def head(self, key: str) -> ObjectInfo:
        """Describe an object, with its metadata; raise `NotFoundError` if there is no such object."""
        ...

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        """List objects whose key starts with `prefix`, including directory markers. Prefer `iter_objects`.

        Guarantee: the names within a directory are in ascending UTF-8 byte order. S3 itself sorts whole keys that way,
        but SeaweedFS returns all of ``a/`` before ``a-b``: callers must not rely on the order across directories.

        Args:
            prefix: the beginning of a key; need not end at a slash.
            start_after: return only keys greater than this. Because of the order above, use this argument only within
                one directory.
            max_keys: the page size, at least 1; S3 returns at most 1000.
            token: the `next_token` of the previous page of this listing; None requests the first page. `prefix` and
                `start_after` must be the same for all pages.

        Raises:
            InvalidRequestError: `max_keys` is not positive.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete an object; do nothing if it does not exist."""
        ...

    def delete_many(self, keys: Sequence[str]) -> None:
        """Delete at most `MAX_KEYS_PER_DELETE` objects in one call, ignoring keys that do not exist. After
        `UnavailableError`, some objects were not deleted: repeat the whole call."""
        ...

    def close(self) -> None:
        """Close the store: release its sockets and threads. May be called twice."""
        ...


class MultipartStore(ObjectStore, Protocol):
    """A store with uploads that stay invisible until completed; any process may complete them."""

    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        """Start an upload and return its id. Nothing becomes visible."""
        ...

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        """Upload part `number`, counted from 1. Uploading the same number again replaces the part.

        Raises:
            NotFoundError: no such upload.
            InvalidRequestError: the number is not from 1 to the number of parts that the store allows.
        """
        ...

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        """Make the whole object visible.

        Args:
            parts: at least one, numbered from 1 without gaps.

        Raises:
            NotFoundError: no such upload: it was completed or aborted before, or never existed. Use `head` to find out
                whether it was completed. If it was completed, a store may return the first result again instead.
            InvalidRequestError: a part is missing, has another etag, or is too small.
        """
        ...

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Delete an upload and its parts; do nothing if it does not exist."""
        ...

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        """List pending uploads. Servers differ in what they return: use `iter_uploads`."""
        ...


class TransactionalStore(MultipartStore, Protocol):
    """A store that makes many changes in one step. `RenameStore.check_targets` checks the keys for `apply`."""

    def apply(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none of them.

        Guarantee: the conditions of all changes hold at the moment when all of them take effect. A reader sees the
        state before or the state after: one page of a listing never shows some of the changes without the others. The
        changes are durable when the call returns. Their order has no meaning.

        A caller may pass hundreds of thousands of changes; a store must not take time that grows with their square.

        Args:
            changes: at most one `Put`, `Complete` or `Delete` for each key; conditions refer to the state before the
                call. No changes at all are allowed.

        Raises:
            PreconditionError: a condition does not hold; the variable ``key`` of the error names its key. Nothing
                happened. After a lost reply, the reason may be that an earlier call of the caller took effect.
            NotFoundError: an upload does not exist; ``key`` names its key. Nothing happened. After a lost reply,
                the reason may be the same.
            InvalidRequestError: a change is not possible; ``key`` names its key. The key is invalid or occurs twice, or
                a part is missing; or, in a store with directories, a file would stand below a file or in place of a
                directory, even one that the same call deletes: delete it in an earlier call. Nothing happened.
            StorageFullError: the store has no space left. Nothing happened.
        """
        ...

    def make_durable(self, written: Sequence[Complete | Require] = ()) -> None:
        """Wait until everything that was written before this call is durable, including uploads and their parts.

        Call it before you report that something is stored.

        Args:
            written: pending uploads with their parts, and objects, which must still exist: a database that crashed
                before this call may have lost them. A store that loses nothing does not check this.

        Raises:
            NotFoundError: some of `written` is lost; the variable ``key`` names one. Write it again.
            UnavailableError: it is unknown whether everything is durable. Repeat later.
            UnsupportedError: the store cannot do that; the message says which setting it needs.
        """
        ...


class WritableFile(Protocol):
    """A new file that is written from start to end and stays invisible until it is closed."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Append bytes and return their number."""
        ...

    def close(self) -> ObjectInfo:
        """Make the bytes durable and the file visible at its key. May be called again."""
        ...

    def discard(self) -> None:
        """Delete the unfinished file. Safe after `close` failed; a no-op after `close` succeeded."""
        ...


class RenameStore(ObjectStore, Protocol):
    """A file system with atomic rename of files.

    A key is either a file or a directory. A call that would write a file below a file, or in place of a directory,
    raises `InvalidRequestError` and does nothing.
    """

    def open_write(self, key: str) -> WritableFile:
        """Open a new file for streaming, and create its directory. Its `close` raises `PreconditionError` if the key
        exists."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move one file atomically and durably; create the target's directory and replace the target.

        Raises:
            NotFoundError: no file at `source`. It may have been renamed before: check ``head(target)``.
        """
        ...

    def check_targets(self, targets: Sequence[str]) -> None:
        """Check whether a `rename` to each of these keys would be accepted now: for renames that must not fail later.

        Raises:
            InvalidRequestError: a target is a directory, is below a file, or cannot be a key.
            AccessDeniedError: a target cannot be written.
        """
        ...

    def rename_dir(self, source: str, target: str) -> None:
        """Move everything below the directory `source` to `target`, if ``capabilities.rename_dir``.

        Guarantee: the move is one step: a reader sees everything below `source` or everything below `target`. It is
        durable when the call returns. Unfinished data below `source` moves as well: pending uploads continue under
        their new key; a file or an object that is being written at that moment is not published, and its writer gets
        `NotFoundError`.

        Args:
            source: key of a directory, without a trailing slash.
            target: the new key of the directory, without a trailing slash; its parent directories are created. It must
                be free: neither a file nor a directory that contains anything, including unfinished files.

        Raises:
            UnsupportedError: the store cannot rename a directory in one step; rename file by file.
            NotFoundError: nothing is below `source`. It may have been renamed before: list the target.
            PreconditionError: `target` exists. Nothing happened.
            InvalidRequestError: `target` is `source`, or is below it or below a file. Nothing happened.

        Crash: the directory was moved or was not; empty parents of the target may have been created.
        """
        ...


class CopyStore(ObjectStore, Protocol):
    """A store that can copy an object to another key: the substitute for rename where rename is not supported."""

    def copy(self, source: ObjectInfo, target: str) -> None:
        """Copy an object, as a listing returned it, with its metadata, and replace the target atomically. Raise
        `NotFoundError` if the source is gone."""
        ...


# --- kinds of stores, and pages of listings ---------------------------------------------------------------------------
MAX_KEY_BYTES = 1024
"""The longest key of S3, in UTF-8: what every store must accept."""

MAX_KEYS_PER_DELETE = 1000
"""The limit of S3's DeleteObjects."""


def multipart(store: ObjectStore) -> MultipartStore:
    """Return the store as a `MultipartStore`; raise `UnsupportedError` if it is none."""
    if store.capabilities.multipart is None:
        raise UnsupportedError("the store has no multipart uploads")
    return store  # type: ignore[return-value]  # wrappers implement every method


def as_renaming(store: ObjectStore) -> RenameStore:
    """Return the store as a `RenameStore`; raise `UnsupportedError` if it is none."""
    if not store.capabilities.rename:
        raise UnsupportedError("the store has no atomic rename")
    return store  # type: ignore[return-value]  # wrappers implement every method


def as_transactional(store: ObjectStore) -> TransactionalStore:
    """Return the store as a `TransactionalStore`; raise `UnsupportedError` if it is none."""
    if not store.capabilities.transactions:
        raise UnsupportedError("the store cannot make several changes in one step")
    return store  # type: ignore[return-value]  # wrappers implement every method


def replaced(key: str) -> PreconditionError:
    """Return the error for a read whose object was replaced after the caller had seen its etag."""
    return PreconditionError("the object was replaced while it was read: list again and start over", key=key)


def is_marker(info: ObjectInfo) -> bool:
    """Check whether an object is an empty directory marker, as S3 consoles, s3fs, S3A and s3n create them.

    Markers are named ``x/``, or ``x_$folder$`` if s3n created them. An object with such a name that is not empty is not
    a marker, but data.
    """
    return info.size_bytes == 0 and info.key.endswith(_MARKERS)


_MARKERS = ("/", "_$folder$")


def iter_objects(
    store: ObjectStore, prefix: str, start_after: str = "", page_size: int = 1000, *, markers: bool = False
) -> Iterator[ObjectInfo]:
    """Yield every object whose key starts with `prefix`, in the order that `ObjectStore.list_page` describes.

    Directory markers are yielded only to callers that ask for `markers`: to delete a directory, or to display it.

    Raises:
        CorruptDataError: the server returned the same page token twice, so the listing would never end.
    """
    token: str | None = None
    seen: set[str] = set()
    while True:
        page = store.list_page(prefix, start_after, page_size, token)
        yield from (info for info in page.objects if info.key.startswith(prefix) and (markers or not is_marker(info)))
        token = page.next_token
        if token is None:
            return
        if token in seen:
            raise CorruptDataError("a listing does not advance: report it to the vendor of the store", prefix=prefix)
        seen.add(token)


def iter_uploads(store: MultipartStore, prefix: str) -> Iterator[UploadInfo]:
    """Yield every pending upload below `prefix`.

    Filters the server's pages, because some servers also return neighbors (``t1`` for ``t1/``). The markers between
    pages need not be in order (the pages of SeaweedFS are unsorted).

    Raises:
        InvalidRequestError: the prefix does not end in ``/``, so that ``dataset1`` would match ``dataset10``.
        CorruptDataError: the server returned the same marker twice, so the listing would never end.
    """
    if prefix and not prefix.endswith("/"):
        raise InvalidRequestError("uploads are listed below a directory: end the prefix in '/'", prefix=prefix)
    return (upload for upload in _iter_upload_pages(store, prefix) if upload.key.startswith(prefix))


def iter_uploads_of(store: MultipartStore, key: str) -> Iterator[UploadInfo]:
    """Yield every pending upload of exactly one key, for servers that list uploads by whole keys only (MinIO).

    Works on every store, including those that list by directory. Costs at least one call per key.

    Raises: see `iter_uploads`.
    """
    if not key:
        raise InvalidRequestError("a key must not be empty: name one")
    return (upload for upload in _iter_upload_pages(store, key) if upload.key == key)


def _iter_upload_pages(store: MultipartStore, prefix: str) -> Iterator[UploadInfo]:
    marker: tuple[str, str] | None = None
    seen: set[tuple[str, str]] = set()
    # The uploads of the marker's key on the previous page: a store may begin the next page with all of them.
    shown: set[tuple[str, str]] = set()
    while True:
        page = store.list_uploads_page(prefix, marker)
        yield from (upload for upload in page.uploads if (upload.key, upload.upload_id) not in shown)
        marker = page.next_marker
        if marker is None:
            return
        if marker in seen:
            raise CorruptDataError(
                "a listing of uploads does not advance: report it to the vendor of the store", prefix=prefix
            )
        seen.add(marker)
        shown = {(upload.key, upload.upload_id) for upload in page.uploads if upload.key == marker[0]}


def batched_keys(keys: Iterable[str], size: int = MAX_KEYS_PER_DELETE) -> Iterator[list[str]]:
    """Split keys into lists that are short enough for `ObjectStore.delete_many`."""
    batch: list[str] = []
    for key in keys:
        batch.append(key)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
