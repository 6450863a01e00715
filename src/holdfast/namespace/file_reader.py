"""Read files of the namespace, and compute their checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.namespace.blobs import BlobStore, compute_stored_range, unframe_blob_range
from holdfast.namespace.inode import CRC_BYTES, Extent, Inode
from holdfast.namespace.keys import data_key
from holdfast.namespace.listing import FileStatus, make_status
from holdfast.namespace.paths import NsPath
from holdfast.transactions.base import Backend


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads a file of the namespace as it was when it was opened: later writes do not change what is read.

    A deleted file stays readable for the safety age of the namespace, and a small file as long as the reader exists.
    Only a file of very many small blobs may become unreadable at once.

    Guarantee: reads return the bytes that were written; damaged bytes raise an error.

    Attributes:
        path: the path under which it was opened, for messages.
        loaded: the stored bytes of small blobs, by blob name.
    """

    database: Backend
    blobs: BlobStore
    path: str
    inode: Inode
    loaded: Mapping[str, bytes]

    @property
    def size(self) -> int:
        """The length of the file, bytes."""
        return self.inode.size

    def status(self, path: str) -> FileStatus:
        """Return the status of the file as it was when it was opened.

        Args:
            path: the path under which it was opened.
        """
        return make_status(NsPath.parse(path), self.inode)

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """Return `length` bytes from `start`, or fewer if the file ends earlier.

        Raises:
            InvalidRequestError: `start` or `length` is negative.
            CorruptDataError: a blob is missing, damaged or too short: see the message. Other ranges may be readable.
        """
        return b"".join(self.chunks(start, length, chunk_bytes=max(self.size, 1)))

    def chunks(
        self, start: int = 0, length: int | None = None, *, chunk_bytes: int = 8 * 1024 * 1024
    ) -> Iterator[bytes]:
        """Yield the bytes that `read` would return, in chunks of at most `chunk_bytes`."""
        if start < 0 or (length is not None and length < 0):
            raise InvalidRequestError("a range of a file begins at 0 and has no negative length", start=start)
        end = self.size if length is None else min(self.size, start + length)
        position = 0
        for extent in self.inode.extents:
            first, last = max(start - position, 0), min(end - position, extent.length)
            while first < last:
                count = min(chunk_bytes, last - first)
                yield self._read_piece(extent, first, count)
                first += count
            position += extent.length

    def _read_piece(self, extent: Extent, start: int, length: int) -> bytes:
        try:
            if extent.inline:
                return self._read_small_piece(extent, start, length)
            return self.blobs.read(extent.blob, start, length)
        except CorruptDataError as error:
            raise CorruptDataError(error.message, path=self.path, **error.variables) from error

    def _read_small_piece(self, extent: Extent, start: int, length: int) -> bytes:
        value = self.loaded.get(extent.blob)
        if value is None:
            key = data_key(extent.blob)
            record = self.database.get_many([key]).get(key)
            if record is None:
                raise CorruptDataError(
                    "the bytes of the file are missing: open it again, since it may have been deleted or replaced; if "
                    "that fails, run holdfast namespace fsck",
                    blob=extent.blob,
                )
            value = record.value
        first, count = compute_stored_range(start, length)
        return unframe_blob_range(extent.blob, start, length, value[first : first + count])


# --- the checksum that HDFS would have --------------------------------------------------------------------------------
_BUFFER_BYTES = 32
"""The initial size of Java's ``ByteArrayOutputStream``."""

_READ_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileChecksum:
    """The checksum of a whole file as HDFS computes it: an MD5 of MD5s of CRCs. Equal files have equal checksums if
    their algorithms are equal.

    Attributes:
        algorithm: such as ``MD5-of-0MD5-of-512CRC32C``: CRCs per block (0 for files of one block), and bytes per CRC.
        value: 28 bytes: the bytes per CRC (4 bytes), the CRCs per block (8 bytes), then the MD5.
    """

    algorithm: str
    value: bytes


def hdfs_checksum(read: Callable[[int, int], bytes], size: int, block_size: int) -> FileChecksum:
    """Compute the checksum that HDFS would return for a file, so that tools such as DistCp can compare copies.

    HDFS's data nodes keep a CRC-32C of every 512 bytes. The checksum of a block is the MD5 of its CRCs, and that of a
    file is the MD5 of its blocks' checksums. So it depends on the block size. Hadoop digests the whole buffer that
    contains the blocks' checksums, and not only what was written to it: 32 zeros, doubled while the checksums do not
    fit.

    Args:
        read: returns so many bytes of the file, given the position of the first and their number.
        block_size: a multiple of 512.

    Source: Hadoop's ``MD5MD5CRC32FileChecksum`` and ``FileChecksumHelper``; RFC 3720, B.4 for the polynomial.
    """
    if not size:
        return FileChecksum("MD5-of-0MD5-of-0CRC32", bytes(12) + _md5_with_zero_padding(b""))
    blocks = bytearray()
    for start in range(0, size, block_size):
        block = hashlib.md5()
        end = min(start + block_size, size)
        for position in range(start, end, _READ_BYTES):
            block.update(crc32c_of_pieces(read(position, min(_READ_BYTES, end - position))))
        blocks += block.digest()
    per_block = block_size // CRC_BYTES if size > block_size else 0
    value = CRC_BYTES.to_bytes(4, "big") + per_block.to_bytes(8, "big") + _md5_with_zero_padding(blocks)
    return FileChecksum(f"MD5-of-{per_block}MD5-of-{CRC_BYTES}CRC32C", value)


def _md5_with_zero_padding(content: bytes | bytearray) -> bytes:
    capacity = _BUFFER_BYTES
    while capacity < len(content):
        capacity *= 2
    return hashlib.md5(content.ljust(capacity, b"\0")).digest()


# --- CRC-32C ----------------------------------------------------------------------------------------------------------
def _build_crc_table() -> list[int]:
    """Return the change of the CRC for each byte."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _build_crc_table()
_BYTES = [bytes(crc >> shift & 0xFF for crc in _TABLE) for shift in (0, 8, 16, 24)]


def crc32c_of_pieces(data: bytes) -> bytes:
    """Return the CRC-32C of every 512 bytes of `data`, four bytes each, most significant first.

    Python has no CRC-32C, and a loop over bytes would take minutes for a gigabyte. So all pieces advance together, byte
    by byte: their CRCs are four columns of bytes, and tables change a whole column at once.
    """
    whole = len(data) - len(data) % CRC_BYTES
    found = _crcs_of_equal_pieces(data[:whole], CRC_BYTES) if whole else b""
    return found + _crcs_of_equal_pieces(data[whole:], len(data) - whole) if whole < len(data) else found


def _crcs_of_equal_pieces(data: bytes, length: int) -> bytes:
    """Return the CRCs of pieces of one length."""
    count = len(data) // length
    number = int.from_bytes
    ones = number(b"\xff" * count, "little")
    low, second, third, high = _BYTES
    a = b = c = d = ones  # the columns of the CRCs' bytes, as numbers, from the least significant byte on
    for position in range(length):
        index = (a ^ number(data[position::length], "little")).to_bytes(count, "little")
        a = b ^ number(index.translate(low), "little")
        b = c ^ number(index.translate(second), "little")
        c = d ^ number(index.translate(third), "little")
        d = number(index.translate(high), "little")
    crcs = bytearray(4 * count)
    for place, column in enumerate((d, c, b, a)):
        crcs[place::4] = (column ^ ones).to_bytes(count, "little")
    return bytes(crcs)
