"""Write an ORC file that pyarrow encodes, and insert the parts that pyarrow cannot encode.

pyarrow does not record the calendar of dates, and corrupts fractions of a second before 1970. If a file needs either,
this module writes the file's tail. It assembles a stripe with such fractions from two stripes that pyarrow encodes, one
with the seconds and one with the fractions, and writes all other stripes as pyarrow encodes them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.orc as pa_orc

from holdfast.formats.base import ByteSink
from holdfast.formats.orc.messages import (
    Field,
    decompressed,
    messages_in,
    number_in,
    numbers_in,
    original_chunks,
    packed,
    packed_numbers,
    unpacked,
    with_numbers,
)
from holdfast.formats.orc.tail import (
    CALENDAR,
    PROLEPTIC,
    STATISTICS,
    STREAM_COLUMN,
    STREAM_INDEX,
    STREAM_KIND,
    STREAM_LENGTH,
    STREAM_SECONDARY,
    STRIPES,
    TIMESTAMP_INSTANT,
    Stripe,
    StripeFooter,
    Tail,
    read_tail,
)
from holdfast.formats.streams import output_stream

_MAGIC = b"ORC"
_CONTENT_BYTES, _ROWS = 2, 6  # fields of the footer
_VALUES, _TIMESTAMPS, _HAS_NULL = 1, 9, 10  # fields of statistics
_LEAST, _MOST = (1, 3), (2, 4)  # fields of timestamp statistics, in milliseconds; 5 and 6 contain the nanoseconds
_POSITIONS, _ENTRY_STATISTICS = 1, 2  # fields of an index entry


class OrcOutput:
    """An ORC file that is being written to a sink. The sink stays open."""

    def __init__(self, sink: ByteSink, compression: str, stripe_bytes: int) -> None:
        self._sink = sink
        self._compression, self._stripe_bytes = compression, stripe_bytes
        self._encoder: Any = None
        self._held: _HoldingSink | None = None
        self._sent = self._base = 0  # bytes of the file so far; the position of the encoder's first byte
        self._ended: list[Tail] = []

    def write(self, table: pa.Table) -> None:
        """Append rows. The encoder ends a stripe once the stripe is full."""
        if self._encoder is None:
            self._base, self._held = self._sent, _HoldingSink(self._send)
            self._encoder = self._open(self._held, self._stripe_bytes)
        self._encoder.write(table)

    def write_split(self, seconds: pa.Table, fractions: pa.Table) -> None:
        """Append a stripe of rows whose timestamps are given as whole seconds and fractions, in two tables.

        Args:
            seconds: the rows, with the timestamps in whole seconds.
            fractions: the same number of rows with the same schema; only the fractions of their timestamps are used.
        """
        self._end_encoder()
        if not self._sent:
            self._send(_MAGIC)
        stripe, tail = _joined(self._encoded(seconds), self._encoded(fractions))
        self._ended.append(_relocated(tail, self._sent))
        self._send(stripe)

    def close(self, proleptic: bool) -> None:
        """End the file.

        Args:
            proleptic: whether the file contains dates that differ between calendars.
        """
        plain_end = self._end_encoder()
        if len(self._ended) == 1 and plain_end is not None and not proleptic:
            self._send(plain_end)
            return
        tail = _merged(self._ended)
        calendar = ((CALENDAR, PROLEPTIC),) if proleptic else ()
        self._send(Tail((*tail.footer, *calendar), tail.postscript, tail.metadata).encoded())

    def _send(self, data: bytes | memoryview) -> int:
        self._sent += len(data)
        return self._sink.write(data)

    def _open(self, sink: ByteSink, stripe_bytes: int) -> Any:
        return pa_orc.ORCWriter(
            output_stream(sink), compression=self._compression, stripe_size=stripe_bytes, file_version="0.12"
        )

    def _encoded(self, table: pa.Table) -> bytes:
        """Encode the table as a complete file with one stripe, in memory."""
        held = _HoldingSink(self._send)
        held.hold()
        encoder = self._open(held, 2 * table.nbytes + self._stripe_bytes)
        encoder.write(table)
        encoder.close()
        return bytes(held.data)

    def _end_encoder(self) -> bytes | None:
        """Close the encoder, send what it still holds except for the tail that it wrote, and return this tail."""
        if self._encoder is None or self._held is None:
            return None
        self._held.hold()
        self._encoder.close()
        self._encoder = None
        data = bytes(self._held.data)
        tail = read_tail(io.BytesIO(data))
        self._send(data[: -tail.length])
        self._ended.append(_relocated(tail, self._base))
        return data[-tail.length :]


class _HoldingSink:
    """A sink that forwards data to another sink until `hold` is called, and then collects it."""

    def __init__(self, send: Callable[[bytes | memoryview], int]) -> None:
        self._send = send
        self._holds = False
        self.data = bytearray()

    def hold(self) -> None:
        """Collect all further data in `data` instead of forwarding it."""
        self._holds = True

    def write(self, data: bytes | memoryview, /) -> int:
        if not self._holds:
            return self._send(data)
        self.data += data
        return len(data)


# --- tails ------------------------------------------------------------------------------------------------------------
def _relocated(tail: Tail, base: int) -> Tail:
    """Shift the positions of the stripes in a tail, for a file that was appended to another one at `base`."""
    stripes = [
        (STRIPES, packed(with_numbers(stripe.fields, {Stripe.OFFSET: stripe.offset + base}))) for stripe in tail.stripes
    ]
    rest = [field for field in tail.footer if field[0] != STRIPES]
    return Tail((*rest, *stripes), tail.postscript, tail.metadata)


def _merged(tails: Sequence[Tail]) -> Tail:
    """Merge the tails of concatenated files with the same schema.

    The merged statistics of the whole file contain only the number of values and whether there are nulls. Readers skip
    rows based on the statistics of stripes, which remain complete.
    """
    first = tails[0]
    if len(tails) == 1:
        return first
    columns = zip(*(messages_in(tail.footer, STATISTICS) for tail in tails), strict=True)
    statistics = [(STATISTICS, _added([unpacked(one) for one in parts])) for parts in columns]
    numbers = {field: sum(number_in(tail.footer, field) for tail in tails) for field in (_CONTENT_BYTES, _ROWS)}
    stripes = [(STRIPES, one) for tail in tails for one in messages_in(tail.footer, STRIPES)]
    rest = [field for field in first.footer if field[0] not in (STRIPES, STATISTICS)]
    footer = (*with_numbers(rest, numbers), *stripes, *statistics)
    return Tail(footer, first.postscript, b"".join(tail.metadata for tail in tails))


def _added(parts: Sequence[Sequence[Field]]) -> bytes:
    values = sum(number_in(part, _VALUES) for part in parts)
    return packed([(_VALUES, values), (_HAS_NULL, max(number_in(part, _HAS_NULL) for part in parts))])


# --- a stripe made of two ---------------------------------------------------------------------------------------------
def _joined(whole: bytes, fractions: bytes) -> tuple[bytes, Tail]:
    """Replace the fractions in a file's only stripe; return the new stripe and a tail in which it comes first."""
    source = io.BytesIO(whole)
    tail = read_tail(source)
    (stripe,) = tail.stripes
    instants = {column for column, kind in enumerate(tail.kinds) if kind == TIMESTAMP_INSTANT}
    others = {key: data for key, _, data in _streams(fractions)}
    streams: list[Field] = []
    data, index_bytes = bytearray(), 0
    for (kind, column), described, own in _streams(whole):
        if column in instants and kind == STREAM_SECONDARY:
            own = others[kind, column]
        elif column in instants and kind == STREAM_INDEX:
            own = _joined_index(own, others[kind, column], tail)
        streams.append((StripeFooter.STREAMS, packed(with_numbers(described, {STREAM_LENGTH: len(own)}))))
        data += own
        index_bytes += len(own) if kind == STREAM_INDEX else 0
    rest = [field for field in tail.stripe_footer(source, stripe).fields if field[0] != StripeFooter.STREAMS]
    footer = original_chunks(packed([*streams, *rest]), tail.compression, tail.block_bytes)
    lengths = {Stripe.INDEX_BYTES: index_bytes, Stripe.DATA_BYTES: len(data) - index_bytes}
    fields = with_numbers(stripe.fields, {Stripe.OFFSET: 0, Stripe.FOOTER_BYTES: len(footer), **lengths})
    changed = [(STRIPES, packed(fields)) if number == STRIPES else (number, value) for number, value in tail.footer]
    columns = messages_in(tail.footer, STATISTICS)
    rest = [field for field in changed if field[0] != STATISTICS]
    of_file = [(STATISTICS, one) for one in _widened_columns(columns, instants)]
    of_stripe = messages_in(unpacked(decompressed(tail.metadata, tail.compression)), 1)
    metadata = [
        (1, packed([(1, one) for one in _widened_columns(messages_in(unpacked(each), 1), instants)]))
        for each in of_stripe
    ]
    encoded = original_chunks(packed(metadata), tail.compression, tail.block_bytes)
    return bytes(data) + footer, Tail((*rest, *of_file), tail.postscript, encoded)


def _streams(file: bytes) -> Iterator[tuple[tuple[int, int], list[Field], bytes]]:
    """Yield the (kind, column), the description and the bytes of each stream of a file's only stripe."""
    source = io.BytesIO(file)
    tail = read_tail(source)
    (stripe,) = tail.stripes
    position = stripe.offset
    for one in messages_in(tail.stripe_footer(source, stripe).fields, StripeFooter.STREAMS):
        described = unpacked(one)
        length = number_in(described, STREAM_LENGTH)
        key = number_in(described, STREAM_KIND), number_in(described, STREAM_COLUMN)
        yield key, described, file[position : position + length]
        position += length


def _joined_index(whole: bytes, fractions: bytes, tail: Tail) -> bytes:
    """Merge two row-group indexes: each entry's last positions, which locate the fractions, come from `fractions`."""
    own_positions = 2 if tail.compression == 0 else 3
    entries: list[Field] = []
    of_both = (unpacked(decompressed(one, tail.compression)) for one in (whole, fractions))
    for (number, entry), (_, other) in zip(*of_both, strict=True):
        fields = unpacked(_bytes(entry))
        theirs = numbers_in(messages_in(unpacked(_bytes(other)), _POSITIONS)[0])[-own_positions:]
        changed: list[Field] = []
        for key, value in fields:
            if key == _POSITIONS:
                value = packed_numbers([*numbers_in(_bytes(value))[:-own_positions], *theirs])
            elif key == _ENTRY_STATISTICS:
                value = _widened(_bytes(value))
            changed.append((key, value))
        entries.append((number, packed(changed)))
    return original_chunks(packed(entries), tail.compression, tail.block_bytes)


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes), "the specification has a message here"
    return value


def _widened_columns(columns: Sequence[bytes], instants: set[int]) -> list[bytes]:
    return [_widened(one) if column in instants else one for column, one in enumerate(columns)]


def _widened(statistics: bytes) -> bytes:
    """Widen statistics of whole seconds by one second, so that they cover the fractions."""
    changed: list[Field] = []
    for number, value in unpacked(statistics):
        if number == _TIMESTAMPS:
            bounds = [(key, _widened_bound(key, bound)) for key, bound in unpacked(_bytes(value)) if key <= max(_MOST)]
            value = packed(bounds)
        changed.append((number, value))
    return packed(changed)


def _widened_bound(key: int, bound: int | bytes) -> int:
    assert isinstance(bound, int), "the specification has a number here"
    millis = (bound >> 1) ^ -(bound & 1)
    millis += 1000 if key in _MOST else -1000
    return millis << 1 if millis >= 0 else (-millis << 1) - 1
