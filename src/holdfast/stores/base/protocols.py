"""Define the calls of a store, one protocol per capability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from holdfast.stores.base.changes import Change, Complete, Require
from holdfast.stores.base.values import (
    Capabilities,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    PutMode,
    UploadPage,
)


class ObjectStore(Protocol):
    """The calls that every store supports."""

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
        mode: PutMode = Overwrite(),  # noqa: B008  # a frozen value
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
        """Describe an object, with its metadata.

        Raises:
            NotFoundError: no such object.
        """
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
        """Delete at most `MAX_KEYS_PER_DELETE` objects in one call; ignore keys that do not exist.

        Raises:
            UnavailableError: some objects were not deleted; repeat the whole call.
        """
        ...

    def close(self) -> None:
        """Release sockets and threads. May be called twice."""
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
    """A store that makes many changes in one step."""

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
            NotFoundError: an upload does not exist; ``key`` names its key. Nothing happened. The same holds.
            InvalidRequestError: a change is not possible; ``key`` names its key. The key is invalid or occurs twice, or
                a part is missing; or, in a store that renames, a file would stand below a file or in place of a
                directory, even one that the same call deletes: delete it in an earlier call. Nothing happened.
            StorageFullError: the store has no space left. Nothing happened.
        """
        ...

    def make_durable(self, written: Sequence[Complete | Require] = ()) -> None:
        """Return when everything that was written before this call is durable, also uploads and their parts.

        Whoever reports that something is stored, so that nobody stores it again, calls this before. Wrappers forward it
        directly, like `close`.

        Args:
            written: pending uploads with their parts, and objects, that must be there then: a database that crashed
                before this call has perhaps lost them. A store that loses nothing does not look.

        Raises:
            NotFoundError: some of `written` is lost; ``key`` names one. Write it again.
            UnavailableError: it is unknown whether it is durable. Repeat later.
            UnsupportedError: the store cannot do that; the message says which setting it needs.
        """
        ...


@runtime_checkable
class ExpiringUploads(Protocol):
    """A store whose server may abort pending uploads by rules of its own."""

    def upload_expiry_days(self, prefix: str) -> float | None:
        """Return the age in days at which the server aborts a pending upload below `prefix`; None if it never does.

        Raises:
            HoldfastError: the rules cannot be read.
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
        """Open a new file for streaming, and create its directory.

        Closing the file raises `PreconditionError` if the key exists.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Move one file atomically and durably; create the target's directory and replace the target.

        Raises:
            NotFoundError: no file at `source`. It may have been renamed before: check ``head(target)``.
        """
        ...

    def check_targets(self, targets: Sequence[str]) -> None:
        """Check whether a `rename` to each of these keys would be accepted now, if its source existed.

        For callers whose later renames must not fail. Creates nothing, and cannot predict what other processes do
        before these renames.

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

        Crash: the directory was moved or was not; empty parent directories of the target may have been created.
        """
        ...


class CopyStore(ObjectStore, Protocol):
    """A store that can copy an object to another key: the substitute for rename where rename is not supported."""

    def copy(self, source: ObjectInfo, target: str) -> None:
        """Copy an object and its metadata, and replace the target atomically.

        Args:
            source: the object, as a listing returned it.

        Raises:
            NotFoundError: no object at the source's key.
        """
        ...
