"""Compute the checksum that HDFS would have for a file, so that tools such as DistCp can compare copies.

HDFS's data nodes keep a CRC-32C of every 512 bytes. The checksum of a block is the MD5 of its CRCs, and that of a file
is the MD5 of its blocks' checksums. So it depends on the block size. Hadoop digests the whole buffer that contains the
blocks' checksums, and not only what was written to it: 32 zeros, doubled while the checksums do not fit.

Source: Hadoop's ``MD5MD5CRC32FileChecksum`` and ``FileChecksumHelper``; RFC 3720, B.4 for the polynomial.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

CRC_BYTES = 512
"""HDFS's ``dfs.bytes-per-checksum``."""

_BUFFER_BYTES = 32
"""The initial size of Java's ``ByteArrayOutputStream``."""

_READ_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileChecksum:
    """A checksum, as HDFS's ``FileChecksum`` has it.

    Attributes:
        algorithm: its name, with the numbers that must be equal to compare two files.
        value: the bytes: two numbers, then the MD5.
    """

    algorithm: str
    value: bytes


def hdfs_checksum(read: Callable[[int, int], bytes], size: int, block_size: int) -> FileChecksum:
    """Return the checksum of a file.

    Args:
        read: returns so many bytes of the file, given the position of the first and their number.
        block_size: a multiple of 512.
    """
    if not size:
        return FileChecksum("MD5-of-0MD5-of-0CRC32", bytes(12) + _digest_buffer(b""))
    blocks = bytearray()
    for start in range(0, size, block_size):
        block = hashlib.md5()
        end = min(start + block_size, size)
        for position in range(start, end, _READ_BYTES):
            block.update(crc32c_of_pieces(read(position, min(_READ_BYTES, end - position))))
        blocks += block.digest()
    per_block = block_size // CRC_BYTES if size > block_size else 0
    value = CRC_BYTES.to_bytes(4, "big") + per_block.to_bytes(8, "big") + _digest_buffer(blocks)
    return FileChecksum(f"MD5-of-{per_block}MD5-of-{CRC_BYTES}CRC32C", value)


def _digest_buffer(content: bytes | bytearray) -> bytes:
    capacity = _BUFFER_BYTES
    while capacity < len(content):
        capacity *= 2
    return hashlib.md5(content.ljust(capacity, b"\0")).digest()


# --- CRC-32C ----------------------------------------------------------------------------------------------------------
def _table() -> list[int]:
    """Return the change of the CRC for each byte."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()
_BYTES = [bytes(crc >> shift & 0xFF for crc in _TABLE) for shift in (0, 8, 16, 24)]


def crc32c_of_pieces(data: bytes) -> bytes:
    """Return the CRC-32C of every 512 bytes, four bytes each, most significant first.

    Python has no CRC-32C, and a loop over bytes would take minutes for a gigabyte. So all pieces advance together, byte
    by byte: their CRCs are four columns of bytes, and tables change a whole column at once.
    """
    whole = len(data) - len(data) % CRC_BYTES
    found = _columns(data[:whole], CRC_BYTES) if whole else b""
    return found + _columns(data[whole:], len(data) - whole) if whole < len(data) else found


def _columns(data: bytes, length: int) -> bytes:
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
