"""Decode and encode what follows the data of an ORC file: its types, its stripes and their footers.

pyarrow encodes and decodes the data itself, but does not expose these parts. They are messages in the subset of
protobuf that ORC uses, in chunks that may be compressed.

Source: https://orc.apache.org/specification/ORCv1/
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from holdfast.errors import CorruptDataError, UnsupportedError

Field = tuple[int, "int | bytes"]
"""The number of a field and its value."""

NOT_ORC = "not an ORC file: check what wrote it"


# --- protobuf ---------------------------------------------------------------------------------------------------------
def decode_message(message: bytes) -> list[Field]:
    """Decode a protobuf message into its fields, in order: numbers, or the bytes of strings and nested messages."""
    fields: list[Field] = []
    position = 0
    while position < len(message):
        tag, position = _decode_varint(message, position)
        wire = tag & 7
        if wire == 0:
            number, position = _decode_varint(message, position)
            fields.append((tag >> 3, number))
            continue
        if wire != 2:
            raise CorruptDataError(NOT_ORC, wire_type=wire)
        length, position = _decode_varint(message, position)
        fields.append((tag >> 3, message[position : position + length]))
        position += length
    return fields


def encode_message(fields: Sequence[Field]) -> bytes:
    """Encode fields as a protobuf message; the inverse of `decode_message`."""
    message = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            message += _encode_varint(number << 3) + _encode_varint(value)
        else:
            message += _encode_varint(number << 3 | 2) + _encode_varint(len(value)) + value
    return bytes(message)


def get_number_field(fields: Sequence[Field], wanted: int) -> int:
    """Return the value of the number field `wanted` of a decoded message; 0 if the field is absent."""
    return next((value for number, value in fields if number == wanted and isinstance(value, int)), 0)


def get_repeated_field(fields: Sequence[Field], wanted: int) -> list[bytes]:
    """Return all values of the field `wanted` of a decoded message, which contains messages or strings."""
    return [value for number, value in fields if number == wanted and isinstance(value, bytes)]


def with_number_fields(fields: Iterable[Field], values: Mapping[int, int]) -> list[Field]:
    """Return the fields of a decoded message with some number fields replaced or added."""
    kept = [(number, values.get(number, value)) for number, value in fields]
    there = {number for number, _ in kept}
    return kept + [(number, value) for number, value in values.items() if number not in there]


def decode_packed_numbers(data: bytes) -> list[int]:
    """Decode the numbers in a packed repeated field of a protobuf message."""
    found, position = [], 0
    while position < len(data):
        number, position = _decode_varint(data, position)
        found.append(number)
    return found


def _decode_varint(message: bytes, position: int) -> tuple[int, int]:
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


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# --- compression ------------------------------------------------------------------------------------------------------
_NONE, _ZLIB, _SNAPPY, _ZSTD = 0, 1, 2, 5


def make_uncompressed_chunks(data: bytes, compression: int, block_bytes: int) -> bytes:
    """Divide data into ORC's chunks, each marked as not compressed, for a file whose other chunks are compressed."""
    if compression == _NONE:
        return data
    chunks = (data[start : start + block_bytes] for start in range(0, len(data), block_bytes))
    return b"".join((len(chunk) << 1 | 1).to_bytes(3, "little") + chunk for chunk in chunks)


def decompress_chunks(data: bytes, compression: int) -> bytes:
    """Join the chunks of a stream, and decompress those that are compressed; inverse of `make_uncompressed_chunks`."""
    if compression == _NONE:
        return data
    plain, position = bytearray(), 0
    while position < len(data):
        header = int.from_bytes(data[position : position + 3], "little")
        position += 3
        chunk = data[position : position + (header >> 1)]
        position += header >> 1
        plain += chunk if header & 1 else _decompress_chunk(chunk, compression)
    return bytes(plain)


def _decompress_chunk(chunk: bytes, compression: int) -> bytes:
    if compression == _ZLIB:
        return zlib.decompress(chunk, wbits=-15)
    if compression == _SNAPPY:
        return bytes(pa.Codec("snappy").decompress(chunk, _decode_varint(chunk, 0)[0], asbytes=True))
    if compression == _ZSTD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read())
    raise UnsupportedError("ORC files compressed with LZ4 or LZO are not supported: rewrite them with zstd")


# The numbers that the specification gives to message fields and to kinds of types.
_PS_FOOTER_LENGTH, _PS_COMPRESSION, _PS_BLOCK_BYTES, _PS_METADATA_LENGTH = 1, 2, 3, 5
STRIPES, TYPES, STATISTICS, CALENDAR = 3, 4, 7, 11
KIND, _SUBTYPES = 1, 2
LONG, STRING, TIMESTAMP, VARCHAR, CHAR, TIMESTAMP_INSTANT = 4, 7, 9, 16, 17, 18
PROLEPTIC = 2
OFFSET, _INDEX_BYTES, DATA_BYTES, FOOTER_BYTES = 1, 2, 3, 4  # of a stripe
STREAMS, ENCODINGS, ZONE = 1, 2, 3  # of a stripe's footer
STREAM_KIND, STREAM_COLUMN, STREAM_LENGTH = 1, 2, 3
STREAM_DATA = 1
_TAIL_BYTES = 16 * 1024


# --- the tail ---------------------------------------------------------------------------------------------------------
class StripeLocation(NamedTuple):
    """The location of a stripe's streams (its index and data) and footer, which follow each other."""

    fields: list[Field]
    offset: int
    streams_bytes: int
    data_bytes: int
    footer_bytes: int

    @classmethod
    def of(cls, message: bytes) -> StripeLocation:
        """Decode a stripe's message in the footer of the file."""
        fields = decode_message(message)
        offset, index, data, footer = (
            get_number_field(fields, one) for one in (OFFSET, _INDEX_BYTES, DATA_BYTES, FOOTER_BYTES)
        )
        return cls(fields, offset, index + data, data, footer)


@dataclass(frozen=True, slots=True)
class OrcTail:
    """The end of an ORC file: the contents of its footer and postscript.

    Attributes:
        footer, postscript: fields of the messages.
        metadata: the statistics of the stripes, as stored in the file.
    """

    footer: tuple[Field, ...]
    postscript: tuple[Field, ...]
    metadata: bytes

    @property
    def compression(self) -> int:
        """Return the number by which ORC identifies the codec."""
        return get_number_field(self.postscript, _PS_COMPRESSION)

    @property
    def block_bytes(self) -> int:
        """Return the maximum size of a compressed chunk."""
        return get_number_field(self.postscript, _PS_BLOCK_BYTES) or 256 * 1024

    @property
    def kinds(self) -> list[int]:
        """Return ORC's number for the kind of each column's type, by column number."""
        return [get_number_field(decode_message(one), KIND) for one in get_repeated_field(self.footer, TYPES)]

    @property
    def proleptic(self) -> bool:
        """Check whether dates use the proleptic Gregorian calendar; False, as in Java, if the file does not say."""
        return get_number_field(self.footer, CALENDAR) == PROLEPTIC

    @property
    def stripes(self) -> list[StripeLocation]:
        """Return the locations of the stripes, in order."""
        return [StripeLocation.of(one) for one in get_repeated_field(self.footer, STRIPES)]

    def top_columns_by_number(self) -> dict[int, int]:
        """Map the number of each column, nested or not, to the index of the top-level column that contains it."""
        types = [decode_message(one) for one in get_repeated_field(self.footer, TYPES)]
        starts = [column for one in get_repeated_field(types[0], _SUBTYPES) for column in decode_packed_numbers(one)]
        starts += [value for number, value in types[0] if number == _SUBTYPES and isinstance(value, int)]
        ends = [*starts[1:], len(types)]
        return {
            column: top
            for top, (start, end) in enumerate(zip(starts, ends, strict=True))
            for column in range(start, end)
        }

    def count_values(self, column: int) -> int:
        """Return how many non-null values the column with this number has in the file."""
        return get_number_field(decode_message(get_repeated_field(self.footer, STATISTICS)[column]), 1)

    def stripe_footer(self, source: BinaryIO, stripe: StripeLocation) -> list[Field]:
        """Read and decode the footer of a stripe."""
        source.seek(stripe.offset + stripe.streams_bytes)
        return decode_message(decompress_chunks(source.read(stripe.footer_bytes), self.compression))

    def encoded(self) -> bytes:
        """Encode the tail as the last bytes of a file, with uncompressed messages."""
        footer = make_uncompressed_chunks(encode_message(self.footer), self.compression, self.block_bytes)
        lengths = {_PS_FOOTER_LENGTH: len(footer), _PS_METADATA_LENGTH: len(self.metadata)}
        postscript = encode_message(with_number_fields(self.postscript, lengths))
        return self.metadata + footer + postscript + bytes([len(postscript)])


def read_tail(source: BinaryIO) -> OrcTail:
    """Read the tail (footer and postscript) of a seekable ORC file.

    Raises:
        CorruptDataError: the file is not ORC.
    """
    size = source.seek(0, 2)
    known = min(size, _TAIL_BYTES)
    source.seek(size - known)
    end = source.read(known)
    if size < 4 or end[-1] + 1 > len(end) or end[-4:-1] != b"ORC":
        raise CorruptDataError(NOT_ORC)
    postscript = tuple(decode_message(end[-1 - end[-1] : -1]))
    footer_bytes = get_number_field(postscript, _PS_FOOTER_LENGTH)
    metadata_bytes = get_number_field(postscript, _PS_METADATA_LENGTH)
    whole = 1 + end[-1] + footer_bytes + metadata_bytes
    if whole > size:
        raise CorruptDataError(NOT_ORC)
    if whole > known:
        source.seek(size - whole)
        end = source.read(whole)
    start = len(end) - whole
    metadata = end[start : start + metadata_bytes]
    start += metadata_bytes
    compressed = end[start : start + footer_bytes]
    footer = decode_message(decompress_chunks(compressed, get_number_field(postscript, _PS_COMPRESSION)))
    return OrcTail(tuple(footer), postscript, metadata)
