"""Write and read the immutable blobs that files consist of.

A blob's name begins with the id of the file for which it was written, so a collector can ask whether its writer still
has a lease. Names are never used twice. Wherever a blob is stored, its content is in frames, each with a checksum.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    FencedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
)
from holdfast.namespace.configuration import BlobPathClaim
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.inode import Extent
from holdfast.runtime import Clock, Ids, Moment
from holdfast.stores.base import ObjectStore, Part, WritableFile, as_renaming, multipart

# --- frames -----------------------------------------------------------------------------------------------------------
# A frame is 64 KiB of content, the last one what is left, and then the CRC-32 of the blob's name, the number of the
# frame and its content. So a flipped bit, the bytes of another blob or of another place in the same one, and a blob
# that was cut or refilled are noticed where they are read; and to check a range, nothing but its frames is read. The
# checksums need no record: the name of the blob is in the extent, and names are never used twice.
_CONTENT = 64 * 1024
_SUM = 4
_FRAME = _CONTENT + _SUM


def stored_size(length: int) -> int:
    """Return the size of a stored blob, checksums included, for content of `length` bytes."""
    return length + -(-length // _CONTENT) * _SUM


def content_size(stored: int) -> int:
    """Return the number of content bytes in a blob of `stored` bytes, checksums included: the inverse of
    `stored_size`.
    """
    frames, rest = divmod(stored, _FRAME)
    return frames * _CONTENT + max(rest - _SUM, 0)


def compute_stored_range(start: int, length: int) -> tuple[int, int]:
    """Return where the frames that contain a range of content are in the stored blob: their start and their length in
    bytes.

    The last frame of a blob may end earlier.
    """
    first, end = start // _CONTENT, -(-(start + length) // _CONTENT)
    return first * _FRAME, (end - first) * _FRAME


class BlobFramer:
    """Splits the content of a blob into frames of 64 KiB and adds a checksum to each."""

    def __init__(self, blob: str) -> None:
        self._blob = blob
        self._number = 0
        self._filled = 0
        self._crc: int  # of what the frame has so far

    def add(self, data: bytes | bytearray | memoryview) -> bytes:
        """Take the next bytes of content; return the bytes to store next."""
        view = memoryview(data)
        pieces: list[bytes | memoryview] = []
        while view:
            if not self._filled:
                self._crc = _checksum_seed(self._blob, self._number)
            piece, view = view[: _CONTENT - self._filled], view[_CONTENT - self._filled :]
            self._crc = zlib.crc32(piece, self._crc)
            self._filled += len(piece)
            pieces.append(piece)
            if self._filled == _CONTENT:
                pieces.append(self.end())
        return b"".join(pieces)

    def end(self) -> bytes:
        """End the last frame; return its checksum, or no bytes if there is no unfinished frame."""
        if not self._filled:
            return b""
        self._number += 1
        self._filled = 0
        return self._crc.to_bytes(_SUM, "big")


def frame_blob(blob: str, content: bytes | bytearray) -> bytes:
    """Return the bytes to store for the whole content of a blob: frames with checksums."""
    framer = BlobFramer(blob)
    return framer.add(content) + framer.end()


def unframe_blob_range(blob: str, start: int, length: int, stored: bytes) -> bytes:
    """Verify the checksums of stored frames, and return a range of the content in them.

    Args:
        start, length: the range in the content of the blob.
        stored: the frames at `compute_stored_range(start, length)`.

    Raises:
        CorruptDataError: the frames are damaged, or too short; its variable ``offset`` is where the damage begins
            in the content.
    """
    number, skipped = divmod(start, _CONTENT)
    pieces = []
    left = length
    for is_good, content in _iter_frames(blob, number, memoryview(stored)):
        if not is_good:
            raise CorruptDataError(
                "bytes of the file are damaged: restore the blob from a backup, or the file; holdfast namespace fsck "
                "--read finds all damaged files",
                blob=blob,
                offset=number * _CONTENT,
            )
        piece = content[skipped : skipped + left]
        pieces.append(piece)
        left -= len(piece)
        skipped = 0
        number += 1
    if left:
        raise CorruptDataError(
            "a blob of the file is too short: restore it from a backup, or the file; holdfast namespace fsck finds all "
            "of them",
            blob=blob,
            offset=start + length - left,
        )
    return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)


def find_damaged_frame(blob: str, start: int, stored: bytes) -> int | None:
    """Return where the first damaged frame begins in the content of a blob; None if all frames are intact.

    Args:
        start: where the first frame of `stored` begins in the content.
    """
    for number, (is_good, _) in enumerate(_iter_frames(blob, start // _CONTENT, memoryview(stored)), start // _CONTENT):
        if not is_good:
            return number * _CONTENT
    return None


def _iter_frames(blob: str, number: int, stored: memoryview) -> Iterator[tuple[bool, memoryview]]:
    """Yield the content of each frame, and whether it is what was written."""
    for at in range(0, len(stored), _FRAME):
        frame = stored[at : at + _FRAME]
        content, crc = frame[:-_SUM], frame[-_SUM:]
        yield zlib.crc32(content, _checksum_seed(blob, number)) == int.from_bytes(crc, "big") and bool(content), content
        number += 1


def _checksum_seed(blob: str, number: int) -> int:
    return zlib.crc32(f"{blob} {number} ".encode())


BLOBS = "blobs/"
"""Where the blobs are in the object store."""

_PART_BYTES = 8 * 1024 * 1024
_MOST_DELETED = 1000
_PARTS_OF_A_SIZE = 1000
"""After so many parts, the size doubles: 10,000 parts, the most that S3 allows, are 8 TB instead of 80 GB."""


_NAME = re.compile(r"[0-9a-f]{2}/([1-9a-f][0-9a-f]{0,31})-[0-9a-f]{22}")


def file_id_in_blob_name(blob: str) -> int | None:
    """Return the inode id of the file for which a blob was written, from the blob's name; None if the name is not that
    of a blob.
    """
    found = _NAME.fullmatch(blob)
    return None if found is None else int(found[1], 16)


@dataclass(frozen=True, slots=True)
class BlobStore:
    """Stores the blobs of one namespace in its object store.

    Attributes:
        root: the path of the namespace's data in the store; empty, or ends in a slash.
        claim: the namespace's claim to that path; None if no other namespace can use it, as in memory.
    """

    store: ObjectStore
    root: str
    ids: Ids
    claim: BlobPathClaim | None = None

    def hold(self) -> None:
        """Claim the path of the blobs for this namespace if it is free; must be called before a blob is written or
        deleted.

        Raises:
            InvalidRequestError, CorruptDataError: see `BlobPathClaim`; nothing was changed.
        """
        if self.claim is not None:
            self.claim.hold(self.store, self.root)

    def check_claim(self) -> None:
        """Check that the path of the blobs does not belong to another namespace; claim nothing.

        Raises:
            InvalidRequestError, CorruptDataError: see `BlobPathClaim`.
        """
        if self.claim is not None:
            self.claim.check(self.store, self.root)

    def read_store_clock_s(self) -> float:
        """Return the time of the object store's clock, which dates the objects, in seconds since the epoch.

        Writes and deletes an empty object beside the blobs. Returns 0 if the store does not date its objects.
        """
        key = f"{self.root}clock-{self.ids.token()}"
        self.store.put(key, b"")
        try:
            return self.store.head(key).modified_at_s
        finally:
            self.store.delete(key)

    def key(self, blob: str) -> str:
        """Return the key of the object of a blob, given the blob's name."""
        return f"{self.root}{BLOBS}{blob}"

    def name_of(self, key: str) -> str:
        """Return the name of a blob, given the key of its object."""
        return key[len(self.key("")) :]

    def new_name(self, file_id: int) -> str:
        """Return a name for a new blob of a file. Its first characters are random, to spread the keys over the
        partitions of the store.
        """
        token = self.ids.token()
        return f"{token[:2]}/{file_id:x}-{token[2:]}{self.ids.token()}"

    def new_small_blob(self, file_id: int, content: bytes | bytearray) -> tuple[Extent, dict[str, bytes]]:
        """Make a blob that is to be stored in the database; return its extent, and a mapping of its name to the
        bytes to store.
        """
        name = self.new_name(file_id)
        return Extent(name, len(content), inline=True), {name: frame_blob(name, content)}

    def put(self, file_id: int, content: bytes, inline_bytes: int) -> tuple[tuple[Extent, ...], dict[str, bytes]]:
        """Store the content of a file as a blob, or prepare it for the database if it is small; return the extents, and
        the bytes of small blobs by name.

        Args:
            inline_bytes: content up to this size goes into the database.
        """
        if not content:
            return (), {}
        if len(content) <= inline_bytes:
            extent, stored = self.new_small_blob(file_id, content)
            return (extent,), stored
        writer = self.open_write(file_id)
        try:
            writer.write(content)
            return (writer.close(),), {}
        except BaseException:
            writer.discard()
            raise

    @contextmanager
    def delete_if_publishing_fails(self, extents: Collection[Extent], expiry: PublishDeadline) -> Iterator[None]:
        """Delete blobs if the ``with`` block fails to publish them. Keep them if it is unknown whether they were
        published.
        """
        try:
            yield
        except (InvalidRequestError, ConflictError, FencedError):
            # What is old may belong to a file by now, to which a repair has given it; else a sweep deletes it.
            if not expiry.is_half_over():
                with suppress(HoldfastError):  # what is left is garbage
                    self.delete_many([one.blob for one in extents if not one.inline])
            raise

    def open_write(self, file_id: int) -> BlobWriter:
        """Begin a new large blob for a file; return its writer.

        Raises:
            InvalidRequestError, CorruptDataError: see `hold`.
        """
        self.hold()
        return BlobWriter(self, self.new_name(file_id))

    def read(self, blob: str, start: int, length: int) -> bytes:
        """Read `length` bytes of a blob's content from `start`, and verify their checksums.

        Raises:
            CorruptDataError: the blob is missing, damaged, or shorter than its file says: see the message.
        """
        try:
            stored = self.store.get(self.key(blob), *compute_stored_range(start, length))
        except NotFoundError as error:
            raise CorruptDataError(
                "a blob of the file is missing: open the file again, since what is deleted or replaced is kept for the "
                "safety age only, by the clock of whoever did that; if that fails, run holdfast namespace fsck",
                blob=blob,
            ) from error
        return unframe_blob_range(blob, start, length, stored)

    def delete_many(self, blobs: Sequence[str]) -> None:
        """Delete blobs by name, 1000 in a request. Those that do not exist are ignored.

        Raises:
            InvalidRequestError, CorruptDataError: see `hold`.
        """
        if blobs:
            self.hold()
            self.check_claim()  # since this process began, the data may have moved, and others may have the place
        for start in range(0, len(blobs), _MOST_DELETED):
            self.store.delete_many([self.key(blob) for blob in blobs[start : start + _MOST_DELETED]])


class BlobWriter:
    """Writes one blob to the object store: in one request while it is small, as a multipart upload when it grows; a
    store with renames gets a file instead.

    Guarantee: the blob is durable when `close` returns, and does not exist before.
    """

    def __init__(self, blobs: BlobStore, name: str) -> None:
        self._blobs = blobs
        self._key = blobs.key(name)
        self.name = name
        self.length = 0
        self._framer = BlobFramer(name)
        self._buffer = bytearray()
        self._upload_id: str | None = None
        self._parts: list[Part] = []
        self._file = as_renaming(blobs.store).open_write(self._key) if blobs.store.capabilities.rename else None

    @property
    def has_fixed_modification_time(self) -> bool:
        """Whether the modification time of the object is fixed already: S3 dates a multipart upload from its
        beginning.
        """
        return self._upload_id is not None

    @property
    def does_close_fix_modification_time(self) -> bool:
        """Whether `close` fixes the modification time of the object: it is stored by one request."""
        return self._upload_id is None and self._file is None

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes to the content of the blob.

        Raises:
            LeaseLostError: a sweep has discarded the bytes that were written before. Write the file again.
        """
        self.length += len(data)
        frames = self._framer.add(data)
        if self._file is not None:
            self._file.write(frames)
            return
        self._buffer += frames
        while len(self._buffer) >= self._part_bytes and self._blobs.store.capabilities.multipart is not None:
            end = self._part_bytes
            self._upload_part(bytes(self._buffer[:end]))
            del self._buffer[:end]

    @property
    def _part_bytes(self) -> int:
        """The size of the next part."""
        return _PART_BYTES << len(self._parts) // _PARTS_OF_A_SIZE

    def _upload_part(self, data: bytes) -> None:
        store = multipart(self._blobs.store)
        if self._upload_id is None:
            self._upload_id = store.create_upload(self._key)
        with self._explain_if_swept():
            self._parts.append(store.upload_part(self._key, self._upload_id, len(self._parts) + 1, data))

    def close(self) -> Extent:
        """Make the blob durable; return the extent that covers it. May be called again after an error.

        Raises:
            LeaseLostError: a sweep has discarded the bytes that were written. Write the file again.
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
                self._upload_part(bytes(self._buffer))
                self._buffer.clear()
            with self._explain_if_swept():
                self._complete_upload(self._upload_id)
        return Extent(self.name, self.length)

    def _close_file(self, file: WritableFile) -> None:
        if end := self._framer.end():
            try:
                file.write(end)
            except BaseException:
                file.discard()  # some of it may be written, so another call must not succeed
                raise
        with self._explain_if_swept():
            file.close()

    def _complete_upload(self, upload_id: str) -> None:
        store = multipart(self._blobs.store)
        try:
            store.complete_upload(self._key, upload_id, self._parts)
        except NotFoundError:
            # An earlier call may have completed it, and its reply was lost.
            if store.head(self._key).size_bytes != stored_size(self.length):
                raise

    @contextmanager
    def _explain_if_swept(self) -> Iterator[None]:
        """Say why an unfinished blob may be gone (`sweep`)."""
        try:
            yield
        except NotFoundError as error:
            raise LeaseLostError(
                "the bytes that were written so far are gone: a sweep gives up what waits for longer than the safety "
                "age, or the data were replaced; write the file again, under a lease if it takes so long",
                blob=self.name,
            ) from error

    def discard(self) -> None:
        """Discard an unfinished blob: nothing of it appears in the store."""
        if self._file is not None:
            self._file.discard()
        elif self._upload_id is not None:
            multipart(self._blobs.store).abort_upload(self._key, self._upload_id)


@dataclass(frozen=True, slots=True)
class PublishDeadline:
    """The deadline by which stored blobs must be published: afterwards a sweep may delete them, because no file refers
    to them.

    Attributes:
        since: when they were stored, or earlier.
        most_age_s: how old they may be.
    """

    clock: Clock
    since: Moment
    most_age_s: float

    def is_over(self) -> bool:
        """Return whether the deadline has passed, so that the blobs must no longer be published."""
        return self.since.age_s(self.clock) > self.most_age_s

    def is_half_over(self) -> bool:
        """Return whether half of the time has passed. If so, a writer that fails must not delete its blobs but leave
        them to a sweep, because a repair may have assigned them to a file.
        """
        return self.since.age_s(self.clock) > self.most_age_s / 2
