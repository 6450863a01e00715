"""Read Parquet files of stock Spark and of other programs, and compare with `spark.read`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import holdfast
from holdfast.formats.parquet import PARQUET
from holdfast.formats.schema_json import SPARK_SCHEMA_KEY, arrow_schema_to_json
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

READERS = ["native", "python"]
ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]
# First and last years with four digits, years BC, around the calendar switch, 1900 and today; unusual ones.
MICROS = [
    -99_999_999_999_000_000,
    -62_135_596_800_000_000,
    -58_999_999_999_999_993,
    -30_000_000_000_123_456,
    -12_219_292_800_000_001,
    -12_219_292_800_000_000,
    -12_219_200_000_000_000,
    -2_717_640_000_000_000,
    -2_208_988_800_000_001,
    -1_500_000_000_000_000,
    -1,
    0,
    1_000_000_001_000_001,
    253_402_300_799_999_999,
]
COLUMNS = [
    "m AS id",
    "ts",
    "day",
    "struct(ts AS a, array(day) AS b) AS s",
    "array(ts, null) AS l",
    "map('k', ts) AS p",
    "CAST(null AS timestamp) AS gap",
]
PROBE = [
    "id", "unix_micros(ts)", "unix_date(day)", "unix_micros(s.a)", "unix_date(s.b[0])", "unix_micros(l[0])",
    "l[1] IS NULL", "unix_micros(p['k'])", "gap",
]  # fmt: skip


_KEPT = ("spark.sql.session.timeZone", "spark.sql.parquet.enableVectorizedReader")


@pytest.fixture(autouse=True)
def settings(spark: SparkSession) -> Iterator[None]:
    """Restore the settings after each test."""
    before = {key: spark.conf.get(key) for key in _KEPT}
    yield
    for key, value in before.items():
        spark.conf.set(key, str(value))
    for name in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite", "outputTimestampType", "writeLegacyFormat"):
        spark.conf.unset(f"spark.sql.parquet.{name}")


def _frame(spark: SparkSession) -> DataFrame:
    rows = ", ".join(f"({micros}L)" for micros in MICROS)
    days = "date_from_unix_date(CAST(floor(m / 86400000000) AS int)) AS day"
    return spark.sql(f"SELECT m, timestamp_micros(m) AS ts, {days} FROM VALUES {rows} AS t(m)").selectExpr(*COLUMNS)


def _write(spark: SparkSession, target: Path, zone: str, calendar: str, kind: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", calendar)
    spark.conf.set("spark.sql.parquet.int96RebaseModeInWrite", calendar)
    spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
    _frame(spark).coalesce(1).write.mode("append").parquet(str(target))


def _same(spark: SparkSession, target: Path, probe: list[str] | None = None) -> None:
    stock, ours = spark.read.parquet(str(target)), holdfast.read(spark, str(target))
    assert ours.schema == stock.schema
    assert _rows(ours, probe) == _rows(stock, probe)


def _rows(frame: DataFrame, probe: list[str] | None) -> list[Any]:
    # As JSON, not as Python's values: those end at the years 1 and 9999.
    text = f"to_json(struct({', '.join(probe) if probe else '*'}), map('ignoreNullFields', 'false')) AS text"
    return sorted(row.text for row in frame.selectExpr(text).collect())


@pytest.mark.parametrize("reading", variants(ZONES))
def test_instants_and_dates_are_spark_s_own(spark: SparkSession, tmp_path: Path, reading: str) -> None:
    """One table mixes files of three types and is read in another zone; old values of the old calendar are refused."""
    for kind in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"):
        _write(spark, tmp_path / "t", "America/Los_Angeles", "CORRECTED", kind)
    spark.conf.set("spark.sql.session.timeZone", reading)
    _same(spark, tmp_path / "t", PROBE)
    _write(spark, tmp_path / "t", "Europe/Amsterdam", "LEGACY", "INT96")
    with pytest.raises(Exception, match="in Spark's old calendar are read by Spark only"):
        holdfast.read(spark, str(tmp_path / "t")).collect()


@pytest.mark.slow
def test_an_append_to_spark_s_own_files_keeps_them_readable(spark: SparkSession, tmp_path: Path) -> None:
    _write(spark, tmp_path / "t", "America/New_York", "CORRECTED", "INT96")
    holdfast.write(_frame(spark), str(tmp_path / "t"))
    assert holdfast.read(spark, str(tmp_path / "t")).count() == 2 * len(MICROS)
    _same(spark, tmp_path / "t", PROBE)


@pytest.mark.slow
def test_conditions_on_int96_of_the_old_calendar_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    _write(spark, tmp_path / "t", "America/New_York", "LEGACY", "INT96")
    with pytest.raises(Exception, match="in Spark's old calendar are read by Spark only"):
        holdfast.read(spark, str(tmp_path / "t"), filters=[("day", "<", "1500-01-01")]).collect()


@pytest.mark.slow
def test_spark_s_older_layout_of_lists_maps_and_decimals(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    frame = spark.sql(
        "SELECT array(1, 2) AS a, array(CAST(null AS int)) AS b, map('k', array(struct(1 AS q))) AS m, "
        "CAST(1.5 AS decimal(9,2)) AS d, CAST(-2.5 AS decimal(18,2)) AS e, CAST(2.5 AS decimal(30,2)) AS f"
    )
    frame.write.parquet(str(tmp_path / "t"))
    _same(spark, tmp_path / "t")


_LAYOUTS = {
    "two levels": "optional group x (LIST) { repeated int32 element; }",
    "a group called array": "optional group x (LIST) { repeated group array { optional int32 a; } }",
    "bag": "optional group x (LIST) { repeated group bag { optional int32 array_element; } }",
    "repeated": "repeated int32 x;",
    "map": "optional group x (MAP_KEY_VALUE) { repeated group map { required binary k (UTF8); optional int32 v; } }",
    "words": "optional binary x (ENUM); optional binary y (JSON); optional binary z (BSON);",
    "integers": "optional int32 x (INT_8); optional int32 y (UINT_8); optional int32 z (UINT_32);",
    "decimals": "optional int32 x (DECIMAL(7,2)); optional binary y (DECIMAL(20,3));",
}


def _fill(group: Any, layout: str, binary: Any) -> None:
    if layout == "repeated":
        group.append("x", 1).append("x", 2)
    elif layout == "two levels":
        group.addGroup("x").append("element", 1).append("element", 2)
    elif layout == "a group called array":
        group.addGroup("x").addGroup("array").append("a", 1)
    elif layout == "bag":
        group.addGroup("x").addGroup("bag").append("array_element", 1)
    elif layout == "map":
        group.addGroup("x").addGroup("map").append("k", "key").append("v", 1)
    elif layout == "words":
        group.append("x", "A").append("y", "{}").append("z", binary.fromConstantByteArray(b"\x05\x00"))
    elif layout == "integers":
        group.append("x", -1).append("y", 200).append("z", -1)
    else:
        group.append("x", -150).append("y", binary.fromConstantByteArray(b"\xff\x00"))


@pytest.mark.slow
def test_layouts_of_older_writers(spark: SparkSession, tmp_path: Path) -> None:
    """parquet-java's example writer accepts any schema."""
    java: Any = spark.sparkContext._jvm
    for layout, columns in _LAYOUTS.items():
        target = tmp_path / layout.replace(" ", "-")
        schema = java.org.apache.parquet.schema.MessageTypeParser.parseMessageType(f"message m {{ {columns} }}")
        path = java.org.apache.hadoop.fs.Path(str(target / "part-0.parquet"))
        writer = java.org.apache.parquet.hadoop.example.ExampleParquetWriter.builder(path).withType(schema).build()
        groups = java.org.apache.parquet.example.data.simple.SimpleGroupFactory(schema)
        full = groups.newGroup()
        _fill(full, layout, java.org.apache.parquet.io.api.Binary)
        writer.write(full)
        writer.write(groups.newGroup())
        writer.close()
        _same(spark, target)


def test_types_of_arrow_s_writers(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table(
        {
            "u8": pa.array([255, None], pa.uint8()),
            "u64": pa.array([2**64 - 1, None], pa.uint64()),
            "words": pa.array(["a", None], pa.large_string()),
            "category": pa.array(["a", None]).dictionary_encode(),
            "gap": pa.array([5, None], pa.duration("us")),
            "nothing": pa.nulls(2),
            "ms": pa.array([-1, None], pa.timestamp("ms", "Europe/Berlin")),
            "local": pa.array([-1, None], pa.timestamp("us")),
            "fixed": pa.array([b"ab", None], pa.binary(2)),
        }
    )
    (tmp_path / "t").mkdir()
    pq.write_table(table, tmp_path / "t" / "part-0.parquet")
    _same(spark, tmp_path / "t")


@pytest.mark.slow
def test_nan_is_found_by_conditions_of_spark_s(spark: SparkSession, tmp_path: Path) -> None:
    """NaN is Spark's largest number, and Spark's reader relies on statistics alone where a file has them."""
    rows = spark.sql(
        "SELECT CAST(a AS double) AS x, CAST(a AS float) AS y, struct(CAST(a AS double) AS z) AS s "
        "FROM VALUES ('5.0'), ('NaN'), ('1.0') AS t(a)"
    ).coalesce(1)
    holdfast.write(rows, str(tmp_path))
    frames = [spark.read.parquet(str(tmp_path)), *(holdfast.read(spark, str(tmp_path), reader=r) for r in READERS)]
    for condition in ["x > 6", "y >= 6", "s.z > 6", "x = double('NaN')", "NOT (x <= 5)", "x > 1", "x != 5"]:
        expected = rows.filter(condition).count()
        assert [frame.filter(condition).count() for frame in frames] == [expected] * 3, condition


def _encoded_columns() -> pa.RecordBatch:
    """Return one column for each type that is encoded by trial; the last values are unlike the first."""
    rows = 3000
    noise = [number * 0x9E3779B97F4A7C15 % 2**63 for number in range(rows)]

    def whole(kind: pa.DataType, bits: int) -> Any:
        values = [None if row % 7 == 3 else value % 2 ** (bits - 2) // 50 for row, value in enumerate(noise)]
        return pa.array([*values[:-2], 2 ** (bits - 1) - 1, -(2 ** (bits - 1))], kind)

    ends = {digits: Decimal(10**digits - 1).scaleb(-2) for digits in (9, 10, 18)}
    prices = {digits: [Decimal(value % 10**7).scaleb(-2) for value in noise[:-2]] for digits in ends}
    return pa.record_batch(
        {
            "id": pa.array(range(rows)),
            "i8": whole(pa.int8(), 8),
            "i16": whole(pa.int16(), 16),
            "i32": whole(pa.int32(), 32),
            "i64": pa.array([*(value % 10**9 for value in noise[:-2]), 2**63 - 1, -(2**63)]),
            "day": pa.array([value % 40_000 for value in noise], pa.int32()).cast(pa.date32()),
            "at": pa.array([10**15 + value % 10**9 for value in noise], pa.timestamp("us", "UTC")),
            "local": pa.array([10**15 + value % 10**9 for value in noise], pa.timestamp("us")),
            "gap": pa.array([value % 10**9 for value in noise], pa.duration("us")),
            **{f"d{n}": pa.array([*prices[n], end, -end], pa.decimal128(n, 2)) for n, end in ends.items()},
            "digest": pa.array([hashlib.md5(str(number).encode()).hexdigest() for number in range(rows)]),
            "bytes": pa.array([hashlib.md5(str(number).encode()).digest() for number in range(rows)]),
            "list": pa.array([[value % 10**6] * (row % 3) for row, value in enumerate(noise)]),
            "pair": pa.array([None if value % 9 == 0 else {"x": value % 10**6} for value in noise]),
            "map": pa.array([[(value % 10**6, value % 10**5)] for value in noise], pa.map_(pa.int64(), pa.int32())),
        }
    )


def test_every_reader_finds_the_values_in_every_encoding(spark: SparkSession, tmp_path: Path) -> None:
    batch = _encoded_columns()
    with open(tmp_path / "ours.parquet", "wb") as file:
        writer = PARQUET.open_writer(file, batch.schema, PARQUET.default_options)
        writer.write(batch)
        writer.close()
    group = pq.ParquetFile(tmp_path / "ours.parquet").metadata.row_group(0)
    names = {(one := group.column(i)).path_in_schema: one.encodings for i in range(group.num_columns)}
    assert {"id", "i32", "i64", "day", "at", "local", "gap", "d9", "d10", "d18", "pair.x"} <= {
        path for path, found in names.items() if "DELTA_BINARY_PACKED" in found
    }
    assert {path for path, found in names.items() if "DELTA_LENGTH_BYTE_ARRAY" in found} == {"digest", "bytes"}
    plain = pa.Table.from_batches([batch])
    notes = {SPARK_SCHEMA_KEY: arrow_schema_to_json(batch.schema)}
    pq.write_table(plain.replace_schema_metadata(notes), tmp_path / "plain.parquet", use_dictionary=False)
    for vectorized in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        ours, expected = (spark.read.parquet(str(tmp_path / f"{name}.parquet")) for name in ("ours", "plain"))
        assert ours.schema == expected.schema
        assert _rows(ours, None) == _rows(expected, None)
        few = "id % 5 = 1 AND i32 > 1000 AND d10 < 90000 AND digest > '8'"  # skips values
        assert 0 < ours.filter(few).count() == expected.filter(few).count()
    found = [duckdb.read_parquet(str(tmp_path / f"{name}.parquet")).fetchall() for name in ("ours", "plain")]
    assert found[0] == found[1]
    assert pl.read_parquet(tmp_path / "ours.parquet").equals(pl.read_parquet(tmp_path / "plain.parquet"))


def test_rows_are_counted_without_reading_columns(spark: SparkSession, tmp_path: Path) -> None:
    holdfast.write(spark.range(100_000), str(tmp_path / "t"))
    assert spark.read.schema(StructType([])).format("holdfast").load(str(tmp_path / "t")).count() == 100_000
