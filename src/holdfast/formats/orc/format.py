"""Read and write ORC through pyarrow.

The types timestamp_ntz and interval are stored as in Spark: as whole microseconds, with Spark's type as an attribute.
Other modules prevent changes that pyarrow would make: to nested nulls (`orc.arrays`), to fractions of a second before
1970 and the calendar of dates (`orc.output`), and, when reading, to timestamps (`orc.instants`).

The writer rejects:

* timestamps before 1900, because Spark's reader shifts them by the historical offset of its own time zone (unless the
  option oldInstants says that all readers are in UTC);
* fractions of the last second before 1970, which the format cannot distinguish from those of the first second of 1970;
* the ten days that the hybrid calendar skips in 1582.

Memory: rows are collected into batches of about 64 Ki before they go to the encoder, which holds one stripe (64 MiB).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, RowFilter
from holdfast.formats.columns.buffer import BatchBuffer
from holdfast.formats.columns.conversion import (
    batch_of,
    finish,
    leaves,
    map_children,
    needed_schema,
    plain_batch,
    plain_schema,
    relabel,
)
from holdfast.formats.columns.types import check_columns
from holdfast.formats.options import choice
from holdfast.formats.orc.arrays import NTZ, SPARK_TYPE, holds, split_instants, stored_table
from holdfast.formats.orc.instants import open_orc
from holdfast.formats.orc.output import OrcOutput

_STRIPE_BYTES = 64 * 1024 * 1024
_WRITE_ROWS = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class OrcOptions(FormatOptions):
    """Options of ORC files.

    Attributes:
        compression: the codec, by pyarrow's name; zstd is Spark 4's default.
        old_instants: how to handle timestamps before 1900: ``refuse``, or ``utc`` for readers whose JVM is in UTC. In
            other time zones, Spark's ORC reader shifts such timestamps.
    """

    compression: str = "zstd"
    old_instants: str = "refuse"


_CODECS = {
    "none": "uncompressed",
    "uncompressed": "uncompressed",
    "snappy": "snappy",
    "zlib": "zlib",
    "zstd": "zstd",
    "lz4": "lz4",
}


# --- types ------------------------------------------------------------------------------------------------------------
def _logical_field(field: pa.Field) -> pa.Field:
    """Return the field that was stored as `field`: the inverse of `stored_field`, even for files that Spark wrote."""
    spark_type = (field.metadata or {}).get(SPARK_TYPE, b"")
    if spark_type == NTZ:
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
        kind = map_children(field.type, _logical_field)
    return pa.field(field.name, kind, field.nullable)


_GREGORIAN, _LOST_FROM = datetime.date(1582, 10, 15), datetime.date(1582, 10, 5)
_FIRST_US = -2_208_988_800_000_000  # 1900-01-01
_GREGORIAN_US, _LOST_FROM_US = -12_219_292_800_000_000, -12_220_156_800_000_000
_LOST_US = (-999_000, -1)  # the second before 1970, from its first millisecond on


def _lost_days(path: str) -> InvalidRequestError:
    return InvalidRequestError(
        "ORC cannot store 1582-10-05 to 1582-10-14, which Java's calendar skips: use parquet", column=path
    )


def _is_counted(kind: pa.DataType) -> bool:
    return bool(pat.is_timestamp(kind) or pat.is_date(kind))


@dataclass(slots=True)
class _Needs:
    """The features of the ORC file that the values written so far require."""

    holds_old_instants: bool
    proleptic: bool = False
    split: bool = False

    def inspect(self, table: pa.Table) -> None:
        """Record the features that a stored table requires, and reject values that no reader would return unchanged."""
        for field, column in zip(table.schema, table.columns, strict=True):
            for chunk in column.chunks if holds(field.type, _is_counted) else []:
                for path, leaf in leaves(field.name, chunk):
                    if pat.is_timestamp(leaf.type):
                        self._inspect_instants(path, leaf.cast(pa.int64()))
                    elif pat.is_date(leaf.type):
                        self._inspect_dates(path, leaf)

    def _inspect_dates(self, path: str, dates: Any) -> None:
        old = pc.filter(dates, pc.less(dates, _GREGORIAN))
        self.proleptic = self.proleptic or len(old) > 0
        if pc.any(pc.less(old, datetime.date.min)).as_py():
            raise InvalidRequestError(
                "ORC cannot store dates before the year 1, which Spark's reader takes for later years: use parquet",
                column=path,
            )
        if pc.any(pc.greater_equal(old, _LOST_FROM)).as_py():
            raise _lost_days(path)

    def _inspect_instants(self, path: str, micros: Any) -> None:
        least = pc.min(micros).as_py()
        if least is None or least >= 0:
            return
        if least < _FIRST_US and not self.holds_old_instants:
            raise InvalidRequestError(
                "ORC cannot store timestamps before 1900 for readers in every zone: use parquet, or oldInstants=utc",
                column=path,
            )
        early = pc.filter(micros, pc.less(micros, 0))
        if least < _GREGORIAN_US:
            self.proleptic = True
            lost = pc.and_(pc.greater_equal(early, _LOST_FROM_US), pc.less(early, _GREGORIAN_US))
            if pc.any(lost).as_py():
                raise _lost_days(path)
        first, last = _LOST_US
        if pc.any(pc.and_(pc.greater_equal(early, first), pc.less_equal(early, last))).as_py():
            raise InvalidRequestError(
                "ORC cannot store fractions of the last second before 1970: use parquet, or truncate the column",
                column=path,
            )
        whole = pc.equal(pc.multiply(pc.divide(early, 1_000_000), 1_000_000), early)
        self.split = self.split or not pc.all(whole).as_py()


# --- writing ----------------------------------------------------------------------------------------------------------
class _OrcWriter:
    def __init__(self, sink: ByteSink, schema: pa.Schema, options: OrcOptions) -> None:
        self._plain = plain_schema(schema)
        self._buffer = BatchBuffer(self._plain)
        self._stripe_bytes = 0  # decoded bytes passed to the encoder since it may last have ended a stripe
        self._output = OrcOutput(sink, options.compression, _STRIPE_BYTES)
        self._needs = _Needs(options.old_instants == "utc")
        self._empty = True

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes + self._stripe_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        self._buffer.add(plain_batch(batch, self._plain))
        # A split stripe (seconds and fractions apart) is written in one piece, so it gets more rows.
        enough = self._buffer.bytes >= _STRIPE_BYTES if self._needs.split else self._buffer.rows >= _WRITE_ROWS
        if enough:
            self._flush()

    def close(self) -> None:
        if self._buffer.rows or self._empty:
            self._flush()
        self._output.close(self._needs.proleptic)

    def _flush(self) -> None:
        added = self._stripe_bytes + self._buffer.bytes
        table = stored_table(self._buffer.take())
        self._needs.inspect(table)
        if self._needs.split:
            self._output.write_split(*split_instants(table))
        else:
            self._output.write(table)
        self._stripe_bytes = 0 if self._needs.split else added % _STRIPE_BYTES
        self._empty = False


# --- reading ----------------------------------------------------------------------------------------------------------
def _read_schema(source: BinaryIO, options: OrcOptions) -> pa.Schema:
    return plain_schema(pa.schema([_logical_field(field) for field in open_orc(source).schema]))


def _read_batches(
    source: BinaryIO,
    schema: pa.Schema,
    columns: Sequence[str],
    row_filter: RowFilter | None,
    options: OrcOptions,
    row_groups: Sequence[int] | None,
) -> Iterator[pa.RecordBatch]:
    rows = open_orc(source)
    needed = needed_schema(schema, columns, row_filter)
    wanted = {name.lower() for name in needed.names}
    called = _schema_names(rows.names, schema)
    found = [name for name in rows.names if called[name].lower() in wanted] or rows.names[:1]
    logical = pa.schema([_logical_field(rows.schema.field(name)) for name in found])
    for stripe in range(rows.stripes):
        stored = rows.read_stripe(stripe, found)
        arrays = [relabel(column, field.type) for column, field in zip(stored.columns, logical, strict=True)]
        batch = batch_of(arrays, logical, stored.num_rows)
        yield finish(batch.rename_columns([called[name] for name in found]), needed, columns, row_filter)


def _schema_names(names: Sequence[str], schema: pa.Schema) -> dict[str, str]:
    """Map the file's column names to those in the schema, by position if old Hive wrote the file without real names."""
    known = {name.lower() for name in schema.names}
    if not all(name.startswith("_col") for name in names) or any(name.lower() in known for name in names):
        return {name: name for name in names}
    if len(names) != len(schema):
        raise InvalidRequestError(
            "an ORC file identifies columns by position: give a schema of all columns, without the option columns",
            file=names,
            schema=schema.names,
        )
    return dict(zip(names, schema.names, strict=True))


ORC = FileFormat(
    name="orc",
    default_options=OrcOptions(),
    parsers={
        "compression": choice("compression", _CODECS),
        "codec": choice("compression", _CODECS),
        "orc.compress": choice("compression", _CODECS),
        "oldinstants": choice("old_instants", {"refuse": "refuse", "utc": "utc"}),
    },
    extension=lambda options: ".orc" if options.compression == "uncompressed" else f".{options.compression}.orc",
    check_schema=lambda schema: check_columns("orc", schema),
    open_writer=_OrcWriter,
    read_schema=_read_schema,
    read_batches=_read_batches,
    maybe_by_position=True,
)
