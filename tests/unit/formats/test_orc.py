"""Test ORC round trips: nested nulls in slices, values that pyarrow alone would change, and rejected values."""

from __future__ import annotations

import datetime
import io
import random
import resource
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc as pa_orc

from holdfast.errors import CorruptDataError, HoldfastError, InvalidRequestError, UnsupportedError
from holdfast.formats import get_format
from holdfast.formats.columns.conversion import convert_batch, plain_schema
from holdfast.formats.orc_tail import decompress_chunks, make_uncompressed_chunks
from tests.unit.formats.nested_batches import random_batches
from tests.unit.formats.test_round_trip import read, write

ORC = get_format("orc")
INNER = pa.struct([pa.field("b", pa.int64())])
CODECS = ["none", "snappy", "zlib", "zstd"]
UTC = datetime.timezone.utc
INSTANT = pa.timestamp("us", "UTC")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)


def rows(schema: pa.Schema, batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return pa.Table.from_batches(batches, schema).to_pylist()


# --- nested columns ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, {"b": 1}, None, {"b": None}, {"b": 5}], INNER).slice(1),
        pa.array([{"a": None}, {"a": {"b": 7}}], pa.struct([("a", INNER)])),
        pa.array([{"a": [None]}, {"a": [{"b": 41}, {"b": 34}]}], pa.struct([("a", pa.list_(INNER))])),
        pa.array([[("k", {"b": 1})], None, [("k", None), ("l", {"b": 2})]], pa.map_(pa.string(), INNER)).slice(1),
        pa.array([None, {"b": 2}], pa.struct([pa.field("b", pa.timestamp("us"), nullable=False)])),
        pa.array([[{"b": 1}, None], [None, {"b": 4}]], pa.list_(INNER, 2)).slice(1),
        pa.array([None, None], INNER),
    ],
)
def test_nested_nulls_reach_the_file(column: Any) -> None:
    """Checked with pyarrow's own reader: only its writer handles these incorrectly."""
    batch = pa.record_batch({"x": column})
    data = write(ORC, [batch], batch.schema)
    stored = pa_orc.ORCFile(io.BytesIO(data)).read().cast(nullable(plain_schema(batch.schema)))
    assert stored.to_pylist() == batch.to_pylist()
    assert read(ORC, data, plain_schema(batch.schema)).to_pylist() == batch.to_pylist()


def nullable(schema: pa.Schema) -> pa.Schema:
    def of(field: pa.Field) -> pa.Field:
        kind = field.type
        return pa.field(field.name, pa.struct([of(one) for one in kind]) if pa.types.is_struct(kind) else kind)

    return pa.schema([of(field) for field in schema])


@pytest.mark.parametrize("name", ["orc", "parquet", "arrow", "avro", "json"])
@pytest.mark.parametrize("seed", range(25))
def test_any_nesting_round_trips(name: str, seed: int) -> None:
    batches, schema = random_batches(random.Random(seed), exchange=name in ("avro", "json"))
    data = write(get_format(name), batches, schema)
    assert read(get_format(name), data, plain_schema(schema)).to_pylist() == rows(schema, batches)


# --- instants and dates -----------------------------------------------------------------------------------------------
def instants() -> list[datetime.datetime | None]:
    """Return values that ORC supports, even in years outside the range of nanoseconds."""
    first, last = datetime.datetime(1900, 1, 1, tzinfo=UTC), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
    micros = [-5_000_000, -4_000_000, -1_000_000, 0, 1, 999_999, 1_000_001]
    return [first, None, last, *(EPOCH + datetime.timedelta(microseconds=one) for one in micros)]


def old_and_nested() -> pa.RecordBatch:
    values = instants()
    count = len(values)
    point = pa.struct([("at", INSTANT), ("days", pa.list_(pa.date32()))])
    days = [datetime.date(9999, 12, 31), None, datetime.date(1969, 12, 31), datetime.date(1582, 10, 15)]
    return pa.record_batch(
        {
            "id": pa.array(range(count), pa.int64()),
            "at": pa.array(values, INSTANT),
            "local": pa.array([one and one.replace(tzinfo=None) for one in values], pa.timestamp("us")),
            "list": pa.array([None if i == 3 else values[: i % 4] for i in range(count)], pa.list_(INSTANT)),
            "map": pa.array(
                [[(i, None if i % 3 else {"at": one, "days": days[: i % 5]})] for i, one in enumerate(values)],
                pa.map_(pa.int32(), point),
            ),
            "day": pa.array([days[i % 4] for i in range(count)]),
        }
    )


@pytest.mark.parametrize("codec", CODECS)
def test_instants_and_dates_of_any_year_round_trip(codec: str) -> None:
    batch = old_and_nested()
    options = ORC.parse_options({"compression": codec}).options
    data = write(ORC, [batch, batch.slice(2, 5)], batch.schema, options)
    assert ORC.read_schema(io.BytesIO(data), options).types == plain_schema(batch.schema).types
    assert read(ORC, data, batch.schema).to_pylist() == rows(batch.schema, [batch, batch.slice(2, 5)])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([datetime.datetime(1899, 12, 31, 23, 59, 59, tzinfo=UTC)], INSTANT),
        ([EPOCH - datetime.timedelta(microseconds=1)], INSTANT),
        ([EPOCH - datetime.timedelta(microseconds=4_999_999)], INSTANT),
        ([datetime.date(1582, 10, 14)], pa.date32()),
        ([[datetime.date(1, 1, 1)]], pa.list_(pa.date32())),
        ([[("k", {"at": datetime.datetime(1, 1, 1, tzinfo=UTC)})]], pa.map_(pa.string(), pa.struct([("at", INSTANT)]))),
    ],
)
def test_what_would_change_is_refused(values: list[Any], kind: pa.DataType) -> None:
    batch = pa.record_batch({"x": pa.array([None, *values], kind)})
    with pytest.raises(InvalidRequestError, match=r"ORC cannot store .*: use parquet"):
        write(ORC, [batch], batch.schema)


def test_values_below_null_are_not_looked_at() -> None:
    """Arrays may contain any values below null."""
    days = pa.array([datetime.date(1582, 10, 10), datetime.date(2026, 1, 1)])
    column = pa.StructArray.from_arrays([days], ["day"], mask=pa.array([True, False]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), days, mask=pa.array([True, False]))
    batch = pa.record_batch({"struct": column, "list": lists})
    assert read(ORC, write(ORC, [batch], batch.schema), batch.schema).to_pylist() == batch.to_pylist()


def test_only_the_columns_wanted_are_rebuilt() -> None:
    batch = old_and_nested()
    data = write(ORC, [batch], batch.schema)
    for names in (["id"], ["map", "id"], ["day"], []):
        got = read(ORC, data, batch.schema, names)
        assert got.to_pylist() == batch.select(names).to_pylist()


def test_files_of_pyarrow_are_read_as_spark_reads_them() -> None:
    """Instants may lack a zone, nanoseconds are truncated to microseconds, and old dates, which are Julian, refused."""
    at = pa.array([1_600_000_000_123_456_789, None], pa.timestamp("ns"))
    days = pa.array([datetime.date(1582, 10, 15), datetime.date(2026, 1, 1)])
    old = pa.array([None, datetime.date(1582, 10, 14)])
    table = pa.table({"at": at, "day": days, "old": old})
    sink = io.BytesIO()
    pa_orc.write_table(table, sink)
    schema = ORC.read_schema(io.BytesIO(sink.getvalue()), ORC.default_options)
    assert schema.types == [INSTANT, pa.date32(), pa.date32()]
    with pytest.raises(UnsupportedError, match="old calendar"):
        read(ORC, sink.getvalue(), schema)
    got = read(ORC, sink.getvalue(), schema, ["at", "day"])
    assert got["at"].cast(pa.int64()).to_pylist() == [1_600_000_000_123_456, None]
    assert got["day"].to_pylist() == days.to_pylist()


def test_types_that_orc_lacks_carry_sparks_name() -> None:
    times = pa.array([datetime.time(1, 2, 3, 4), None], pa.time64("us"))
    lists = pa.array([[datetime.time(23)], []], pa.list_(pa.time64("us")))
    batch = pa.record_batch({"t": times, "l": lists, "a.b": [1, 2]})
    data = write(ORC, [batch], batch.schema)
    schema = ORC.read_schema(io.BytesIO(data), ORC.default_options)
    assert schema.types == batch.schema.types
    assert read(ORC, data, schema).to_pylist() == batch.to_pylist()
    assert read(ORC, data, schema, ["a.b"]).to_pylist() == [{"a.b": 1}, {"a.b": 2}]
    stored = pa_orc.ORCFile(io.BytesIO(data))
    assert stored.schema.field("t").metadata == {b"spark.sql.catalyst.type": b"time(6)"}
    assert stored.read()["t"].to_pylist() == [3_723_000_004_000, None]


@pytest.mark.parametrize("name", ["interval year to month", "interval year", "interval month"])
def test_year_month_intervals_are_not_taken_for_numbers(name: str) -> None:
    months = pa.field("item", pa.int32(), metadata={"spark.sql.catalyst.type": name})
    schema = pa.schema([pa.field("x", pa.list_(months))])
    sink = io.BytesIO()
    pa_orc.write_table(pa.table({"x": [[14]]}, schema), sink)
    with pytest.raises(UnsupportedError, match="year-month intervals"):
        ORC.read_schema(io.BytesIO(sink.getvalue()), ORC.default_options)


# --- damage -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_named(codec: str) -> None:
    batch = old_and_nested()
    options = ORC.parse_options({"compression": codec}).options
    data = write(ORC, [batch] * 50, batch.schema, options)
    rng = random.Random(codec)
    for _ in range(60):
        where = rng.randrange(len(data) // 2, len(data))
        damaged = data[:where] + bytes([data[where] ^ 1 << rng.randrange(8)]) + data[where + 1 :]
        try:
            read(ORC, damaged, batch.schema)  # flipping some bits only changes a value: ORC has no checksums
        except HoldfastError:
            continue
    for end in (0, 1, 3, 20, len(data) // 2, len(data) - 1):
        with pytest.raises(CorruptDataError, match="not an ORC file"):
            ORC.read_schema(io.BytesIO(data[:end]), options)


def test_original_chunks_are_read_back() -> None:
    data = bytes(range(256)) * 40
    for compression in (0, 1, 5):
        assert decompress_chunks(make_uncompressed_chunks(data, compression, 1000), compression) == data


# --- names of fields --------------------------------------------------------------------------------------------------
def test_fields_of_another_case_are_found_below_null() -> None:
    """Arrays may have nulls in NOT NULL fields below null. Arrow itself does not rename such fields."""
    point = pa.field("element", pa.struct([pa.field("A", pa.int32())]), nullable=False)
    pairs = pa.array([[{"A": 1}, {"A": 2}], None], pa.list_(point, 2)).cast(pa.list_(point))
    lower = pa.schema([("x", pa.list_(pa.struct([("a", pa.int64())])))])
    got = convert_batch(pa.record_batch({"x": pairs}), lower)
    assert got["x"].to_pylist() == [[{"a": 1}, {"a": 2}], None]


def test_nulls_below_a_sliced_struct_keep_their_length() -> None:
    """pyarrow 26 casts such a slice to an invalid array."""
    inner = pa.struct([("v", pa.null())])
    given = pa.struct([pa.field("s", inner, nullable=False)])
    batch = pa.record_batch({"c": pa.array([None if row % 2 else {"s": {"v": None}} for row in range(10)], given)})
    wanted = pa.schema([("c", pa.struct([("s", inner)]))])
    for start in range(10):
        got = convert_batch(batch.slice(start, 4), wanted)
        got.validate(full=True)
        assert got.to_pylist() == batch.slice(start, 4).to_pylist()


def test_columns_without_names_of_old_hive_are_refused() -> None:
    sink = io.BytesIO()
    pa_orc.write_table(pa.table({"_col0": pa.array([1], pa.int32()), "_col1": ["x"]}), sink)
    orc = get_format("orc")

    def found(schema: pa.Schema, *columns: str) -> list[dict[str, Any]]:
        batches = orc.read_batches(sink, schema, columns, None, orc.default_options, None)
        return [row for batch in batches for row in batch.to_pylist()]

    assert found(orc.read_schema(sink, orc.default_options), "_col1") == [{"_col1": "x"}]
    assert found(pa.schema([])) == [{}]
    with pytest.raises(UnsupportedError, match=r"lacks the names of its columns: read it with spark\.read\.orc"):
        found(pa.schema([("id", pa.int64()), ("name", pa.string())]), "name")


def test_many_wide_files_need_the_memory_of_one() -> None:
    """pyarrow's encoder and decoder free what they took, but into a heap that would grow by 0.1 GB with each file."""
    orc = get_format("orc")
    batch = pa.record_batch({f"column{index}": pa.array(["a", None, "c"]) for index in range(500)})

    def write_and_read() -> float:
        sink = io.BytesIO()
        writer = orc.open_writer(sink, batch.schema, orc.default_options)
        writer.write(batch)
        writer.close()
        found = list(orc.read_batches(sink, batch.schema, batch.schema.names, None, orc.default_options, None))
        assert found == [batch]
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

    first_mb = write_and_read()
    assert max(write_and_read() - first_mb for _ in range(6)) < 100
