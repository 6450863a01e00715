"""Choose how the columns of a Parquet file are encoded, by trying the encodings on its first values.

The choice depends only on the first row group. Columns whose later values are of another kind take more space than
necessary, but never lose a value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from holdfast.formats.columns.conversion import leaves

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
        name: Parquet's name of the encoding. All recent readers support the four of them; Spark's does since 3.3.
        codec: pyarrow's name of the codec.
        statistics: whether the file has the column's minimum and maximum.
    """

    name: str
    codec: str
    statistics: bool


def choose_encodings(table: pa.Table, codec: str, dictionary: bool | None) -> dict[str, Encoding]:
    """Map the path of each leaf column to its encoding, without columns that share their path with another one.

    The writer takes its settings by path, and the path of field ``b`` of column ``a`` equals that of a column ``a.b``.

    Args:
        table: the first rows.
        codec: the codec for what can be compressed. Pages that Snappy would hardly make smaller are not compressed; a
            user who chose a slower codec wants small files.
        dictionary: which columns use dictionary encoding: all (True), none (False), or those for which it pays (None).
    """
    sample = table.slice(0, _SAMPLE_ROWS).combine_chunks()
    found: list[tuple[str, Any]] = []
    for name in sample.column_names:
        column = sample.column(name)
        found += leaves(name, column.chunk(0) if column.num_chunks else pa.nulls(0, column.type))
    times = Counter(path for path, _ in found)
    encodings = {}
    for path, leaf in found:
        if times[path] == 1:
            name, used = ("RLE_DICTIONARY", codec) if dictionary else _choose(leaf.drop_null(), codec, dictionary)
            # Arrow ignores NaN in statistics, but to Spark NaN is the largest value, above their maximum.
            encodings[path] = Encoding(name, used, statistics=not pat.is_floating(leaf.type))
    return encodings


def _choose(values: Any, codec: str, dictionary: bool | None) -> tuple[str, str]:
    """Return the encoding of values without nulls, and its codec."""
    if pat.is_boolean(values.type) or pat.is_null(values.type):
        return "PLAIN", codec  # at most one bit per value already
    if len(values) < _TRUSTED_VALUES:  # too few values to decide or to matter
        return "PLAIN" if dictionary is False else "RLE_DICTIONARY", codec
    repeats = dictionary is None and pc.count_distinct(values).as_py() <= _MOST_DISTINCT * len(values)
    usual = "RLE_DICTIONARY" if repeats else "PLAIN"
    tried = values.slice(0, _TRIAL_VALUES)
    size = _trial_bytes(tried, usual, codec)
    # Ids, event times and numbers below a bound: their differences take few bits, and packing them takes less time than
    # compression, which finds next to nothing in them afterwards.
    steps_codec = "none" if codec == "snappy" else codec
    if _is_integer(values.type) and _trial_bytes(tried, "DELTA_BINARY_PACKED", steps_codec) <= _PAYS * size:
        return "DELTA_BINARY_PACKED", steps_codec
    if repeats or codec != "snappy" or size <= _BARELY_SMALLER * _trial_bytes(tried, usual, "none"):
        return usual, codec
    if _is_bytes(values.type):
        # Of random digests, Snappy only compresses the lengths between them, and is slow because it finds these. Apart
        # from its values, these lengths take no space, and Snappy soon skips what it cannot compress.
        return "DELTA_LENGTH_BYTE_ARRAY", codec
    return usual, "none" if size > _PAYS * _trial_bytes(tried, usual, "none") else codec


def _is_integer(kind: pa.DataType) -> bool:
    """Check whether Parquet stores the type as integers."""
    if pat.is_decimal128(kind):
        return bool(kind.precision <= _MOST_DIGITS_OF_INTEGERS)
    return bool(pat.is_integer(kind) or pat.is_temporal(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in (pat.is_string, pat.is_binary, pat.is_large_string, pat.is_large_binary))


def _trial_bytes(values: Any, name: str, codec: str) -> int:
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
