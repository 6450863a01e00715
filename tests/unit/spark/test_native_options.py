"""What is left to the Python reader, as far as that shows without Spark."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from holdfast.commit import VisibleFile
from holdfast.options.location import LocationOptions
from holdfast.options.read import ReadOptions
from holdfast.spark.file_format import FormatChoice
from holdfast.spark.native import directory_columns, misplaced
from holdfast.spark.native_options import limit_of_columns, limit_of_read, limit_of_zones

OPTIONS = ReadOptions(store=LocationOptions(url="/data/t"))


def session(version: str = "4.3.0", **settings: str) -> Any:
    """Spark with settings, two underscores for a dot."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return SimpleNamespace(version=version, conf=SimpleNamespace(get=lambda name, default="": named.get(name, default)))


def files(*paths: str) -> list[VisibleFile]:
    """Files with bytes, but for those called empty."""
    return [VisibleFile(path, 0 if path.endswith("empty") else 4) for path in paths]


@pytest.mark.parametrize(
    ("partition_by", "paths", "reason"),
    [
        ((), ["a", "b"], ""),
        ((), ["a", "p=1/empty", "x/empty"], ""),
        ((), ["a", "x/b"], "not partitions, such as x/b"),
        ((), ["a", "p=1/b"], "not partitions, such as p=1/b"),
        (("p",), ["p=1/a", "P=2/b", "empty"], ""),
        (("p",), ["p=1/deep/a"], ""),
        (("p",), ["p=1/a", "b"], "differ from the other files' partitions.*such as b"),
        (("p",), ["p=1/a", "q=1/b"], "differ from the other files' partitions.*such as q=1/b"),
        (("p",), ["p=1/a", "p=1/q=2/b"], "differ from the other files' partitions"),
        (("p", "q"), ["p=1/q=2/a", "q=2/p=1/b"], "differ from the other files' partitions"),
    ],
)
def test_files_that_spark_would_leave_out(partition_by: tuple[str, ...], paths: list[str], reason: str) -> None:
    found = misplaced(files(*paths), partition_by)
    assert re.search(reason, found) if reason else found == ""


def test_the_first_file_with_bytes_tells_the_partition_columns() -> None:
    assert directory_columns(files("q=1/empty", "p=1/r=2/a", "b")) == ("p", "r")
    assert directory_columns(files()) == ()


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("text", "spark__sql__caseSensitive", "TRUE"),
        ("text", "spark__sql__files__ignoredPathSegmentRegex", "^[.]"),
        ("parquet", "spark__sql__parquet__int96TimestampConversion", "true"),
        ("orc", "spark__sql__orc__impl", "hive"),
        ("json", "spark__sql__legacy__json__allowEmptyString__enabled", "true"),
        ("json", "spark__sql__legacy__timeParserPolicy", "legacy"),
    ],
)
def test_settings_under_which_spark_reads_otherwise(name: str, setting: str, value: str) -> None:
    choice = FormatChoice(name)
    assert limit_of_read(session(), OPTIONS, choice) == ""
    assert f"{setting.replace('__', '.')}=" in limit_of_read(session(**{setting: value}), OPTIONS, choice)


def test_spark_takes_one_zone_for_text_and_directories() -> None:
    assert "one zone" in limit_of_zones(FormatChoice("json"), "America/New_York", "Asia/Tokyo")
    assert limit_of_zones(FormatChoice("json"), "Asia/Tokyo", "Asia/Tokyo") == ""
    assert limit_of_zones(FormatChoice("json"), "", "Asia/Tokyo") == "", "no directory names a timestamp"
    assert limit_of_zones(FormatChoice("json"), "Asia/Tokyo", None) == "", "then the table's is that of text, too"
    assert limit_of_zones(FormatChoice("parquet"), "America/New_York", "Asia/Tokyo") == "", "its instants have a zone"


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


def test_maps_of_json_have_strings_for_keys() -> None:
    def limit(key: DataType, name: str = "json") -> str:
        kind = ArrayType(MapType(key, LongType()))
        schema = StructType([StructField("id", LongType()), StructField("m", kind)])
        return limit_of_columns(session(), FormatChoice(name), schema)

    assert "string keys" in limit(LongType())
    assert limit(StringType()) == limit(LongType(), "parquet") == ""


def test_field_ids_count_only_if_the_session_reads_by_them() -> None:
    field = StructField("x", LongType(), metadata={"parquet.field.id": 7})
    schema = StructType([StructField("s", ArrayType(StructType([field])))])
    by_ids = session(spark__sql__parquet__fieldId__read__enabled="true")
    assert "by ids" in limit_of_columns(by_ids, FormatChoice("parquet"), schema)
    assert limit_of_columns(session(), FormatChoice("parquet"), schema) == ""
    assert limit_of_columns(by_ids, FormatChoice("orc"), schema) == ""
