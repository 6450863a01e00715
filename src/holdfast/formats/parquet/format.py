"""Read and write Parquet as Spark's own reader expects it, and use special encodings only where they pay.

Memory: the decoded rows of up to one row group (`ParquetOptions.row_group_rows` and `row_group_bytes`) and its encoded
pages. The writer never holds the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, RowFilter
from holdfast.formats.columns.buffer import BatchBuffer
from holdfast.formats.columns.conversion import map_children, plain_batch, plain_schema
from holdfast.formats.columns.types import check_columns
from holdfast.formats.options import boolean, choice, integer
from holdfast.formats.parquet.encodings import choose_encodings
from holdfast.formats.parquet.reader import SparkFile
from holdfast.formats.spark.schema_json import SPARK_SCHEMA_KEY, spark_schema_json
from holdfast.formats.streams import output_stream

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ParquetOptions(FormatOptions):
    """Options of Parquet files.

    Attributes:
        compression: the codec, by pyarrow's name. Snappy is Spark's default; zstd makes files a quarter smaller and
            takes a quarter more time.
        compression_level: the codec's level; None for its default.
        row_group_rows: rows per row group. With 10,000, writing the same rows takes more than twice the time; with a
            million, a tenth more, because less of the encoded data stays in the caches.
        row_group_bytes: decoded bytes after which a row group is written even if it has fewer rows.
        page_bytes: size of a data page before compression.
        dictionary: which columns use dictionary encoding: all (True), none (False), or those for which it pays (None).
    """

    compression: str = "snappy"
    compression_level: int | None = None
    row_group_rows: int = 512 * 1024
    row_group_bytes: int = 128 * _MIB
    page_bytes: int = _MIB
    dictionary: bool | None = None


# Map Spark's names of codecs to pyarrow's, and these to the infix of the file name.
_CODECS = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
    "lz4": "lz4",
    "lz4_raw": "lz4",
}
_INFIX = {"none": "", "snappy": ".snappy", "gzip": ".gz", "zstd": ".zstd", "lz4": ".lz4raw"}


# --- writing ----------------------------------------------------------------------------------------------------------
def _with_nulls(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which every field below a nullable struct is nullable too.

    If a struct is null, Spark passes nulls even for its NOT NULL fields, and pyarrow would reject these nulls.
    """
    return pa.schema([field.with_type(_with_nulls_below(field.type, field.nullable)) for field in schema])


def _with_nulls_below(kind: pa.DataType, nullable: bool) -> pa.DataType:
    def below(field: pa.Field) -> pa.Field:
        nulls = field.nullable or (nullable and pat.is_struct(kind))
        return pa.field(field.name, _with_nulls_below(field.type, nulls), nulls)

    return map_children(kind, below)


class _ParquetWriter:
    def __init__(self, sink: ByteSink, schema: pa.Schema, options: ParquetOptions) -> None:
        self._plain = _with_nulls(plain_schema(schema))
        self._spark_json = spark_schema_json(schema)
        self._options = options
        self._buffer = BatchBuffer(self._plain)
        self._stream = output_stream(sink)
        self._writer: Any = None

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes

    def write(self, batch: pa.RecordBatch) -> None:
        batch = plain_batch(batch, self._plain)
        most = self._options.row_group_rows
        while self._buffer.rows + batch.num_rows > most:
            room = most - self._buffer.rows
            self._buffer.add(batch.slice(0, room))
            self._write_row_group()
            batch = batch.slice(room)
        self._buffer.add(batch)
        if self._buffer.rows == most or self._buffer.bytes >= self._options.row_group_bytes:
            self._write_row_group()

    def close(self) -> None:
        if self._buffer.rows or self._writer is None:
            self._write_row_group()
        self._writer.close()

    def _write_row_group(self) -> None:
        table = self._buffer.take()
        if self._writer is None:
            self._writer = self._open(table)
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)

    def _open(self, first: pa.Table) -> Any:
        options = self._options
        chosen = choose_encodings(first, options.compression, options.dictionary)
        dictionary = [path for path, one in chosen.items() if one.name == "RLE_DICTIONARY"]
        special = {path: one.name for path, one in chosen.items() if one.name.startswith("DELTA_")}
        codecs = {path: one.codec for path, one in chosen.items()}
        writer = pq.ParquetWriter(
            self._stream,
            self._plain,
            compression=codecs if options.compression == "snappy" else options.compression,
            compression_level=options.compression_level,
            use_dictionary=dictionary if options.dictionary is None else options.dictionary,
            column_encoding=special or None,
            store_decimal_as_integer=True,  # up to 18 digits, as Spark's own writer does
            data_page_size=options.page_bytes,
            write_page_checksum=True,  # as Spark's own writer does; it costs one percent
            write_batch_size=16 * 1024,  # the default of 1,024 values per call costs five percent
            write_statistics=[path for path, one in chosen.items() if one.statistics],
        )
        # Spark's reader takes types that Parquet lacks from here: intervals, VARIANT, collations, user-defined types.
        writer.add_key_value_metadata({SPARK_SCHEMA_KEY: self._spark_json})
        return writer


# --- reading ----------------------------------------------------------------------------------------------------------
def _read_schema(source: BinaryIO, options: ParquetOptions) -> pa.Schema:
    return SparkFile(source).schema


def _read_batches(
    source: BinaryIO,
    schema: pa.Schema,
    columns: Sequence[str],
    row_filter: RowFilter | None,
    options: ParquetOptions,
    row_groups: Sequence[int] | None,
) -> Iterator[pa.RecordBatch]:
    return SparkFile(source).batches(schema, columns, row_filter, row_groups)


def _plan_splits(source: BinaryIO, options: ParquetOptions, split_bytes: int) -> list[list[int] | None]:
    metadata = SparkFile(source).metadata
    splits: list[list[int] | None] = []
    current: list[int] = []
    size = 0
    for index in range(metadata.num_row_groups):
        current.append(index)
        group = metadata.row_group(index)
        size += sum(group.column(i).total_compressed_size for i in range(group.num_columns))
        if size >= split_bytes:
            splits.append(current)
            current, size = [], 0
    if current:
        splits.append(current)
    return splits or [None]


PARQUET = FileFormat(
    name="parquet",
    aliases=("pq",),
    default_options=ParquetOptions(),
    parsers={
        "compression": choice("compression", _CODECS),
        "codec": choice("compression", _CODECS),
        "compressionlevel": integer("compression_level", 1, 22),
        "parquet.block.size": integer("row_group_bytes", 64 * 1024, 2**31),
        "parquet.page.size": integer("page_bytes", 4 * 1024, 2**30),
        "parquet.enable.dictionary": boolean("dictionary"),
        "rowgrouprows": integer("row_group_rows", 1, 2**31),
    },
    extension=lambda options: f"{_INFIX[options.compression]}.parquet",
    check_schema=lambda schema: check_columns("parquet", schema),
    open_writer=_ParquetWriter,
    read_schema=_read_schema,
    read_batches=_read_batches,
    plan_splits=_plan_splits,
)
