"""Read the rows of an ORC file like Spark: timestamps of any year and of the writer's time zone.

A timestamp is stored as two numbers: the seconds since the start of 2015 in the time zone of its stripe, and the
nanoseconds. For timestamps before 1970, Java's writer rounds the seconds towards 1970; Java's reader, like this module,
subtracts the second again if the fraction is at least a millisecond.

pyarrow converts timestamps to nanoseconds, which cover only 1677 to 2262, shifts timestamps of other time zones, and
reads CHAR as bytes of fixed length. So pyarrow is given the same file with a modified tail, twice if there are
timestamps:

* in the view `_seconds_view`, timestamps are integers (their stored seconds), and CHAR and VARCHAR are strings; nothing
  else changes;
* in the view `_nanoseconds_view`, timestamps have no seconds: only the separately stored fractions remain.
"""

from __future__ import annotations

import bisect
import datetime
import functools
import io
import itertools
import zlib
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as pa_orc
import pyarrow.types as pat

from holdfast.errors import CorruptDataError, HoldfastError, UnsupportedError
from holdfast.formats.columns.arrow_types import child_fields, contains_type
from holdfast.formats.columns.conversion import child_arrays, with_child_arrays
from holdfast.formats.columns.dates import refuse_old_calendar_values
from holdfast.formats.orc_tail import (
    CHAR,
    DATA_BYTES,
    ENCODINGS,
    FOOTER_BYTES,
    KIND,
    LONG,
    NOT_ORC,
    OFFSET,
    STREAM_COLUMN,
    STREAM_DATA,
    STREAM_KIND,
    STREAM_LENGTH,
    STREAMS,
    STRING,
    STRIPES,
    TIMESTAMP,
    TIMESTAMP_INSTANT,
    TYPES,
    VARCHAR,
    ZONE,
    Field,
    OrcTail,
    decode_message,
    encode_message,
    get_number_field,
    get_repeated_field,
    make_uncompressed_chunks,
    read_tail,
    with_number_fields,
)
from holdfast.formats.streams import input_file

_BASE_S = 1_420_070_400
_UTC_NAMES = frozenset({"", "UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "UCT", "Zulu", "Universal"})
_VISIBLE_NS = 999_999  # Java's reader ignores fractions up to this many nanoseconds


def open_orc(source: BinaryIO) -> OrcRows:
    """Open a seekable ORC file for reading; `source` is never closed.

    Raises:
        CorruptDataError: the file is not ORC.
        UnsupportedError: the file has unions, or a codec that only Java supports.
    """
    try:
        return OrcRows(source, read_tail(source))
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedError("an ORC file has unsupported types: read it with Spark") from error
    except (pa.ArrowException, OSError, ValueError, IndexError, zlib.error) as error:
        if isinstance(error, HoldfastError):
            raise
        raise CorruptDataError(NOT_ORC) from error


class OrcRows:
    """An ORC file whose stripes are read with exactly the values that its writer received.

    Attributes:
        schema: the schema from pyarrow, with the attributes of columns as metadata, and timestamps in UTC.
        names: the names of the columns.
        stripes: the number of stripes.
    """

    def __init__(self, source: BinaryIO, tail: OrcTail) -> None:
        self._source, self._tail = source, tail
        self._has_view = any(kind in _SECONDS for kind in tail.kinds)
        self._file = pa_orc.ORCFile(input_file(_schema_view(source, tail) if self._has_view else source))
        self.schema: pa.Schema = self._file.schema
        self.names = tuple(self.schema.names)
        self.stripes = len(tail.stripes)
        if self._has_view:
            self._file = pa_orc.ORCFile(input_file(_seconds_view(source, tail)))
        self._fractions: Any = None

    def read_stripe(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Read some columns of a stripe, in the file's order.

        Raises:
            CorruptDataError: the file is damaged.
            UnsupportedError: a timestamp is out of the range of Arrow's microseconds, or its time zone is unknown.
        """
        batch = self._decode_stripe(self._file, stripe, columns)
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        names = [name for name in arrays if contains_type(self.schema.field(name).type, pat.is_timestamp)]
        if names:
            if self._fractions is None:
                self._fractions = pa_orc.ORCFile(input_file(_nanoseconds_view(self._source, self._tail)))
            fractions = self._decode_stripe(self._fractions, stripe, names)
            footer = self._tail.stripe_footer(self._source, self._tail.stripes[stripe])
            zones = self._map_columns_to_time_zones(
                next((zone.decode() for zone in get_repeated_field(footer, ZONE)), None)
            )
            for name in names:
                whole = zones[self.schema.get_field_index(name)]
                arrays[name] = self._combine_column(arrays[name], fractions.column(name), iter(whole))
        rows = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
        return rows if self._tail.proleptic else refuse_old_calendar_values(rows)

    def _decode_stripe(self, file: Any, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        try:
            return file.read_stripe(stripe, columns=list(columns))
        except (pa.ArrowException, OSError) as error:
            raise CorruptDataError("an ORC file is damaged: check what wrote it") from error

    def _map_columns_to_time_zones(self, of_stripe: str | None) -> dict[int, list[str]]:
        """Map each top-level column to the time zones of the timestamps in it, in the order of the types."""
        kinds = self._tail.kinds
        zones: dict[int, list[str]] = {}
        for column, top in self._tail.top_columns_by_number().items():
            if kinds[column] in (TIMESTAMP, TIMESTAMP_INSTANT):
                zone = "UTC" if kinds[column] == TIMESTAMP_INSTANT else of_stripe
                zones.setdefault(top, []).append(zone or "UTC")
        return zones

    def _combine_column(self, whole: Any, fractions: Any, zones: Iterator[str]) -> Any:
        """Combine a column's two views (seconds and fractions) into timestamps."""
        kind = fractions.type
        if pat.is_timestamp(kind):
            return _combine_instants(whole, fractions, next(zones))
        below = [
            self._combine_column(*pair, zones)
            for pair in zip(child_arrays(whole), child_arrays(fractions), strict=True)
        ]
        return _replace_children(whole, below) if below else whole


# --- columns ----------------------------------------------------------------------------------------------------------
def _replace_children(array: Any, below: list[Any]) -> Any:
    """Replace the children of a decoded nested array, and its type accordingly."""
    kind = array.type
    fields = [field.with_type(child.type) for field, child in zip(child_fields(kind), below, strict=True)]
    if pat.is_map(kind):
        kind = pa.map_(fields[0].type.field(0), fields[0].type.field(1))
    else:
        kind = pa.struct(fields) if pat.is_struct(kind) else pa.list_(fields[0])
    return with_child_arrays(array, kind, below)


# --- timestamps -------------------------------------------------------------------------------------------------------
def _combine_instants(whole: Any, fractions: Any, zone: str) -> Any:
    """Compute microseconds from stored seconds and fractions; these are timestamps in the first second of 2015."""
    nanos = pc.subtract(fractions.cast(pa.int64()), _BASE_S * 1_000_000_000)
    try:
        stored = pc.add_checked(whole, _zone_base_s(zone))
        borrowed = pc.and_(pc.less(stored, 0), pc.greater(nanos, _VISIBLE_NS))
        micros = pc.multiply_checked(pc.subtract(stored, borrowed.cast(pa.int64())), 1_000_000)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(
            "a timestamp is outside Spark's range of years: leave the column out with `columns`"
        ) from error
    return pc.add(micros, pc.divide(nanos, 1000)).cast(pa.timestamp("us", "UTC"))


@functools.cache
def _zone_base_s(zone: str) -> int:
    """Return the start of 2015 in a time zone, in seconds since the epoch."""
    if zone in _UTC_NAMES:
        return _BASE_S
    try:
        start = datetime.datetime(2015, 1, 1, tzinfo=zoneinfo.ZoneInfo(zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnsupportedError(
            "an ORC file was written in an unknown time zone: pip install tzdata, or read it with Spark",
            zone=zone,
        ) from error
    return int(start.timestamp())


# --- views of the file ------------------------------------------------------------------------------------------------
_SECONDS = {TIMESTAMP: LONG, TIMESTAMP_INSTANT: LONG, CHAR: STRING, VARCHAR: STRING}
_NANOSECONDS = {TIMESTAMP: TIMESTAMP_INSTANT, CHAR: STRING, VARCHAR: STRING}

# The new kind of the stream of seconds: timestamp columns do not use this kind, so the stream is ignored.
_UNREAD = 4
# 512 zeros: a run with encoding DELTA, base 0, delta 0.
_ZEROS, _ZEROS_RUN = 512, bytes([0xC1, 0xFF, 0, 0])
# The same for files of Hive 0.11: 130 zeros.
_OLD_ZEROS, _OLD_ZEROS_RUN = 130, bytes([0x7F, 0, 0])
_DIRECT_V2 = 2


def _schema_view(source: BinaryIO, tail: OrcTail) -> BinaryIO:
    """Return a view for reading the schema only: timestamps have a time zone, CHAR and VARCHAR are strings."""
    changed = OrcTail(_replace_type_kinds(tail.footer, _NANOSECONDS), tail.postscript, tail.metadata)
    return cast(BinaryIO, _PatchedFileView(source, [_FilePart(b"ORC"), _FilePart(changed.encoded())]))


def _seconds_view(source: BinaryIO, tail: OrcTail) -> BinaryIO:
    """Return a view with seconds in place of timestamps, counted from the start of 2015 in the stripe's time zone."""
    return _make_changed_view(source, tail, _SECONDS, lambda footer: (b"", footer))


def _nanoseconds_view(source: BinaryIO, tail: OrcTail) -> BinaryIO:
    """Return a view in which timestamps have only their fractions: all are in the first second of 2015 in UTC."""
    return _make_changed_view(source, tail, _NANOSECONDS, lambda footer: _build_zero_seconds_patch(tail, footer))


def _build_zero_seconds_patch(tail: OrcTail, footer: list[Field]) -> tuple[bytes, list[Field]]:
    """Return zeros to append to a stripe's data, and a footer that uses them as the seconds of all timestamps."""
    columns = {column for column, kind in enumerate(tail.kinds) if kind in (TIMESTAMP, TIMESTAMP_INSTANT)}
    encodings = [get_number_field(decode_message(one), KIND) for one in get_repeated_field(footer, ENCODINGS)]
    fields: list[Field] = []
    added: list[Field] = []
    data = bytearray()
    for number, value in footer:
        if number == STREAMS and isinstance(value, bytes):
            stream = decode_message(value)
            column = get_number_field(stream, STREAM_COLUMN)
            if column in columns and get_number_field(stream, STREAM_KIND) == STREAM_DATA:
                value = encode_message(with_number_fields(stream, {STREAM_KIND: _UNREAD}))
                zeros = _encode_zeros(tail, tail.count_values(column), encodings[column] == _DIRECT_V2)
                data += zeros
                described = [(STREAM_KIND, STREAM_DATA), (STREAM_COLUMN, column), (STREAM_LENGTH, len(zeros))]
                added.append((number, encode_message(described)))
        fields.append((number, value))
    return bytes(data), fields + added


def _encode_zeros(tail: OrcTail, values: int, is_new: bool) -> bytes:
    """Encode a stream of at least `values` zeros."""
    run, length = (_ZEROS_RUN, _ZEROS) if is_new else (_OLD_ZEROS_RUN, _OLD_ZEROS)
    return make_uncompressed_chunks(run * (values // length + 1), tail.compression, tail.block_bytes)


# --- a modified tail --------------------------------------------------------------------------------------------------
def _make_changed_view(
    source: BinaryIO,
    tail: OrcTail,
    kinds: Mapping[int, int],
    change: Callable[[list[Field]], tuple[bytes, Sequence[Field]]],
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
    parts = [_FilePart(b"ORC")]
    position = 3
    stripes: list[Field] = []
    for stripe in tail.stripes:
        data, fields = change(tail.stripe_footer(source, stripe))
        without_zone = [field for field in fields if field[0] != ZONE]
        footer = make_uncompressed_chunks(encode_message(without_zone), tail.compression, tail.block_bytes)
        lengths = {OFFSET: position, DATA_BYTES: stripe.data_bytes + len(data)}
        stripes.append(
            (STRIPES, encode_message(with_number_fields(stripe.fields, {**lengths, FOOTER_BYTES: len(footer)})))
        )
        parts += [_FilePart(stripe.streams_bytes, stripe.offset), _FilePart(data + footer)]
        position += stripe.streams_bytes + len(data) + len(footer)
    rest = [field for field in _replace_type_kinds(tail.footer, kinds) if field[0] != STRIPES]
    changed = OrcTail((*rest, *stripes), tail.postscript, tail.metadata)
    return cast(BinaryIO, _PatchedFileView(source, [*parts, _FilePart(changed.encoded())]))


def _replace_type_kinds(footer: Iterable[Field], kinds: Mapping[int, int]) -> tuple[Field, ...]:
    changed: list[Field] = []
    for number, value in footer:
        if number == TYPES and isinstance(value, bytes):
            described = decode_message(value)
            kind = get_number_field(described, KIND)
            value = encode_message(with_number_fields(described, {KIND: kinds.get(kind, kind)}))
        changed.append((number, value))
    return tuple(changed)


class _FilePart:
    """A part of a view: new bytes, or a range of the source file."""

    def __init__(self, content: bytes | int, offset: int = 0) -> None:
        self.own = content if isinstance(content, bytes) else None
        self.length = content if isinstance(content, int) else len(content)
        self.offset = offset


class _PatchedFileView(io.RawIOBase):
    """A readable, seekable file made of consecutive parts."""

    def __init__(self, source: BinaryIO, parts: Sequence[_FilePart]) -> None:
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
