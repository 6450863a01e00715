"""ORC through pyarrow.

Local timestamps and intervals are stored as Spark stores them: whole microseconds with Spark's type as an attribute.
pyarrow writes instants before 1970 with a fraction of a second, and reads instants outside of 1677-2262, wrongly;
Java's ORC reader takes dates before 1582 for Julian ones. Such values are refused rather than changed.

Memory: rows are collected into batches of about 64 Ki before they go to the encoder, which holds one stripe (64 MiB).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as pa_orc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, RowFilter
from holdfast.formats.buffer import BatchBuffer
from holdfast.formats.columns import finish, leaves, map_children, needed_schema, plain_batch, plain_schema
from holdfast.formats.files import output_stream
from holdfast.formats.options import choice
from holdfast.formats.orc_arrays import INTERVAL, NTZ, SPARK_TYPE, stored_table
from holdfast.formats.orc_instants import open_orc
from holdfast.formats.types import check_types

__all__ = ["ORC", "OrcOptions"]

_STRIPE_BYTES = 64 * 1024 * 1024
_WRITE_ROWS = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class OrcOptions(FormatOptions):
    """How ORC is written.

    Attributes:
        compression: codec as pyarrow names it; zstd is Spark 4's default.
    """

    compression: str = "zstd"


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
    """The inverse of `stored_field`."""
    spark_type = (field.metadata or {}).get(SPARK_TYPE)
    if spark_type == NTZ:
        return pa.field(field.name, pa.timestamp("us"), field.nullable)
    if spark_type == INTERVAL:
        return pa.field(field.name, pa.duration("us"), field.nullable)
    return pa.field(field.name, map_children(field.type, _logical_field), field.nullable)


_GREGORIAN = datetime.date(1582, 10, 15)
_FIRST, _LAST = datetime.datetime(1677, 9, 22), datetime.datetime(2262, 4, 11)


def _check_values(table: pa.Table) -> None:
    for field, column in zip(table.schema, table.columns, strict=True):
        for chunk in column.chunks:
            for path, leaf in leaves(field.name, chunk):
                if pat.is_timestamp(leaf.type) and leaf.type.tz is not None:
                    _check_instants(path, leaf)
                elif pat.is_date(leaf.type) and pc.any(pc.less(leaf, _GREGORIAN)).as_py():
                    raise InvalidRequestError("ORC cannot hold dates before 1582-10-15: use parquet", column=path)


def _check_instants(path: str, leaf: Any) -> None:
    bounds = pc.min_max(leaf.cast(pa.timestamp("us"))).as_py()
    if bounds["min"] is None:
        return
    if bounds["min"] < _FIRST or bounds["max"] > _LAST:
        raise InvalidRequestError("ORC cannot hold instants outside of 1677-2262: use parquet", column=path)
    if bounds["min"] < datetime.datetime(1970, 1, 1):
        micros = leaf.cast(pa.int64())
        early = pc.filter(micros, pc.less(micros, 0))
        whole = pc.equal(pc.multiply(pc.divide(early, 1_000_000), 1_000_000), early)
        if not pc.all(whole).as_py():
            raise InvalidRequestError(
                "ORC cannot hold fractions of a second before 1970: use parquet, or truncate the column", column=path
            )


# --- writing ----------------------------------------------------------------------------------------------------------
class _OrcWriter:
    def __init__(self, sink: ByteSink, schema: pa.Schema, options: OrcOptions) -> None:
        self._plain = plain_schema(schema)
        self._buffer = BatchBuffer(self._plain)
        self._stripe_bytes = 0  # decoded bytes given to the encoder since it can last have ended a stripe
        self._writer = pa_orc.ORCWriter(
            output_stream(sink), compression=options.compression, stripe_size=_STRIPE_BYTES, file_version="0.12"
        )
        self._empty = True

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes + self._stripe_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        self._buffer.add(plain_batch(batch, self._plain))
        if self._buffer.rows >= _WRITE_ROWS:
            self._flush()

    def close(self) -> None:
        if self._buffer.rows or self._empty:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._stripe_bytes = (self._stripe_bytes + self._buffer.bytes) % _STRIPE_BYTES
        table = stored_table(self._buffer.take())
        _check_values(table)
        self._writer.write(table)
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
    found = [name for name in rows.schema.names if name.lower() in wanted] or rows.schema.names[:1]
    for stripe in range(rows.stripes):
        yield finish(rows.read_stripe(stripe, found), needed, columns, row_filter)


def _check_schema(schema: pa.Schema) -> None:
    if not schema.names:
        raise InvalidRequestError("a file needs a column: select at least one")
    check_types("orc", schema)


ORC = FileFormat(
    name="orc",
    default_options=OrcOptions(),
    parsers={
        "compression": choice("compression", _CODECS),
        "codec": choice("compression", _CODECS),
        "orc.compress": choice("compression", _CODECS),
    },
    extension=lambda options: ".orc" if options.compression == "uncompressed" else f".{options.compression}.orc",
    check_schema=_check_schema,
    open_writer=_OrcWriter,
    read_schema=_read_schema,
    read_batches=_read_batches,
)
