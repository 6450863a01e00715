"""Encode and decode the messages of ORC files: the subset of protobuf that ORC uses, in chunks that may be compressed.

Source: https://orc.apache.org/specification/ORCv1/
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from holdfast.errors import CorruptDataError, UnsupportedError

Field = tuple[int, "int | bytes"]
"""The number of a field and its value."""

NOT_ORC = "not an ORC file: check what wrote it"


# --- protobuf ---------------------------------------------------------------------------------------------------------
def unpacked(message: bytes) -> list[Field]:
    """Decode a message into its fields, in order: numbers, or the bytes of strings and nested messages."""
    fields: list[Field] = []
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        wire = tag & 7
        if wire == 0:
            number, position = _varint(message, position)
            fields.append((tag >> 3, number))
            continue
        if wire != 2:
            raise CorruptDataError(NOT_ORC, wire_type=wire)
        length, position = _varint(message, position)
        fields.append((tag >> 3, message[position : position + length]))
        position += length
    return fields


def packed(fields: Sequence[Field]) -> bytes:
    """Encode the fields of a message; the inverse of `unpacked`."""
    message = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            message += _encoded(number << 3) + _encoded(value)
        else:
            message += _encoded(number << 3 | 2) + _encoded(len(value)) + value
    return bytes(message)


def number_in(fields: Sequence[Field], wanted: int) -> int:
    """Return the value of a number field of a message; 0 if the field is absent."""
    return next((value for number, value in fields if number == wanted and isinstance(value, int)), 0)


def messages_in(fields: Sequence[Field], wanted: int) -> list[bytes]:
    """Return all values of a field that contains messages or strings."""
    return [value for number, value in fields if number == wanted and isinstance(value, bytes)]


def with_numbers(fields: Iterable[Field], values: Mapping[int, int]) -> list[Field]:
    """Set number fields of a message: replace their values, or add the fields that are absent."""
    kept = [(number, values.get(number, value)) for number, value in fields]
    there = {number for number, _ in kept}
    return kept + [(number, value) for number, value in values.items() if number not in there]


def numbers_in(data: bytes) -> list[int]:
    """Decode the numbers in a packed repeated field."""
    found, position = [], 0
    while position < len(data):
        number, position = _varint(data, position)
        found.append(number)
    return found


def packed_numbers(numbers: Iterable[int]) -> bytes:
    """Encode numbers as a packed repeated field; the inverse of `numbers_in`."""
    return b"".join(map(_encoded, numbers))


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(message):
            raise CorruptDataError(NOT_ORC)
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# --- compression ------------------------------------------------------------------------------------------------------
_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5


def original_chunks(data: bytes, compression: int, block_bytes: int) -> bytes:
    """Divide data into ORC's chunks, each marked as not compressed, for a file whose other chunks are compressed."""
    if compression == _NONE:
        return data
    chunks = (data[start : start + block_bytes] for start in range(0, len(data), block_bytes))
    return b"".join((len(chunk) << 1 | 1).to_bytes(3, "little") + chunk for chunk in chunks)


def decompressed(data: bytes, compression: int) -> bytes:
    """Join the chunks of a stream, and decompress those that are compressed: the inverse of `original_chunks`."""
    if compression == _NONE:
        return data
    plain, position = bytearray(), 0
    while position < len(data):
        header = int.from_bytes(data[position : position + 3], "little")
        position += 3
        chunk = data[position : position + (header >> 1)]
        position += header >> 1
        plain += chunk if header & 1 else _inflated(chunk, compression)
    return bytes(plain)


def _inflated(chunk: bytes, compression: int) -> bytes:
    if compression == _ZLIB:
        return zlib.decompress(chunk, wbits=-15)
    if compression == _SNAPPY:
        return bytes(pa.Codec("snappy").decompress(chunk, _varint(chunk, 0)[0], asbytes=True))
    if compression == _ZSTD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read())
    if compression == _LZ4:
        return _unlz4(chunk)
    raise UnsupportedError("ORC files compressed with LZO are not supported: rewrite them with zstd")


def _unlz4(chunk: bytes) -> bytes:
    """Decompress an LZ4 block. pyarrow cannot do this, because the decompressed size is unknown."""
    plain, position = bytearray(), 0
    while True:
        token = chunk[position]
        length, position = _lz4_length(chunk, position + 1, token >> 4)
        plain += chunk[position : position + length]
        position += length
        if position >= len(chunk):
            return bytes(plain)
        start = len(plain) - int.from_bytes(chunk[position : position + 2], "little")
        length, position = _lz4_length(chunk, position + 2, token & 15)
        for index in range(start, start + length + 4):
            plain.append(plain[index])


def _lz4_length(chunk: bytes, position: int, length: int) -> tuple[int, int]:
    if length == 15:
        while chunk[position] == 255:
            length, position = length + 255, position + 1
        length, position = length + chunk[position], position + 1
    return length, position
