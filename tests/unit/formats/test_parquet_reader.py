"""Test Parquet files of other writers: stock Spark's types, instants and calendars.

The expected schemas and values are those that stock Spark 4.3 reads from the same files.
tests/integration/test_spark_parquet.py checks them with Spark, also for files that only Spark writes.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import json
import math
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError, UnsupportedError
from holdfast.formats import RowFilter
from holdfast.formats.parquet import PARQUET, ParquetOptions
from tests.unit.formats.test_parquet import write

INSTANT = pa.timestamp("us", "UTC")


def written(table: pa.Table, notes: dict[str, str] | None = None, **options: Any) -> io.BytesIO:
    sink = io.BytesIO()
    rows = options.pop("row_group_size", None)
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, rows)
        writer.add_key_value_metadata(notes or {})
    sink.seek(0)
    return sink


def read(
    source: io.BytesIO, schema: pa.Schema | None = None, columns: Sequence[str] = ("x",), only: RowFilter | None = None
) -> pa.Table:
    schema = schema or PARQUET.read_schema(source, ParquetOptions())
    batches = PARQUET.read_batches(source, schema, columns, only, ParquetOptions(), None)
    return pa.Table.from_batches(list(batches), pa.schema([schema.field(name) for name in columns]))


def micros(array: Any) -> list[int | None]:
    found: list[int | None] = array.cast(pa.int64()).to_pylist()
    return found


# --- INT96 ------------------------------------------------------------------------------------------------------------
FAR = [-62_135_596_800_000_000, -1, 0, None, 253_402_300_799_999_999]  # 0001-01-01 to 9999-12-31


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_int96_is_an_instant_wherever_it_is(zone: str | None) -> None:
    kind = pa.timestamp("us", zone)
    table = pa.table(
        {
            "x": pa.array(FAR, kind),
            "s": pa.array([{"a": value} if value != 0 else None for value in FAR], pa.struct([("a", kind)])),
            "l": pa.array([[value, 7] if value != 0 else None for value in FAR], pa.list_(kind)),
            "m": pa.array([[("k", value)] if value != 0 else None for value in FAR], pa.map_(pa.string(), kind)),
        }
    )
    source = written(table, use_deprecated_int96_timestamps=True)
    schema = PARQUET.read_schema(source, ParquetOptions())
    assert schema.field("x").type == INSTANT
    assert schema.field("s").type.field("a").type == INSTANT
    assert schema.field("l").type.value_type == INSTANT
    assert schema.field("m").type.item_type == INSTANT
    found = read(source, schema, ["l", "m", "s", "x"])
    assert found.column("x").combine_chunks().cast(pa.int64()).to_pylist() == FAR
    plain = pa.schema(
        [("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int64())), ("s", pa.struct([("a", pa.int64())]))]
    )
    numbers = [found.column(field.name).combine_chunks().cast(field.type).to_pylist() for field in plain]
    others = [value for value in FAR if value != 0]
    assert [one for one in numbers[0] if one is not None] == [[value, 7] for value in others]
    assert [one for one in numbers[1] if one is not None] == [[("k", value)] for value in others]
    assert [one for one in numbers[2] if one is not None] == [{"a": value} for value in others]
    assert [one[2] for one in numbers] == [None] * 3


def test_int96_keeps_microseconds_of_nanoseconds_as_spark_does() -> None:
    source = written(pa.table({"x": pa.array([-1, 1, 1999], pa.timestamp("ns"))}), use_deprecated_int96_timestamps=True)
    assert micros(read(source)["x"].combine_chunks()) == [-1, 0, 1]


def test_int96_and_int64_of_one_table_are_the_same_instants() -> None:
    table = pa.table({"x": pa.array(FAR, INSTANT)})
    kept = pa.schema([("x", INSTANT)])
    assert read(written(table, use_deprecated_int96_timestamps=True), kept).equals(read(written(table), kept))


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("values", "size"),
    [([5.0, 5.0, 5.0, math.nan, 1.0, 2.0], 2), ([5.0, 5.0, None, 5.0, None, math.nan, 1.0, 2.0, None], 3)],
    ids=["without nulls", "with nulls"],
)
def test_nan_is_found_where_statistics_know_of_one_value_only(
    kind: pa.DataType, values: list[float | None], size: int
) -> None:
    source = written(pa.table({"x": pa.array(values, kind)}), row_group_size=size)
    found = read(source, only=RowFilter(pc.field("x") != 5.0, frozenset(["x"])))
    assert str(found["x"].to_pylist()) == "[nan, 1.0, 2.0]"
    pushed = (pc.field("x") > 6.0) | pc.is_nan(pc.field("x"))
    assert str(read(source, only=RowFilter(pushed, frozenset(["x"])))["x"].to_pylist()) == "[nan]"
    assert read(source, only=RowFilter(pc.field("x") < 2.0, frozenset(["x"])))["x"].to_pylist() == [1.0]


def test_statistics_of_another_calendar_or_of_int96_rule_nothing_out() -> None:
    only = RowFilter(pc.field("x") > pa.scalar(datetime.datetime(2026, 1, 1), INSTANT), frozenset({"x"}))
    old = written(pa.table({"x": COLUMNS["instant"]}), OLD)
    with pytest.raises(UnsupportedError, match="old calendar"):
        read(old, only=only)
    table = pa.table({"x": pa.array([1_800_000_000_000_000], INSTANT)})
    assert read(written(table, NOTES, use_deprecated_int96_timestamps=True), only=only).num_rows == 1


# --- calendars --------------------------------------------------------------------------------------------------------
NOTES = {"org.apache.spark.version": "4.3.0"}
OLD = {**NOTES, "org.apache.spark.legacyDateTime": ""}
EARLY = pa.array([-141_428], pa.int32()).cast(pa.date32())  # the last Julian day
COLUMNS = {
    "day": EARLY,
    "instant": pa.array([-2_208_988_800_000_001], INSTANT),
    "nested": pa.StructArray.from_arrays([pa.MapArray.from_arrays([0, 1], ["k"], EARLY)], ["m"]),
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    ("notes", "is_old"),
    [
        ({}, False),  # no metadata says that Spark wrote it: Spark takes the values as they are
        (NOTES, False),
        (OLD, True),
        ({**NOTES, "org.apache.spark.legacyINT96": ""}, True),
        ({"org.apache.spark.version": "2.4.8"}, True),
        ({"org.apache.spark.version": "3.1.0"}, False),
    ],
)
def test_values_that_the_old_calendar_changes_are_refused(notes: dict[str, str], is_old: bool, column: str) -> None:
    source = written(pa.table({"x": COLUMNS[column], "y": [1]}), notes)
    assert read(source, columns=["y"])["y"].to_pylist() == [1]
    if is_old:
        with pytest.raises(UnsupportedError, match=r"Spark's old calendar are read by Spark only.*column='x"):
            read(source)
    else:
        assert read(source)["x"].combine_chunks().cast(COLUMNS[column].type).equals(COLUMNS[column])


def test_later_values_and_local_times_of_the_old_calendar_are_read() -> None:
    table = pa.table(
        {
            "day": pa.array([-141_427, None], pa.int32()).cast(pa.date32()),
            "instant": pa.array([-2_208_988_800_000_000, None], INSTANT),
            "local": pa.array([-12_300_000_000_000_000, None], pa.timestamp("us")),
        }
    )
    assert read(written(table, OLD), columns=table.schema.names).equals(table)


# --- types ------------------------------------------------------------------------------------------------------------
def column(values: Sequence[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"x": pa.array(values, kind)})


@pytest.mark.parametrize(
    ("table", "kind", "rows"),
    [
        (column([0, 255, None], pa.uint8()), pa.int16(), [0, 255, None]),
        (column([65535], pa.uint16()), pa.int32(), [65535]),
        (column([2**32 - 1], pa.uint32()), pa.int64(), [2**32 - 1]),
        (column([2**64 - 1, None], pa.uint64()), pa.decimal128(20, 0), [2**64 - 1, None]),
        (column(["a", None], pa.large_string()), pa.string(), ["a", None]),
        (column(["a", None], pa.string_view()), pa.string(), ["a", None]),
        (column([b"a", None], pa.large_binary()), pa.binary(), [b"a", None]),
        (column([b"ab", None], pa.binary(2)), pa.binary(), [b"ab", None]),
        (column(["a", None, "a"], pa.dictionary(pa.int8(), pa.string())), pa.string(), ["a", None, "a"]),
        (column([[1], [], None], pa.large_list(pa.int64())), pa.list_(pa.int64()), [[1], [], None]),
        (column([[1, 2], None], pa.list_(pa.int8(), 2)), pa.list_(pa.int8()), [[1, 2], None]),
        (column([5, None], pa.duration("us")), pa.int64(), [5, None]),
        (column([None, None], pa.null()), pa.int32(), [None, None]),
        (column(['{"a":1}', None], pa.json_()), pa.string(), ['{"a":1}', None]),
    ],
    ids=lambda value: str(value.schema.field(0).type) if isinstance(value, pa.Table) else "",
)
def test_a_type_of_arrow_s_is_what_spark_makes_of_it(table: pa.Table, kind: pa.DataType, rows: list[Any]) -> None:
    found = read(written(table))
    field = found.schema.field("x")
    assert field.type == kind or (pa.types.is_list(kind) and field.type.value_type == kind.value_type)
    found.validate(full=True)
    assert found["x"].to_pylist() == rows


@pytest.mark.parametrize("lists", [pa.list_, pa.large_list, lambda kind: pa.list_(kind, 2)])
@pytest.mark.parametrize("start", [0, 1])
def test_fields_in_lists_are_found_regardless_of_case(lists: Any, start: int) -> None:
    rows = [[{"Name": "a"}, None], [{"Name": None}, {"Name": "b"}], None]
    table = pa.table({"x": pa.array(rows, lists(pa.struct({"Name": pa.string()})))})
    source = written(table.slice(start))
    found = read(source, pa.schema([("x", pa.list_(pa.struct({"name": pa.string(), "other": pa.int32()})))]))
    expected = [[{"name": "a", "other": None}, None], [{"name": n, "other": None} for n in (None, "b")], None]
    assert found["x"].to_pylist() == expected[start:]


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array([0.1]), pa.float32()),
        (pa.array([1.5]), pa.decimal128(10, 0)),
        (pa.array([1.0]), pa.string()),
        (pa.array([decimal.Decimal("12345678901234567890.123")]), pa.float64()),
        (pa.array([2]), pa.bool_()),
        (pa.array([1.0]), pa.bool_()),
        (pa.array([datetime.datetime(2020, 1, 1, 12)]), pa.date32()),
        (pa.array([datetime.datetime(2020, 1, 1, 12)]), pa.time64("us")),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_type_that_would_change_values_is_refused(stored: Any, wanted: pa.DataType, nested: bool) -> None:
    """Spark rejects these types as well. Arrow would round, truncate or reinterpret them."""
    if nested:
        stored = pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 1], stored)], ["l"])
        wanted = pa.struct({"l": pa.list_(wanted)})
    with pytest.raises(InvalidRequestError, match="does not fit the column's type"):
        read(written(pa.table({"x": stored})), pa.schema([("x", wanted)]))


def test_intervals_are_known_by_what_spark_notes() -> None:
    def noted(kind: str) -> dict[str, str]:
        fields = [{"name": "x", "type": kind, "nullable": True, "metadata": {}}]
        return {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}

    days = written(column([86_400_000_000, None], pa.int64()), noted("interval day"))
    assert read(days)["x"].to_pylist() == [datetime.timedelta(days=1), None]
    years = written(column([12], pa.int32()), noted("interval year to month"))
    assert PARQUET.read_schema(years, ParquetOptions()).field("x").type == pa.month_day_nano_interval()
    with pytest.raises(UnsupportedError, match="leave it out"):
        read(years)


def test_a_note_in_another_notation_is_no_obstacle() -> None:
    notes = {"org.apache.spark.sql.parquet.row.metadata": "StructType(List(StructField(x,LongType,true)))"}
    assert read(written(column([1, None], pa.int64()), notes))["x"].to_pylist() == [1, None]


# --- rows without columns ---------------------------------------------------------------------------------------------
class CountedReads(io.BytesIO):
    """A file that counts the bytes that are read."""

    asked = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.asked += len(data)
        return data


def test_rows_without_columns_are_counted_in_the_footer() -> None:
    noise = [number * 0x9E3779B97F4A7C15 % 2**63 for number in range(200_000)]
    data = written(column(noise, pa.int64()), use_dictionary=False, compression="none").getvalue()
    source = CountedReads(data)
    batches = list(PARQUET.read_batches(source, pa.schema([("x", pa.int64())]), [], None, ParquetOptions(), None))
    assert sum(batch.num_rows for batch in batches) == 200_000
    assert all(batch.num_columns == 0 for batch in batches)
    assert source.asked < len(data) / 10


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
