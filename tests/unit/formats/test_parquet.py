"""Test what is specific to Parquet: row groups, dictionaries, metadata for Spark, pruning."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from holdfast.formats import RowFilter, get_format
from holdfast.formats.parquet import PARQUET, ParquetOptions


class Sink:
    def __init__(self) -> None:
        self.data = bytearray()
        self.writes = 0

    def write(self, data: bytes | memoryview, /) -> int:
        self.data += data
        self.writes += 1
        return len(data)


def write(batches: list[pa.RecordBatch], **options: Any) -> bytes:
    sink = Sink()
    writer = PARQUET.open_writer(sink, batches[0].schema, dataclasses.replace(ParquetOptions(), **options))
    for batch in batches:
        writer.write(batch)
    writer.close()
    return bytes(sink.data)


def metadata(data: bytes) -> Any:
    return pq.ParquetFile(io.BytesIO(data)).metadata


def test_row_groups_have_exactly_the_rows_asked_for() -> None:
    batch = pa.record_batch({"x": pa.array(range(70))})
    found = metadata(write([batch] * 3, row_group_rows=100))
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [100, 100, 10]


def test_wide_rows_end_a_row_group_early() -> None:
    batch = pa.record_batch({"x": pa.array(["x" * 1000] * 100)})
    found = metadata(write([batch] * 4, row_group_bytes=150_000))
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [200, 200]


def test_rows_wait_only_until_their_row_group_is_written() -> None:
    sink = Sink()
    batch = pa.record_batch({"x": pa.array(range(100))})
    writer = PARQUET.open_writer(sink, batch.schema, ParquetOptions(row_group_rows=250))
    waiting = []
    for _ in range(5):
        writer.write(batch)
        waiting.append(writer.buffered_bytes)
    assert waiting == [800, 1600, 400, 1200, 0]
    assert len(sink.data) > 0  # a row group was written before the end of the file
    writer.close()


def test_slivers_become_few_chunks_and_keep_their_order() -> None:
    """A partitioned task delivers a few rows at a time."""
    batches = [pa.record_batch({"x": pa.array([3 * i, 3 * i + 1, 3 * i + 2])}) for i in range(1000)]
    table = pq.read_table(io.BytesIO(write(batches)), use_threads=False, pre_buffer=False)
    assert table["x"].to_pylist() == list(range(3000))


def dictionary_columns(data: bytes) -> set[str]:
    group = metadata(data).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings}


def test_dictionaries_only_where_values_repeat() -> None:
    rows = 20_000
    names = pa.array([f"name {i % 500}" for i in range(rows)])
    batch = pa.record_batch(
        {
            "sequence": pa.array(range(rows)),
            "noise": pa.array([(i * 0.7310585) % 1 for i in range(rows)]),
            "name": names,
            "unique": pa.array([f"unique {i}" for i in range(rows)]),
            "day": pa.array([i % 700 for i in range(rows)], pa.int32()).cast(pa.date32()),
            "flag": pa.array([i % 2 == 0 for i in range(rows)]),
            "list": pa.array([[f"tag {i % 9}"] for i in range(rows)]),
            "map": pa.array([[(f"key {i % 9}", i)] for i in range(rows)], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array([{"a": i, "b": i % 7} for i in range(rows)]),
        }
    )
    assert dictionary_columns(write([batch])) == {
        "name",
        "day",
        "list.list.element",
        "map.key_value.key",
        "struct.b",
    }
    assert dictionary_columns(write([batch], dictionary=False)) == set()
    assert "sequence" in dictionary_columns(write([batch], dictionary=True))


def test_a_column_of_nulls_in_the_sample_is_no_obstacle() -> None:
    batch = pa.record_batch(
        {"x": pa.array([None] * 5000, pa.string()), "l": pa.array([None] * 5000, pa.list_(pa.int8()))}
    )
    assert pq.read_table(io.BytesIO(write([batch])), use_threads=False, pre_buffer=False).num_rows == 5000


def test_spark_finds_its_own_schema() -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("gap", pa.duration("us")),
            ("at", pa.timestamp("us", "Europe/Berlin")),
            ("m", pa.map_(pa.string(), pa.list_(pa.decimal128(9, 2)))),
            ("s", pa.struct([("void", pa.null())])),
        ]
    )
    sink = Sink()
    PARQUET.open_writer(sink, schema, ParquetOptions()).close()
    stored = json.loads(metadata(bytes(sink.data)).metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert [(field["name"], field["type"], field["nullable"]) for field in stored["fields"][:3]] == [
        ("id", "long", False),
        ("gap", "interval day to second", True),
        ("at", "timestamp", True),
    ]
    assert stored["fields"][3]["type"] == {
        "type": "map",
        "keyType": "string",
        "valueType": {"type": "array", "elementType": "decimal(9,2)", "containsNull": True},
        "valueContainsNull": True,
    }


def test_timestamps_are_microseconds_marked_with_or_without_zone() -> None:
    batch = pa.record_batch(
        {"at": pa.array([0], pa.timestamp("ms", "Asia/Tokyo")), "local": pa.array([0], pa.timestamp("s"))}
    )
    schema = pq.ParquetFile(io.BytesIO(write([batch]))).schema
    shown = [str(schema.column(i).logical_type) for i in range(2)]
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in shown[0]
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in shown[1]
    assert schema.column(0).physical_type == "INT64"


class CountedReads(io.BytesIO):
    """A file that counts the bytes that are read."""

    asked = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.asked += len(data)
        return data


def test_row_groups_that_a_filter_rules_out_are_not_read() -> None:
    scattered = [number * 7_919_797 % 1_000_003 * 1_000_003 for number in range(100_000)]
    batch = pa.record_batch({"x": pa.array(range(100_000)), "w": pa.array(scattered), "y": pa.array(range(100_000))})
    data = write([batch], row_group_rows=10_000)
    row_filter = RowFilter(pc.field("x") == 55_555, frozenset({"x"}))
    source = CountedReads(data)
    found = list(PARQUET.read_batches(source, batch.schema, ["y"], row_filter, ParquetOptions(), None))
    assert [row for one in found for row in one.to_pylist()] == [{"y": 55_555}]
    assert source.asked < len(data) / 3  # the footer twice, one row group
    missing = pa.schema([*batch.schema, ("z", pa.int64())])  # the file lacks the column, so there are no statistics
    by_missing = RowFilter(pc.field("z").is_null(), frozenset({"z"}))
    found = list(PARQUET.read_batches(io.BytesIO(data), missing, ["x"], by_missing, ParquetOptions(), None))
    assert sum(one.num_rows for one in found) == 100_000


def test_splits_cover_every_row_group_once() -> None:
    batch = pa.record_batch({"x": pa.array(range(10_000))})
    data = write([batch], row_group_rows=1000)
    splits = PARQUET.plan_splits(io.BytesIO(data), ParquetOptions(), 3 * len(data) // 10)
    assert len(splits) > 1
    assert [group for split in splits for group in split or ()] == list(range(10))
    rows = [
        row
        for split in splits
        for one in PARQUET.read_batches(io.BytesIO(data), batch.schema, ["x"], None, ParquetOptions(), split)
        for row in one["x"].to_pylist()
    ]
    assert rows == list(range(10_000))


@pytest.mark.parametrize("name", ["csv", "json", "text", "orc", "arrow", "avro"])
def test_other_formats_are_read_whole(name: str) -> None:
    assert list(get_format(name).plan_splits(io.BytesIO(), get_format(name).default_options, 1)) == [None]


def test_columns_are_encoded_as_their_first_values_suggest() -> None:
    """Numbers below a bound become packed differences, and noise is not compressed; later values may be of any kind."""
    rows = 20_000
    noise = [number * 0x9E3779B97F4A7C15 % 2**63 for number in range(rows)]
    below = [value % 10_000_000 for value in noise]
    digests = [hashlib.md5(str(number).encode()).hexdigest() for number in range(rows)]
    columns = {
        "id": pa.array(range(rows)),
        "down": pa.array(range(rows, 0, -1)),
        "noise": pa.array(noise),
        "real": pa.array([float(value) / 3 for value in noise]),
        "some": pa.array([None if value % 3 else value for value in range(rows)]),
        "jump": pa.array([*range(rows - 2), 2**63 - 1, -(2**63)]),
        "small": pa.array([*below[:-2], 2**31 - 1, -(2**31)], pa.int32()),
        "at": pa.array([10**15 + 250_000 * row + value for row, value in enumerate(below)], pa.timestamp("us", "UTC")),
        "gap": pa.array(below, pa.duration("us")),
        "day": pa.array([value // 4 for value in range(rows)], pa.int32()).cast(pa.date32()),
        "price": pa.array([Decimal(value).scaleb(-2) for value in below], pa.decimal128(10, 2)),
        "few": pa.array([Decimal(value % 5) for value in noise], pa.decimal128(9, 0)),
        "great": pa.array([Decimal(value) for value in noise], pa.decimal128(19, 0)),
        "digest": pa.array(digests),
        "word": pa.array([f"w{value % 7}" for value in range(rows)]),
        "text": pa.array([f"{value} words of some length" for value in noise]),
        "list": pa.array([[value, value + 1] for value in range(rows)]),
    }
    batch = pa.record_batch(columns)
    data = write([batch])
    file = pq.ParquetFile(io.BytesIO(data))
    found = encodings(file)
    differences = {path for path, (_, names, _) in found.items() if "DELTA_BINARY_PACKED" in names}
    assert differences == {"id", "down", "some", "jump", "small", "at", "gap", "day", "price", "list.list.element"}
    assert {found[path][2] for path in differences} == {"UNCOMPRESSED"}
    assert found["noise"][1:] == found["real"][1:] == ({"PLAIN", "RLE"}, "UNCOMPRESSED")
    assert found["digest"][1:] == ({"DELTA_LENGTH_BYTE_ARRAY", "RLE"}, "SNAPPY")
    assert found["text"][1:] == ({"PLAIN", "RLE"}, "SNAPPY")
    assert {path for path, (_, names, _) in found.items() if "RLE_DICTIONARY" in names} == {"few", "word"}
    assert [found[path][0] for path in ("few", "price", "great")] == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    assert file.read(use_threads=False).combine_chunks().to_batches()[0].equals(batch)
    assert write([batch.slice(0, 7000), batch.slice(7000)]) == data, "the rows alone decide"
    zstd = encodings(pq.ParquetFile(io.BytesIO(write([batch], compression="zstd"))))
    assert {codec for _, _, codec in zstd.values()} == {"ZSTD"}
    assert "DELTA_BINARY_PACKED" in zstd["price"][1]


def encodings(file: Any) -> dict[str, tuple[str, set[str], str]]:
    """Map the leaf columns to their physical type, encodings and codec."""
    group = file.metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    return {one.path_in_schema: (one.physical_type, set(one.encodings), one.compression) for one in columns}


def test_nulls_below_a_null_struct_are_no_values_of_a_field_without_nulls() -> None:
    """Spark passes such columns, for example VARIANT, but pyarrow rejects them."""
    kind = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("s", pa.struct([("y", pa.string())]), False)])
    below = [pa.array([1, None], pa.int32()), pa.array([{"y": "a"}, None], kind.field("s").type)]
    column = pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\x01")], children=below)
    data = write([pa.record_batch([column], pa.schema([("c", kind)]))])
    assert pq.read_table(io.BytesIO(data))["c"].to_pylist() == [{"x": 1, "s": {"y": "a"}}, None]


def test_floating_point_columns_have_no_statistics() -> None:
    """Arrow's statistics ignore NaN, the largest value in Spark, which would skip row groups that contain it."""
    fields = {"a": pa.float64(), "b": pa.int64()}
    nested = pa.struct({"s": pa.struct(fields), "l": pa.list_(pa.float32()), "m": pa.map_(pa.string(), pa.float64())})
    row = {"s": {"a": 1.0, "b": 1}, "l": [1.0], "m": [("k", 1.0)]}
    batch = pa.record_batch({"x": pa.array([1.0, math.nan]), "i": pa.array([1, 2]), "n": pa.array([row, row], nested)})
    group = metadata(write([batch])).row_group(0)
    found = {(one := group.column(i)).path_in_schema: one.is_stats_set for i in range(group.num_columns)}
    assert {path for path, there in found.items() if there} == {"i", "n.s.b", "n.m.key_value.key"}
    assert len(found) == 7
    assert metadata(write([batch.select(["x"])])).num_rows == 2  # no column is left to have any


def test_a_field_and_a_column_of_one_path_are_told_apart() -> None:
    """The writer takes its settings by path. A wrong path causes a raw error, or statistics that ignore NaN."""
    inner = pa.struct([("b", pa.float64())])
    ids = pa.array(range(5000), pa.int64())
    values = pa.array([{"b": math.nan if row == 7 else 1.0} for row in range(5000)], inner)
    batch = pa.record_batch({"a": values, "a.b": ids, "c": ids})
    group = metadata(write([batch])).row_group(0)
    assert [group.column(i).is_stats_set for i in range(group.num_columns)] == [False, False, True]
    assert pq.read_table(io.BytesIO(write([batch])))["a.b"].to_pylist() == ids.to_pylist()
