"""Exchange ORC files with stock Spark: each reads what the other wrote, in any time zone of the JVM."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast.errors import UnsupportedError
from holdfast.formats import get_format
from holdfast.formats.columns.conversion import plain_schema
from holdfast.table.writer import TableWriter, WriteSettings

pytest.importorskip("pyspark.sql")

from tests.integration.test_spark_formats import Directory, expected, rows_of
from tests.unit.formats.nested_batches import random_batches
from tests.unit.formats.test_orc import INSTANT, old_and_nested
from tests.unit.formats.test_round_trip import read, write

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

ORC = get_format("orc")


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """Set the time zone of the JVM: ORC uses it for reads and writes, not the session's."""
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(request.param))
    yield request.param
    zones.setDefault(before)


def test_old_instants_and_dates_of_holdfast(spark: Any, zone: str, tmp_path: Path) -> None:
    batch = old_and_nested()
    for codec in ("zstd", "none"):
        path = tmp_path / f"{codec}.orc"
        options = ORC.parse_options({"compression": codec}).options
        path.write_bytes(write(ORC, [batch, batch.slice(1, 9)], batch.schema, options))
        assert rows_of(spark.read.orc(str(path))) == expected(batch) + expected(batch.slice(1, 9))
    frame = spark.read.orc(str(path))
    assert frame.where("at = timestamp'1969-12-31 23:59:55Z'").count() == 1 + 1
    assert frame.where("at < timestamp'1900-01-02'").count() == 1


def test_rows_are_found_by_a_files_own_index(spark: Any, tmp_path: Path) -> None:
    """Spark skips groups of 10,000 rows and starts to read in the middle of a stripe."""
    micros = [-1_000_000 * i if i < 100 else 1_000_001 * i for i in range(35_000)]
    batch = pa.record_batch({"id": pa.array(range(35_000)), "at": pa.array(micros, INSTANT)})
    (tmp_path / "a.orc").write_bytes(write(ORC, [batch], batch.schema))
    frame = spark.read.orc(str(tmp_path))
    assert rows_of(frame.where("id between 23456 and 23458 or id = 34999")) == expected(
        pa.Table.from_batches([batch.slice(23456, 3), batch.slice(34999)]).combine_chunks().to_batches()[0]
    )
    assert frame.where("at < timestamp'1970-01-01 00:00:00Z'").count() == sum(one < 0 for one in micros)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 60), marks=pytest.mark.slow)])
def test_any_nesting_of_holdfast(spark: Any, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        batches, schema = random_batches(random.Random(seed))
        (tmp_path / f"{seed}.orc").write_bytes(write(ORC, batches, schema))
        table = pa.Table.from_batches(batches, schema)
        found = rows_of(spark.read.orc(str(tmp_path / f"{seed}.orc")))
        assert found == expected(table), seed


def test_structs_in_files_of_some_rows_each(spark: Any, tmp_path: Path) -> None:
    values = [None if i % 3 == 0 else {"y": None if i % 7 == 0 else i} for i in range(2000)]
    whole = [None if one is None else {"z": {"id": i}} for i, one in enumerate(values)]
    strict = pa.struct([pa.field("z", pa.struct([pa.field("id", pa.int64(), nullable=False)]), nullable=False)])
    batch = pa.record_batch(
        {
            "id": pa.array(range(2000)),
            "s": pa.array(values, pa.struct([("y", pa.int64())])),
            "strict": pa.array(whole, strict),
        }
    )
    writer = TableWriter(
        batch.schema, WriteSettings(file_format=ORC, max_records_per_file=500), Directory(tmp_path / "table")
    )
    writer.write(batch)
    assert writer.close().files == 4
    assert rows_of(spark.read.orc(str(tmp_path / "table")).orderBy("id")) == expected(batch)


def test_instants_and_dates_of_spark(spark: Any, zone: str, tmp_path: Path) -> None:
    """Spark's own reader is the measure: it loses the sign of the second before 1970."""
    texts = [
        "1900-01-01 00:00:00",
        "1960-01-01 00:00:00.123456",
        "1969-12-31 23:59:58.5",
        "1969-12-31 23:59:59.5",
        "1969-12-31 23:59:59.0005",
        "2026-11-01 05:30:00",
        "2026-11-01 06:30:00",
        "2300-01-01 00:00:00.000001",
        "9999-12-31 23:59:59.999999",
    ]
    path = str(tmp_path / "theirs")
    spark.createDataFrame(list(enumerate(texts)), "id int, text string").selectExpr(
        "id",
        "cast(text || 'Z' as timestamp) as at",
        "cast(text as timestamp_ntz) as local",
        "cast(substr(text, 1, 10) as date) as day",
        "map(id, named_struct('ats', array(null, cast(text || 'Z' as timestamp)), 'day', date'1582-10-15')) as deep",
        "if(id < 3, null, cast(text || 'Z' as timestamp)) as some",
    ).coalesce(1).write.orc(path)
    (file,) = Path(path).glob("*.orc")
    frame = spark.read.orc(path)
    with file.open("rb") as source:
        schema = ORC.read_schema(source, ORC.default_options)
    assert schema.types == plain_schema(frame.toArrow().schema).types
    assert [comparable_row(row) for row in read(ORC, file.read_bytes(), schema).to_pylist()] == rows_of(frame)
    assert read(ORC, file.read_bytes(), schema)["at"].to_pylist()[5] == datetime.datetime(
        2026, 11, 1, 5, 30, tzinfo=datetime.timezone.utc
    )


def comparable_row(row: dict[str, Any]) -> Any:
    from tests.integration.test_spark_formats import comparable

    return comparable(row)


@pytest.mark.parametrize("text", ["date'1582-10-04'", "array(timestamp'1899-12-31 23:00:00Z')"])
def test_what_spark_writes_in_the_old_calendar_is_refused(spark: Any, text: str, tmp_path: Path) -> None:
    spark.sql(f"select {text} as old").coalesce(1).write.orc(str(tmp_path / "t"))
    (file,) = (tmp_path / "t").glob("*.orc")
    schema = ORC.read_schema(file.open("rb"), ORC.default_options)
    with pytest.raises(UnsupportedError, match="old calendar"):
        read(ORC, file.read_bytes(), schema)
