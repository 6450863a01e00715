"""The calls of a store, by capability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from holdfast.stores.base.values import (
    Capabilities,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    PutMode,
    UploadPage,
)

__all__ = [
    "CopyStore",
    "MultipartStore",
    "ObjectStore",
    "RenameStore",
    "WritableFile",
]


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
        self,
        key: str,
        data: bytes,
        mode: PutMode = Overwrite(),  # noqa: B008  # a frozen value
        metadata: Mapping[str, str] | None = None,
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

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        """Read an object, or `length` bytes of it from `start` (to its end if None; fewer at the end of the object).

        Args:
            etag: of the object that is meant, as `head` and listings show it; empty for whichever is there. Who reads
                an object in several ranges gives it, so that no two of them are of different objects.

        Raises:
            NotFoundError: no such object.
            PreconditionError: another object is there than the one with this etag. List again and start over.
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
        """List objects whose key starts with `prefix`, directory markers among them: use `iter_objects`.

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

    def close(self) -> ObjectInfo:
        """Make the bytes durable and the file visible at its key; describes it, again when called again."""
        ...

    def discard(self) -> None:
        """Drop what was written. Safe after `close` failed, no-op after it succeeded."""
        ...


class RenameStore(ObjectStore, Protocol):
    """A filesystem with atomic file rename.

    A key is a file or a directory of others, never both. Whatever call would write a file below a file, or where a
    directory is, is refused with `InvalidRequestError` and does nothing.
    """

    def open_write(self, key: str) -> WritableFile:
        """Open a new file for streaming; its directory is made. `PreconditionError` on close if the key exists."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move one file atomically and durably, making the target's directory, replacing the target.

        Raises:
            NotFoundError: no file at `source` (it may have been renamed before: settle it by ``head(target)``).
        """
        ...

    def check_targets(self, targets: Sequence[str]) -> None:
        """Refuse what `rename` to one of these keys would refuse as things are now, were its source there.

        For whoever must not be refused later. Nothing is made; what others do meanwhile is not foreseen.

        Raises:
            InvalidRequestError: a target is a directory, or lies below a file, or cannot be a key.
            AccessDeniedError: nothing may be put where a target lies.
        """
        ...

    def rename_dir(self, source: str, target: str) -> None:
        """Move everything below the directory `source` to `target`, if ``capabilities.rename_dir``.

        Guarantee: one step; a reader sees all of it at one place or all of it at the other. Durable when it returns.
        What is unfinished below `source` moves along: pending uploads go on under their new key; a file or an object
        that is being written at that moment is not published, its writer gets `NotFoundError`.

        Args:
            source: key of a directory, without a slash at its end.
            target: key that becomes the directory, likewise; the directories above it are made. It has to be free:
                neither a file nor a directory that holds anything, unfinished files included.

        Raises:
            UnsupportedError: the store cannot do it in one step; rename file by file.
            NotFoundError: there is nothing below `source` (it may have been renamed before: settle it by listing
                the target).
            PreconditionError: `target` exists. Nothing happened.
            InvalidRequestError: `target` is `source` or lies below it, or below a file. Nothing happened.

        Crash: before or after, nothing between; empty directories above the target may have been made.
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
