"""Write and read the immutable blobs that files consist of.

A blob's name begins with the id of the file for which it was written, so a collector can ask whether its writer still
has a lease. Names are never used twice. Wherever a blob is stored, its content is in `frames`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.namespace.data_claim import DataClaim
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.frames import Framer, content_of, framed, stored_bytes, stored_range
from holdfast.namespace.inode import Extent
from holdfast.runtime import Ids
from holdfast.stores.base import ObjectStore, Part, WritableFile, multipart, rename

BLOBS = "blobs/"
"""Where the blobs are in the object store."""

_PART_BYTES = 8 * 1024 * 1024
_MOST_DELETED = 1000
_PARTS_OF_A_SIZE = 1000
"""After so many parts, the size doubles: 10,000 parts, the most that S3 allows, are 8 TB instead of 80 GB."""


_NAME = re.compile(r"[0-9a-f]{2}/([1-9a-f][0-9a-f]{0,31})-[0-9a-f]{22}")


def writer_of(blob: str) -> int | None:
    """Return the id of the file for which a blob was written; None if the name is not one of ours."""
    found = _NAME.fullmatch(blob)
    return None if found is None else int(found[1], 16)


@dataclass(frozen=True, slots=True)
class BlobStore:
    """The blobs of a namespace.

    Attributes:
        root: the path of the namespace's data in the store; empty, or ends in a slash.
        claim: the namespace's claim to that path; None if nobody else can have it, as in memory.
    """

    store: ObjectStore
    root: str
    ids: Ids
    claim: DataClaim | None = None

    def hold(self) -> None:
        """Make sure that the blobs belong to this namespace, before any is written or deleted.

        Raises:
            InvalidRequestError, CorruptDataError: see `DataClaim`; nothing was changed.
        """
        if self.claim is not None:
            self.claim.hold(self.store, self.root)

    def check_claim(self) -> None:
        """Make sure that the blobs do not belong to another namespace; claims nothing.

        Raises:
            InvalidRequestError, CorruptDataError: see `DataClaim`.
        """
        if self.claim is not None:
            self.claim.check(self.store, self.root)

    def store_time_s(self) -> float:
        """Return the time of the clock that dates the objects, seconds since the epoch; it may differ from ours.

        Writes and deletes an empty object beside the blobs. Returns 0 if the store does not date its objects.
        """
        key = f"{self.root}clock-{self.ids.token()}"
        self.store.put(key, b"")
        try:
            return self.store.head(key).modified_at_s
        finally:
            self.store.delete(key)

    def key(self, blob: str) -> str:
        """Return the key of a blob in the store."""
        return f"{self.root}{BLOBS}{blob}"

    def name_of(self, key: str) -> str:
        """Return the name of the blob that has a key in the store."""
        return key[len(self.key("")) :]

    def new_name(self, file_id: int) -> str:
        """Return a new name. Its first characters are random, so that neighbors are spread over the store."""
        token = self.ids.token()
        return f"{token[:2]}/{file_id:x}-{token[2:]}{self.ids.token()}"

    def small(self, file_id: int, content: bytes | bytearray) -> tuple[Extent, dict[str, bytes]]:
        """Return the extent of a blob that goes into the database, and what its record gets, by its name."""
        name = self.new_name(file_id)
        return Extent(name, len(content), inline=True), {name: framed(name, content)}

    def open_write(self, file_id: int) -> BlobWriter:
        """Begin a blob.

        Raises:
            InvalidRequestError, CorruptDataError: see `hold`.
        """
        self.hold()
        return BlobWriter(self, self.new_name(file_id))

    def read(self, blob: str, start: int, length: int) -> bytes:
        """Read a part of a blob.

        Raises:
            CorruptDataError: the blob is missing, damaged, or shorter than its file says: see the message.
        """
        try:
            stored = self.store.get(self.key(blob), *stored_range(start, length))
        except NotFoundError as error:
            raise CorruptDataError(
                "a blob of the file is missing: open the file again, since what is deleted or replaced is kept for the "
                "safety age only, by the clock of whoever did that; if that fails, run holdfast namespace fsck",
                blob=blob,
            ) from error
        return content_of(blob, start, length, stored)

    def delete_many(self, blobs: Sequence[str]) -> None:
        """Delete blobs, 1000 in a request; ignore those that do not exist.

        Raises:
            InvalidRequestError, CorruptDataError: see `hold`.
        """
        if blobs:
            self.hold()
            self.check_claim()  # since this process began, the data may have moved, and others may have the place
        for start in range(0, len(blobs), _MOST_DELETED):
            self.store.delete_many([self.key(blob) for blob in blobs[start : start + _MOST_DELETED]])


class BlobWriter:
    """Writes one blob: in one request while it is small, in parts as it grows.

    Guarantee: the blob is durable when `close` returns, and does not exist before.
    """

    def __init__(self, blobs: BlobStore, name: str) -> None:
        self._blobs = blobs
        self._key = blobs.key(name)
        self.name = name
        self.length = 0
        self._framer = Framer(name)
        self._buffer = bytearray()
        self._upload_id: str | None = None
        self._parts: list[Part] = []
        self._file = rename(blobs.store).open_write(self._key) if blobs.store.capabilities.rename else None

    @property
    def has_date(self) -> bool:
        """Whether the object's date is settled: S3 dates an object that is written in parts from its first request."""
        return self._upload_id is not None

    @property
    def gets_date_when_closed(self) -> bool:
        """Whether `close` decides on the object's date; a file has that of its last write."""
        return self._upload_id is None and self._file is None

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes.

        Raises:
            LeaseLostError: a sweep has given up what was written before. Write the file again.
        """
        self.length += len(data)
        frames = self._framer.add(data)
        if self._file is not None:
            self._file.write(frames)
            return
        self._buffer += frames
        while len(self._buffer) >= self._part_bytes and self._blobs.store.capabilities.multipart is not None:
            end = self._part_bytes
            self._upload(bytes(self._buffer[:end]))
            del self._buffer[:end]

    @property
    def _part_bytes(self) -> int:
        """The size of the next part."""
        return _PART_BYTES << len(self._parts) // _PARTS_OF_A_SIZE

    def _upload(self, data: bytes) -> None:
        store = multipart(self._blobs.store)
        if self._upload_id is None:
            self._upload_id = store.create_upload(self._key)
        with self._unless_swept():
            self._parts.append(store.upload_part(self._key, self._upload_id, len(self._parts) + 1, data))

    def close(self) -> Extent:
        """Make the blob durable; return the extent that covers it. May be called again after an error.

        Raises:
            LeaseLostError: a sweep has given up what was written. Write the file again.
        """
        if self._file is not None:
            self._close_file(self._file)
            return Extent(self.name, self.length)
        self._buffer += self._framer.end()
        if self._upload_id is None:
            # The name is new, so no condition is needed; a retry writes the same bytes.
            self._blobs.store.put(self._key, bytes(self._buffer))
        else:
            if self._buffer:
                self._upload(bytes(self._buffer))
                self._buffer.clear()
            with self._unless_swept():
                self._complete(self._upload_id)
        return Extent(self.name, self.length)

    def _close_file(self, file: WritableFile) -> None:
        if end := self._framer.end():
            try:
                file.write(end)
            except BaseException:
                file.discard()  # some of it may be written, so another call must not succeed
                raise
        with self._unless_swept():
            file.close()

    def _complete(self, upload_id: str) -> None:
        store = multipart(self._blobs.store)
        try:
            store.complete_upload(self._key, upload_id, self._parts)
        except NotFoundError:
            # An earlier call may have completed it, and its reply was lost.
            if store.head(self._key).size_bytes != stored_bytes(self.length):
                raise

    @contextmanager
    def _unless_swept(self) -> Iterator[None]:
        """Say why an unfinished blob may be gone (`unfinished_blobs`)."""
        try:
            yield
        except NotFoundError as error:
            raise LeaseLostError(
                "the bytes that were written so far are gone: a sweep gives up what waits for longer than the safety "
                "age, or somebody has replaced the data; write the file again, under a lease if it takes so long",
                blob=self.name,
            ) from error

    def discard(self) -> None:
        """Give up an unfinished blob."""
        if self._file is not None:
            self._file.discard()
        elif self._upload_id is not None:
            multipart(self._blobs.store).abort_upload(self._key, self._upload_id)
