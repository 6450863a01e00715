"""Read and write Parquet as Spark's own reader expects it, and use special encodings only where they pay.

A column's encoding is chosen by trying the encodings on its first values. Columns whose later values are of another
kind take more space than necessary, but never lose a value.

Memory: the decoded rows of up to one row group (`ParquetOptions.row_group_rows` and `row_group_bytes`) and its encoded
pages. The writer never holds the whole file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, ReadRequest
from holdfast.formats.columns.conversion import (
    BatchBuffer,
    leaf_columns,
    plain_schema,
    to_plain_batch,
    transform_child_fields,
)
from holdfast.formats.columns.types import BASE, BEYOND, NANOSECONDS, NESTED, check_columns_supported
from holdfast.formats.parquet_reader import SparkTypedParquetFile
from holdfast.formats.schema_json import SPARK_SCHEMA_KEY, arrow_schema_to_json
from holdfast.formats.streams import output_stream
from holdfast.stores.provider import MIB, as_boolean, make_choice_parser, make_number_parser

# Dictionary encoding of mostly distinct values costs a hash per value and still falls back to plain pages. A sample of
# the first 65,536 rows decides: in it, a string column with 1,000 different values has 1,000 of them, random doubles
# are all distinct, and a string column with 100,000 different values has 31,000 of them, for which plain pages were as
# fast and as small.
_SAMPLE_ROWS = 65_536
_TRUSTED_VALUES = 1_000
_MOST_DISTINCT = 0.3

# So many values are encoded on trial: 64 KiB of longs, which is all that Snappy looks at. It takes 0.1 ms per encoding.
_TRIAL_VALUES = 8_192
_PAYS = 0.9  # of the size of the alternative
_BARELY_SMALLER = 0.8

_MOST_DIGITS_OF_INTEGERS = 18


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a leaf column is stored.

    Attributes:
        name: Parquet's name of the encoding. All recent readers support the four that are used; Spark's does since 3.3.
        codec: pyarrow's name of the codec.
        statistics: whether the file has the column's minimum and maximum.
    """

    name: str
    codec: str
    statistics: bool


def choose_encodings(table: pa.Table, codec: str, dictionary: bool | None) -> dict[str, Encoding]:
    """Map the path of each leaf column to its encoding.

    Columns that share their path with another one, as field ``b`` of column ``a`` does with a column ``a.b``, are left
    out, because the writer takes its settings by path.

    Args:
        table: the first rows.
        codec: the compression codec. With Snappy, columns whose pages would hardly become smaller are not compressed;
            with a slower codec all are, because its user wants small files.
        dictionary: which columns use dictionary encoding: all (True), none (False), or those for which it pays (None).
    """
    sample = table.slice(0, _SAMPLE_ROWS).combine_chunks()
    found: list[tuple[str, Any]] = []
    for name in sample.column_names:
        column = sample.column(name)
        found += leaf_columns(name, column.chunk(0) if column.num_chunks else pa.nulls(0, column.type))
    times = Counter(path for path, _ in found)
    encodings = {}
    for path, leaf in found:
        if times[path] == 1:
            name, used = (
                ("RLE_DICTIONARY", codec)
                if dictionary
                else _choose_encoding_and_codec(leaf.drop_null(), codec, dictionary)
            )
            # Arrow ignores NaN in statistics, but to Spark NaN is the largest value, above their maximum.
            encodings[path] = Encoding(name, used, statistics=not pat.is_floating(leaf.type))
    return encodings


def _choose_encoding_and_codec(values: Any, codec: str, dictionary: bool | None) -> tuple[str, str]:
    """Return the encoding of values without nulls, and its codec."""
    if pat.is_boolean(values.type) or pat.is_null(values.type):
        return "PLAIN", codec  # at most one bit per value already
    if len(values) < _TRUSTED_VALUES:  # too few values to decide or to matter
        return "PLAIN" if dictionary is False else "RLE_DICTIONARY", codec
    repeats = dictionary is None and pc.count_distinct(values).as_py() <= _MOST_DISTINCT * len(values)
    usual = "RLE_DICTIONARY" if repeats else "PLAIN"
    tried = values.slice(0, _TRIAL_VALUES)
    size = _measure_encoded_bytes(tried, usual, codec)
    # Ids, event times and numbers below a bound: their differences take few bits, and packing them takes less time than
    # compression, which finds next to nothing in them afterwards.
    steps_codec = "none" if codec == "snappy" else codec
    if _is_integer(values.type) and _measure_encoded_bytes(tried, "DELTA_BINARY_PACKED", steps_codec) <= _PAYS * size:
        return "DELTA_BINARY_PACKED", steps_codec
    if repeats or codec != "snappy" or size <= _BARELY_SMALLER * _measure_encoded_bytes(tried, usual, "none"):
        return usual, codec
    if _is_bytes(values.type):
        # Of random digests, Snappy only compresses the lengths between them, and is slow because it finds these. Apart
        # from its values, these lengths take no space, and Snappy soon skips what it cannot compress.
        return "DELTA_LENGTH_BYTE_ARRAY", codec
    return usual, "none" if size > _PAYS * _measure_encoded_bytes(tried, usual, "none") else codec


def _is_integer(kind: pa.DataType) -> bool:
    """Check whether Parquet stores the type as integers."""
    if pat.is_decimal128(kind):
        return bool(kind.precision <= _MOST_DIGITS_OF_INTEGERS)
    return bool(pat.is_integer(kind) or pat.is_temporal(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in (pat.is_string, pat.is_binary, pat.is_large_string, pat.is_large_binary))


def _measure_encoded_bytes(values: Any, name: str, codec: str) -> int:
    """Return the size of the values' pages, without a dictionary, which more values would share."""
    table, into = pa.table({"x": values}), pa.BufferOutputStream()
    with pq.ParquetWriter(
        into,
        table.schema,
        compression=codec,
        use_dictionary=name == "RLE_DICTIONARY",
        column_encoding=None if name in ("PLAIN", "RLE_DICTIONARY") else name,
        store_decimal_as_integer=True,
        store_schema=False,
        write_statistics=False,
    ) as writer:
        writer.write_table(table)
    column = pq.ParquetFile(pa.BufferReader(into.getvalue())).metadata.row_group(0).column(0)
    shared = column.data_page_offset - column.dictionary_page_offset if column.has_dictionary_page else 0
    return int(column.total_compressed_size - shared)


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
    row_group_bytes: int = 128 * MIB
    page_bytes: int = MIB
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
def _allow_nulls_in_structs(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which every field below a nullable struct is nullable too.

    If a struct is null, Spark passes nulls even for its NOT NULL fields, and pyarrow would reject these nulls.
    """
    return pa.schema([field.with_type(_allow_nulls_in_type(field.type, field.nullable)) for field in schema])


def _allow_nulls_in_type(kind: pa.DataType, nullable: bool) -> pa.DataType:
    def allow_nulls_in_child(field: pa.Field) -> pa.Field:
        nulls = field.nullable or (nullable and pat.is_struct(kind))
        return pa.field(field.name, _allow_nulls_in_type(field.type, nulls), nulls)

    return transform_child_fields(kind, allow_nulls_in_child)


class _ParquetWriter:
    def __init__(self, sink: ByteSink, schema: pa.Schema, options: ParquetOptions) -> None:
        self._plain = _allow_nulls_in_structs(plain_schema(schema))
        self._spark_json = arrow_schema_to_json(schema)
        self._options = options
        self._buffer = BatchBuffer(self._plain)
        self._stream = output_stream(sink)
        self._writer: Any = None

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes

    def write(self, batch: pa.RecordBatch) -> None:
        batch = to_plain_batch(batch, self._plain)
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
            self._writer = self._open_writer(table)
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)

    def _open_writer(self, sample: pa.Table) -> Any:
        options = self._options
        chosen = choose_encodings(sample, options.compression, options.dictionary)
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
    return SparkTypedParquetFile(source).schema


def _read_batches(
    source: BinaryIO, wanted: ReadRequest, options: ParquetOptions, groups: Sequence[int] | None
) -> Iterator[Any]:
    return SparkTypedParquetFile(source).batches(wanted, groups)


def _plan_splits(source: BinaryIO, options: ParquetOptions, split_bytes: int) -> list[list[int] | None]:
    metadata = SparkTypedParquetFile(source).metadata
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


PARQUET: FileFormat[ParquetOptions] = FileFormat(
    name="parquet",
    default_options=ParquetOptions(),
    parsers={
        "compression": ("compression", make_choice_parser(_CODECS)),
        "codec": ("compression", make_choice_parser(_CODECS)),
        "compressionlevel": ("compression_level", make_number_parser(1, 22)),
        "parquet.block.size": ("row_group_bytes", make_number_parser(64 * 1024, 2**31)),
        "parquet.page.size": ("page_bytes", make_number_parser(4 * 1024, 2**30)),
        "parquet.enable.dictionary": ("dictionary", as_boolean),
        "rowgrouprows": ("row_group_rows", make_number_parser(1, 2**31)),
    },
    holds=BASE | NESTED | BEYOND | {"null", "binary", "interval", "time", "variant"},
    reasons={"time of nanoseconds": NANOSECONDS},
    magic=b"PAR1",
    void_becomes_any=False,  # it is stored as integers, which Spark cannot read as most other types
    extension=lambda options: f"{_INFIX[options.compression]}.parquet",
    check_schema=lambda schema: check_columns_supported(PARQUET, schema),
    open_writer=_ParquetWriter,
    read_schema=_read_schema,
    read=_read_batches,
    plan_splits=_plan_splits,
)
