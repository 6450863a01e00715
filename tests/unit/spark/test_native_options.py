"""What is left to the Python reader, as far as that shows without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from holdfast.options.location import LocationOptions
from holdfast.options.read import ReadOptions
from holdfast.spark.file_format import FormatChoice
from holdfast.spark.native_options import limit_of_columns, limit_of_read

OPTIONS = ReadOptions(store=LocationOptions(url="/data/t"))


def session(version: str = "4.3.0", **settings: str) -> Any:
    """Spark with settings, two underscores for a dot."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return SimpleNamespace(version=version, conf=SimpleNamespace(get=lambda name, default="": named.get(name, default)))


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("orc", "spark__sql__caseSensitive", "TRUE"),
        ("parquet", "spark__sql__files__ignoredPathSegmentRegex", "^[.]"),
        ("parquet", "spark__sql__parquet__int96TimestampConversion", "true"),
        ("orc", "spark__sql__orc__impl", "hive"),
    ],
)
def test_settings_under_which_spark_reads_otherwise(name: str, setting: str, value: str) -> None:
    choice = FormatChoice(name)
    assert limit_of_read(session(), OPTIONS, choice) == ""
    assert f"{setting.replace('__', '.')}=" in limit_of_read(session(**{setting: value}), OPTIONS, choice)


@pytest.mark.parametrize("name", ["csv", "json", "text", "avro", "arrow"])
def test_text_and_what_stock_spark_does_not_know_are_read_here(name: str) -> None:
    assert "reads Parquet and ORC only" in limit_of_read(session(), OPTIONS, FormatChoice(name))


@pytest.mark.parametrize("name", ["", "x`y"])
@pytest.mark.parametrize("depth", range(5))
def test_names_that_spark_does_not_find_in_orc(name: str, depth: int) -> None:
    inner = StructType([StructField("a", LongType()), StructField(name, LongType())])
    kinds: list[DataType] = [inner, ArrayType(inner), MapType(LongType(), inner), MapType(inner, LongType())]
    schema = inner if depth == 0 else StructType([StructField("s", kinds[depth - 1])])
    assert "not find ORC columns" in limit_of_columns(session(), FormatChoice("orc"), schema)
    assert limit_of_columns(session(), FormatChoice("parquet"), schema) == ""


def test_timestamps_in_orc_need_a_spark_that_knows_the_type() -> None:
    instants = StructType([StructField("s", ArrayType(TimestampType()))])
    others = StructType([StructField("s", TimestampNTZType())])
    old = session(version="4.1.0")
    assert "Spark 4.1.0 cannot read timestamps in ORC" in limit_of_columns(old, FormatChoice("orc"), instants)
    assert limit_of_columns(old, FormatChoice("parquet"), instants) == ""
    assert limit_of_columns(old, FormatChoice("orc"), others) == ""
    assert limit_of_columns(session(), FormatChoice("orc"), instants) == ""


def test_field_ids_count_only_if_the_session_reads_by_them() -> None:
    field = StructField("x", LongType(), metadata={"parquet.field.id": 7})
    schema = StructType([StructField("s", ArrayType(StructType([field])))])
    by_ids = session(spark__sql__parquet__fieldId__read__enabled="true")
    assert "by ids" in limit_of_columns(by_ids, FormatChoice("parquet"), schema)
    assert limit_of_columns(session(), FormatChoice("parquet"), schema) == ""
    assert limit_of_columns(by_ids, FormatChoice("orc"), schema) == ""
