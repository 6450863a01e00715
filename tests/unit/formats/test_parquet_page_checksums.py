"""Every page has a checksum, and no damaged page is read as data."""

from __future__ import annotations

import contextlib
import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.errors import CorruptDataError
from holdfast.formats.parquet import PARQUET, ParquetOptions
from tests.unit.formats.test_parquet import write

_CHANCE = random.Random(7)
_ROWS = pa.record_batch(
    {
        "noise": pa.array([_CHANCE.random() for _ in range(5000)]),  # plain pages, not compressed
        "steps": pa.array(range(5000)),  # differences
        "carrier": pa.array([f"c{number % 7}" for number in range(5000)]),  # a dictionary
        "name": pa.array([f"name {_CHANCE.random()}" for _ in range(5000)]),
    }
)


def _read(data: bytes) -> pa.Table:
    source = io.BytesIO(data)
    batches = PARQUET.read_batches(source, _ROWS.schema, _ROWS.schema.names, None, ParquetOptions(), None)
    return pa.Table.from_batches(list(batches), _ROWS.schema)


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_a_damaged_page_is_never_read_as_data(compression: str) -> None:
    """A bit flips at the beginning, in the middle and at the end of the pages of each column."""
    data = write([_ROWS], compression=compression, page_bytes=8 * 1024)
    assert _read(data).to_batches()[0].equals(_ROWS)
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    for column in map(group.column, range(group.num_columns)):
        first = column.dictionary_page_offset or column.data_page_offset
        end = first + column.total_compressed_size
        for at in (first + 60, (first + end) // 2, end - 1):
            damaged = bytearray(data)
            damaged[at] ^= 1
            with contextlib.suppress(CorruptDataError):
                found = _read(bytes(damaged)).combine_chunks().to_batches()[0]
                assert found.equals(_ROWS), f"{column.path_in_schema}, {at - first}: it is more than the header"


def test_the_error_says_what_to_do() -> None:
    data = bytearray(write([_ROWS], compression="none"))
    column = pq.ParquetFile(io.BytesIO(bytes(data))).metadata.row_group(0).column(0)
    data[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    with pytest.raises(CorruptDataError, match="restore it from a backup"):
        _read(bytes(data))


def test_files_without_checksums_are_read() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches([_ROWS]), sink)
    assert _read(sink.getvalue()).to_batches()[0].equals(_ROWS)
