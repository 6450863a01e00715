"""Read the tail of an ORC file and write modified ones.

ORC stores its types, stripes and calendar after the data. This module reads the parts that pyarrow does not expose and
writes them again with changes (`orc.view`, `orc.output`). pyarrow itself encodes and decodes the data.

Source: https://orc.apache.org/specification/ORCv1/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from holdfast.errors import CorruptDataError
from holdfast.formats.orc.messages import (
    NOT_ORC,
    Field,
    decompressed,
    messages_in,
    number_in,
    numbers_in,
    original_chunks,
    packed,
    unpacked,
    with_numbers,
)

# The numbers that the specification gives to message fields and to kinds of types.
_PS_FOOTER_LENGTH, _PS_COMPRESSION, _PS_BLOCK_BYTES, _PS_METADATA_LENGTH = 1, 2, 3, 5
STRIPES, TYPES, STATISTICS, CALENDAR = 3, 4, 7, 11
KIND, _SUBTYPES = 1, 2
LONG, STRING, TIMESTAMP, VARCHAR, CHAR, TIMESTAMP_INSTANT = 4, 7, 9, 16, 17, 18
PROLEPTIC = 2
STREAM_KIND, STREAM_COLUMN, STREAM_LENGTH = 1, 2, 3
STREAM_DATA, STREAM_SECONDARY, STREAM_INDEX = 1, 5, 6
_TAIL_BYTES = 16 * 1024


# --- the tail ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Stripe:
    """The location of a stripe's index, data and footer, which follow each other."""

    fields: tuple[Field, ...]

    OFFSET, INDEX_BYTES, DATA_BYTES, FOOTER_BYTES = 1, 2, 3, 4

    @property
    def offset(self) -> int:
        """Return the offset of the index in the file."""
        return number_in(self.fields, self.OFFSET)

    @property
    def data_bytes(self) -> int:
        """Return the length of the data."""
        return number_in(self.fields, self.DATA_BYTES)

    @property
    def footer_bytes(self) -> int:
        """Return the length of the footer."""
        return number_in(self.fields, self.FOOTER_BYTES)

    @property
    def streams_bytes(self) -> int:
        """Return the length of index and data."""
        return number_in(self.fields, self.INDEX_BYTES) + self.data_bytes


@dataclass(frozen=True, slots=True)
class StripeFooter:
    """The message after a stripe's data."""

    fields: tuple[Field, ...]

    STREAMS, ENCODINGS, ZONE = 1, 2, 3

    @property
    def zone(self) -> str | None:
        """Return the time zone of the stripe's TIMESTAMP columns."""
        return next((value.decode() for value in messages_in(self.fields, self.ZONE)), None)


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a file: the contents of its footer and postscript.

    Attributes:
        footer, postscript: fields of the messages.
        metadata: the statistics of the stripes, as stored in the file.
        length: the length of the tail in the file, in bytes.
    """

    footer: tuple[Field, ...]
    postscript: tuple[Field, ...]
    metadata: bytes
    length: int = 0

    @property
    def compression(self) -> int:
        """Return the number by which ORC identifies the codec."""
        return number_in(self.postscript, _PS_COMPRESSION)

    @property
    def block_bytes(self) -> int:
        """Return the maximum size of a compressed chunk."""
        return number_in(self.postscript, _PS_BLOCK_BYTES) or 256 * 1024

    @property
    def kinds(self) -> list[int]:
        """Return the kind of each type; the index of a type is the column's number."""
        return [number_in(unpacked(one), KIND) for one in messages_in(self.footer, TYPES)]

    @property
    def proleptic(self) -> bool:
        """Check whether dates use the proleptic Gregorian calendar; False, as in Java, if the file does not say."""
        return number_in(self.footer, CALENDAR) == PROLEPTIC

    @property
    def stripes(self) -> list[Stripe]:
        """Return the stripes in order."""
        return [Stripe(tuple(unpacked(one))) for one in messages_in(self.footer, STRIPES)]

    def top_column_of(self) -> dict[int, int]:
        """Map the number of each column, nested or not, to the index of the top-level column that contains it."""
        types = [unpacked(one) for one in messages_in(self.footer, TYPES)]
        starts = [column for one in messages_in(types[0], _SUBTYPES) for column in numbers_in(one)]
        starts += [value for number, value in types[0] if number == _SUBTYPES and isinstance(value, int)]
        ends = [*starts[1:], len(types)]
        return {
            column: top
            for top, (start, end) in enumerate(zip(starts, ends, strict=True))
            for column in range(start, end)
        }

    def values(self, column: int) -> int:
        """Return the number of non-null values of a column in the file."""
        return number_in(unpacked(messages_in(self.footer, STATISTICS)[column]), 1)

    def stripe_footer(self, source: BinaryIO, stripe: Stripe) -> StripeFooter:
        """Read a stripe's footer."""
        source.seek(stripe.offset + stripe.streams_bytes)
        return StripeFooter(tuple(unpacked(decompressed(source.read(stripe.footer_bytes), self.compression))))

    def encoded(self) -> bytes:
        """Encode the tail as the last bytes of a file, with uncompressed messages."""
        footer = original_chunks(packed(self.footer), self.compression, self.block_bytes)
        lengths = {_PS_FOOTER_LENGTH: len(footer), _PS_METADATA_LENGTH: len(self.metadata)}
        postscript = packed(with_numbers(self.postscript, lengths))
        return self.metadata + footer + postscript + bytes([len(postscript)])


def read_tail(source: BinaryIO) -> Tail:
    """Read the tail of a seekable file.

    Raises:
        CorruptDataError: the file is not ORC.
    """
    size = source.seek(0, 2)
    known = min(size, _TAIL_BYTES)
    source.seek(size - known)
    end = source.read(known)
    if size < 4 or end[-1] + 1 > len(end) or b"ORC" not in end[-1 - end[-1] :]:
        raise CorruptDataError(NOT_ORC)
    postscript = tuple(unpacked(end[-1 - end[-1] : -1]))
    footer_bytes = number_in(postscript, _PS_FOOTER_LENGTH)
    metadata_bytes = number_in(postscript, _PS_METADATA_LENGTH)
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
    footer = unpacked(decompressed(compressed, number_in(postscript, _PS_COMPRESSION)))
    return Tail(tuple(footer), postscript, metadata, whole)
