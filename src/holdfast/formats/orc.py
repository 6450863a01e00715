"""Read and write ORC through pyarrow.

The types timestamp_ntz, time and interval are stored as in Spark: as whole numbers, with Spark's type as an attribute.

pyarrow's encoder (26.0 and before) applies the validity bitmap of a slice to the whole column, ignores the offset of a
struct's children, and writes a value for a non-null child of a null struct. So the writer passes nested columns to the
encoder as a whole and without offsets, and repeats every null of a struct in all of its descendants. For the same
reason, no nested field is stored as NOT NULL. Other columns are not touched.

The writer rejects what Spark's reader would change: dates before 1582-10-15 (Spark takes them for Julian ones),
timestamps before 1900 (Spark shifts them by the historical offset of its own time zone), and fractions of seconds
before 1970 (pyarrow's encoder confuses them).

Memory: rows are collected into batches of about 64 Ki before they go to the encoder, which holds one stripe (64 MiB)
and, for each column, buffers of 0.7 MB. What it frees is returned to the system, so that a task with many files of a
thousand columns does not grow by 0.2 GB with each of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as pa_orc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, ReadRequest
from holdfast.formats.columns.arrow_types import child_fields
from holdfast.formats.columns.conversion import (
    BatchBuffer,
    build_record_batch,
    child_arrays,
    plain_schema,
    reinterpret_bits,
    to_plain_batch,
    transform_child_fields,
    with_child_arrays,
)
from holdfast.formats.columns.dates import FIRST_INSTANT_US, GREGORIAN_DAY, iter_dates_and_timestamps
from holdfast.formats.columns.types import BASE, NANOSECONDS, NESTED, check_columns_supported
from holdfast.formats.orc_reader import open_orc
from holdfast.formats.streams import output_stream
from holdfast.stores.provider import make_choice_parser

_STRIPE_BYTES = 64 * 1024 * 1024
_WRITE_ROWS = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class OrcOptions(FormatOptions):
    """Options of ORC files.

    Attributes:
        compression: the codec, by pyarrow's name; zstd is Spark 4's default.
    """

    compression: str = "zstd"


_CODECS = {
    "none": "uncompressed",
    "uncompressed": "uncompressed",
    "snappy": "snappy",
    "zlib": "zlib",
    "zstd": "zstd",
}

# --- writing ----------------------------------------------------------------------------------------------------------
_SPARK_TYPE = b"spark.sql.catalyst.type"
_NTZ, _INTERVAL, _TIME = b"timestamp_ntz", b"interval day to second", b"time(6)"


def _stored_field(field: pa.Field) -> pa.Field:
    """Return the field as ORC stores it: ORC has no types for intervals, times or Spark's timestamp_ntz."""
    kind = field.type
    if pat.is_timestamp(kind) and kind.tz is None:
        return pa.field(field.name, pa.int64(), True, {_SPARK_TYPE: _NTZ})
    if pat.is_duration(kind):
        return pa.field(field.name, pa.int64(), True, {_SPARK_TYPE: _INTERVAL})
    if pat.is_time(kind):
        return pa.field(field.name, pa.int64(), True, {_SPARK_TYPE: _TIME})
    return pa.field(field.name, transform_child_fields(kind, _stored_field), True)


def _to_stored_table(table: pa.Table) -> pa.Table:
    """Convert a table from the plain form (`columns.conversion`) to the encoder's form, defined by `_stored_field`."""
    schema = pa.schema([_stored_field(field) for field in table.schema])
    columns = [
        pa.chunked_array([_to_stored_column(chunk, field.type) for chunk in column.chunks], field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _to_stored_column(column: Any, kind: pa.DataType) -> Any:
    if not pat.is_nested(column.type):
        return _to_stored_leaf(column, kind)
    # Concatenating copies the rows of a slice, on all levels, into arrays without offsets.
    return _to_stored_array(pa.concat_arrays([column]), kind)


def _to_stored_array(array: Any, kind: pa.DataType) -> Any:
    """Convert an array without offset to the stored type."""
    if not pat.is_nested(kind):
        return _to_stored_leaf(array, kind)
    below = array.flatten() if pat.is_struct(kind) else child_arrays(array)  # flatten: null where the struct is null
    pairs = zip(below, child_fields(kind), strict=True)
    return with_child_arrays(array, kind, [_to_stored_array(child, field.type) for child, field in pairs])


def _to_stored_leaf(array: Any, kind: pa.DataType) -> Any:
    if pat.is_time(array.type):
        array = array.cast(pa.time64("ns"))  # Spark's unit
    return array if array.type.equals(kind) else array.cast(kind)


def _refuse_values_that_change(table: pa.Table) -> None:
    """Refuse values of a stored table that Spark's reader would not return unchanged."""
    for path, kind, numbers in iter_dates_and_timestamps(table):
        least = pc.min(numbers).as_py()
        if least is None or least >= 0:
            continue
        if pat.is_date32(kind):
            if least < GREGORIAN_DAY:
                raise InvalidRequestError("ORC cannot store dates before 1582-10-15: use parquet", column=path)
            continue
        if least < FIRST_INSTANT_US:
            raise InvalidRequestError("ORC cannot store timestamps before 1900: use parquet", column=path)
        early = pc.filter(numbers, pc.less(numbers, 0))
        if not pc.all(pc.equal(pc.multiply(pc.divide(early, 1_000_000), 1_000_000), early)).as_py():
            raise InvalidRequestError(
                "ORC cannot store fractions of seconds before 1970: use parquet, or truncate the column", column=path
            )


class _OrcWriter:
    def __init__(self, sink: ByteSink, schema: pa.Schema, options: OrcOptions) -> None:
        self._plain = plain_schema(schema)
        self._buffer = BatchBuffer(self._plain)
        self._stripe_bytes = 0  # decoded bytes passed to the encoder since it may last have ended a stripe
        self._encoder = pa_orc.ORCWriter(
            output_stream(sink), compression=options.compression, stripe_size=_STRIPE_BYTES, file_version="0.12"
        )
        self._empty = True

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes + self._stripe_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        self._buffer.add(to_plain_batch(batch, self._plain))
        if self._buffer.rows >= _WRITE_ROWS:
            self._flush()

    def close(self) -> None:
        if self._buffer.rows or self._empty:
            self._flush()
        self._encoder.close()
        del self._encoder
        _return_free_memory()

    def _flush(self) -> None:
        self._stripe_bytes = (self._stripe_bytes + self._buffer.bytes) % _STRIPE_BYTES
        table = _to_stored_table(self._buffer.take())
        _refuse_values_that_change(table)
        self._encoder.write(table)
        self._empty = False


def _return_free_memory() -> None:
    """Return to the system what pyarrow's encoder or decoder has freed, since it fragments the heap of glibc."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


# --- reading ----------------------------------------------------------------------------------------------------------
def _logical_field(field: pa.Field) -> pa.Field:
    """Return the field that was stored as `field`: the inverse of `_stored_field`, even for files that Spark wrote."""
    spark_type = (field.metadata or {}).get(_SPARK_TYPE, b"")
    if spark_type == _NTZ:
        kind = pa.timestamp("us")
    elif spark_type.startswith((b"interval year", b"interval month")):
        raise UnsupportedError(
            "year-month intervals in ORC files are not supported: read them with spark.read.orc", column=field.name
        )
    elif spark_type.startswith(b"interval "):
        kind = pa.duration("us")
    elif spark_type.startswith(b"time("):
        kind = pa.time64("ns")
    elif pat.is_timestamp(field.type):
        kind = pa.timestamp("us", "UTC")
    else:
        kind = transform_child_fields(field.type, _logical_field)
    return pa.field(field.name, kind, field.nullable)


def _read_schema(source: BinaryIO, options: OrcOptions) -> pa.Schema:
    return plain_schema(pa.schema([_logical_field(field) for field in open_orc(source).schema]))


def _read_batches(
    source: BinaryIO, wanted: ReadRequest, options: OrcOptions, groups: Sequence[int] | None
) -> Iterator[Any]:
    rows = open_orc(source)
    _require_column_names(rows.names, wanted.schema)
    names = {name.lower() for name in wanted.needed.names}
    found = [name for name in rows.names if name.lower() in names] or rows.names[:1]
    logical = pa.schema([_logical_field(rows.schema.field(name)) for name in found])
    try:
        for stripe in range(rows.stripes):
            stored = rows.read_stripe(stripe, found)
            arrays = [
                reinterpret_bits(column, field.type) for column, field in zip(stored.columns, logical, strict=True)
            ]
            yield build_record_batch(arrays, logical, stored.num_rows)
    finally:  # also if the caller wants no more rows
        del rows
        _return_free_memory()


def _require_column_names(names: Sequence[str], schema: pa.Schema) -> None:
    """Refuse files in which old Hive did not store the names of the columns: all columns would be null."""
    known = {name.lower() for name in schema.names}
    if known and list(names) == [f"_col{index}" for index in range(len(names))] and not known.intersection(names):
        raise UnsupportedError("an ORC file lacks the names of its columns: read it with spark.read.orc", file=names)


ORC: FileFormat[OrcOptions] = FileFormat(
    name="orc",
    default_options=OrcOptions(),
    parsers={name: ("compression", make_choice_parser(_CODECS)) for name in ("compression", "codec", "orc.compress")},
    holds=BASE | NESTED | {"binary", "interval", "time"},
    reasons={
        "null": "every ORC column needs a concrete type: cast the column to one",
        "interval of other fields": "ORC files store only day-time intervals: cast to interval day to second",
        "time of nanoseconds": NANOSECONDS,
        "variant": "ORC has no VARIANT: store to_json(column)",
        "collated string": "ORC does not store collations: cast to string collate UTF8_BINARY",
        "user-defined": "ORC stores only the underlying type of a user-defined type: store its parts",
    },
    magic=b"ORC",
    extension=lambda options: ".orc" if options.compression == "uncompressed" else f".{options.compression}.orc",
    check_schema=lambda schema: check_columns_supported(ORC, schema),
    open_writer=_OrcWriter,
    read_schema=_read_schema,
    read=_read_batches,
)
