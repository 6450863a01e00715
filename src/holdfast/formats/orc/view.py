"""Present an ORC file to pyarrow in a form that it decodes without loss.

pyarrow converts timestamps to nanoseconds, which cover only 1677 to 2262, shifts timestamps of other time zones, and
reads CHAR as bytes of fixed length. So pyarrow is given the same file with a modified tail, twice if there are
timestamps:

* in the view `seconds`, timestamps are integers (their stored seconds), and CHAR and VARCHAR are strings; nothing else
  changes;
* in the view `nanoseconds`, timestamps have no seconds: only the separately stored fractions remain.
"""

from __future__ import annotations

import bisect
import io
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO, cast

from holdfast.errors import CorruptDataError
from holdfast.formats.orc.messages import (
    Field,
    messages_in,
    number_in,
    original_chunks,
    packed,
    unpacked,
    with_numbers,
)
from holdfast.formats.orc.tail import (
    CHAR,
    KIND,
    LONG,
    STREAM_COLUMN,
    STREAM_DATA,
    STREAM_KIND,
    STREAM_LENGTH,
    STRING,
    STRIPES,
    TIMESTAMP,
    TIMESTAMP_INSTANT,
    TYPES,
    VARCHAR,
    Stripe,
    StripeFooter,
    Tail,
)

_SECONDS = {TIMESTAMP: LONG, TIMESTAMP_INSTANT: LONG, CHAR: STRING, VARCHAR: STRING}
_NANOSECONDS = {TIMESTAMP: TIMESTAMP_INSTANT, CHAR: STRING, VARCHAR: STRING}

# The new kind of the stream of seconds: timestamp columns do not use this kind, so the stream is ignored.
_UNREAD = 4
# 512 zeros: a run with encoding DELTA, base 0, delta 0.
_ZEROS, _ZEROS_RUN = 512, bytes([0xC1, 0xFF, 0, 0])
# The same for files of Hive 0.11: 130 zeros.
_OLD_ZEROS, _OLD_ZEROS_RUN = 130, bytes([0x7F, 0, 0])
_DIRECT_V2 = 2


def needs_view(tail: Tail) -> bool:
    """Check whether pyarrow might change values of the file, so that it must read a view."""
    return any(kind in _SECONDS for kind in tail.kinds)


def types_only(source: BinaryIO, tail: Tail) -> BinaryIO:
    """Return a view for reading the schema only: timestamps have a time zone, CHAR and VARCHAR are strings."""
    changed = Tail(_with_kinds(tail.footer, _NANOSECONDS), tail.postscript, tail.metadata)
    return cast(BinaryIO, _View(source, [_Part(b"ORC"), _Part(changed.encoded())]))


def seconds(source: BinaryIO, tail: Tail) -> BinaryIO:
    """Return a view with seconds in place of timestamps, counted from the start of 2015 in the stripe's time zone."""
    return _changed(source, tail, _SECONDS, lambda footer: (b"", footer.fields))


def nanoseconds(source: BinaryIO, tail: Tail) -> BinaryIO:
    """Return a view in which timestamps have only their fractions: all are in the first second of 2015 in UTC."""
    return _changed(source, tail, _NANOSECONDS, lambda footer: _without_seconds(tail, footer))


def _without_seconds(tail: Tail, footer: StripeFooter) -> tuple[bytes, list[Field]]:
    """Return zeros to append to a stripe's data, and a footer that uses them as the seconds of all timestamps."""
    columns = {column for column, kind in enumerate(tail.kinds) if kind in (TIMESTAMP, TIMESTAMP_INSTANT)}
    encodings = [number_in(unpacked(one), KIND) for one in messages_in(footer.fields, StripeFooter.ENCODINGS)]
    fields: list[Field] = []
    added: list[Field] = []
    data = bytearray()
    for number, value in footer.fields:
        if number == StripeFooter.STREAMS and isinstance(value, bytes):
            stream = unpacked(value)
            column = number_in(stream, STREAM_COLUMN)
            if column in columns and number_in(stream, STREAM_KIND) == STREAM_DATA:
                value = packed(with_numbers(stream, {STREAM_KIND: _UNREAD}))
                zeros = _zeros(tail, tail.values(column), encodings[column] == _DIRECT_V2)
                data += zeros
                described = [(STREAM_KIND, STREAM_DATA), (STREAM_COLUMN, column), (STREAM_LENGTH, len(zeros))]
                added.append((number, packed(described)))
        fields.append((number, value))
    return bytes(data), fields + added


def _zeros(tail: Tail, values: int, is_new: bool) -> bytes:
    """Encode a stream of at least `values` zeros."""
    run, length = (_ZEROS_RUN, _ZEROS) if is_new else (_OLD_ZEROS_RUN, _OLD_ZEROS)
    return original_chunks(run * (values // length + 1), tail.compression, tail.block_bytes)


# --- a modified tail --------------------------------------------------------------------------------------------------
def _changed(
    source: BinaryIO,
    tail: Tail,
    kinds: Mapping[int, int],
    change: Callable[[StripeFooter], tuple[bytes, Sequence[Field]]],
) -> BinaryIO:
    """Return a view of the file in which some columns have other types.

    The view's stripes have no time zones, because nothing in the view depends on them and the decoder would look up
    each of them.

    Args:
        source: the file.
        tail: the file's tail.
        kinds: maps the kinds of types to replace to their replacements.
        change: returns the bytes to append to a stripe's data, and its new footer.
    """
    parts = [_Part(b"ORC")]
    position = 3
    stripes: list[Field] = []
    for stripe in tail.stripes:
        data, fields = change(tail.stripe_footer(source, stripe))
        without_zone = [field for field in fields if field[0] != StripeFooter.ZONE]
        footer = original_chunks(packed(without_zone), tail.compression, tail.block_bytes)
        lengths = {Stripe.OFFSET: position, Stripe.DATA_BYTES: stripe.data_bytes + len(data)}
        stripes.append((STRIPES, packed(with_numbers(stripe.fields, {**lengths, Stripe.FOOTER_BYTES: len(footer)}))))
        parts += [_Part(stripe.streams_bytes, stripe.offset), _Part(data + footer)]
        position += stripe.streams_bytes + len(data) + len(footer)
    rest = [field for field in _with_kinds(tail.footer, kinds) if field[0] != STRIPES]
    changed = Tail((*rest, *stripes), tail.postscript, tail.metadata)
    return cast(BinaryIO, _View(source, [*parts, _Part(changed.encoded())]))


def _with_kinds(footer: Iterable[Field], kinds: Mapping[int, int]) -> tuple[Field, ...]:
    changed: list[Field] = []
    for number, value in footer:
        if number == TYPES and isinstance(value, bytes):
            described = unpacked(value)
            kind = number_in(described, KIND)
            value = packed(with_numbers(described, {KIND: kinds.get(kind, kind)}))
        changed.append((number, value))
    return tuple(changed)


class _Part:
    """A part of a view: new bytes, or a range of the source file."""

    def __init__(self, content: bytes | int, offset: int = 0) -> None:
        self.own = content if isinstance(content, bytes) else None
        self.length = content if isinstance(content, int) else len(content)
        self.offset = offset


class _View(io.RawIOBase):
    """A readable, seekable file made of consecutive parts."""

    def __init__(self, source: BinaryIO, parts: Sequence[_Part]) -> None:
        self._source = source
        self._parts = [part for part in parts if part.length]
        self._starts = [0, *itertools.accumulate(part.length for part in self._parts)]
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._starts[-1])[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._starts[-1] if size < 0 else min(self._starts[-1], self._position + size)
        pieces = []
        while self._position < end:
            index = bisect.bisect_right(self._starts, self._position) - 1
            part, skipped = self._parts[index], self._position - self._starts[index]
            length = min(part.length - skipped, end - self._position)
            if part.own is None:
                self._source.seek(part.offset + skipped)
                piece = self._source.read(length)
                if len(piece) < length:
                    raise CorruptDataError("an ORC file is truncated: check what wrote it")
            else:
                piece = part.own[skipped : skipped + length]
            pieces.append(piece)
            self._position += length
        return b"".join(pieces)
