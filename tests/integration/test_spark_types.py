"""Exchange types that Parquet and Arrow lack with stock Spark, in both directions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark.sql")

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

COLUMNS = {
    "variant": """parse_json('{"a":1,"b":[1.5,"x",null]}')""",
    "variants": "array(parse_json('1'), null)",
    "variant_in_struct": "named_struct('x', 1, 'v', parse_json('[true]'))",
    "variant_in_map": "map('k', parse_json('{}'))",
    "collated": "'a' collate UNICODE_CI",
    "collated_in_array": "array('a' collate UTF8_LCASE)",
    "collated_in_struct": "named_struct('s', 'a' collate UTF8_LCASE, 'n', 1)",
    "days": "interval '-3' day",
    "hours": "interval '50:03:04.5' hour to second",
    "minutes": "array(interval 90 minute)",
    "time_3": "cast('12:34:56.123' as time(3))",
    "time_6": "cast('12:34:56.123456' as time(6))",
    "nothing": "null",
    "nothing_in_array": "array(null)",
    "nothing_in_struct": "named_struct('n', null, 'x', 1)",
    "nothing_in_map": "map('a', null)",
    "not_null_in_struct": "named_struct('s', named_struct('i', 1), 't', 'x')",
}


@pytest.fixture(scope="module")
def types(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")
    spark.conf.unset("spark.sql.variant.writeShredding.enabled")


def frame_of(spark: SparkSession) -> DataFrame:
    from pyspark.sql.functions import col

    columns = ", ".join(f"{text} as {name}" for name, text in COLUMNS.items())
    nulls = ", ".join("null" for _ in COLUMNS)
    frame = spark.sql(f"select 1 as id, {columns} union all select 2, {nulls}")
    noted = {"comment": "the number of the row", "k": [1, 2], "m": {"z": True}}
    return frame.withColumn("id", col("id").alias("id", metadata=noted))


def described(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the schema as Spark prints it, without nullability, because readers allow nulls everywhere."""
    found: list[dict[str, Any]] = without_nulls(json.loads(frame.schema.json())["fields"])
    return found


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        flags = ("nullable", "containsNull", "valueContainsNull")
        return {key: without_nulls(one) for key, one in value.items() if key not in flags}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def test_stock_spark_reads_every_type_back(types: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(types)
    holdfast.write(frame, str(tmp_path / "t"))
    for read in (
        types.read.parquet(str(tmp_path / "t")),
        holdfast.read(types, str(tmp_path / "t")),
        holdfast.read(types, str(tmp_path / "t"), reader="python"),
    ):
        assert described(read) == described(frame)
        assert rows(read) == rows(frame)
    assert types.read.parquet(str(tmp_path / "t")).where("collated = 'A' and variant:a::int = 1").count() == 1


def test_every_type_of_stock_spark_is_read(types: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(types)
    frame.coalesce(1).write.parquet(str(tmp_path / "t"))
    read = holdfast.read(types, str(tmp_path / "t"), reader="python")
    assert described(read) == described(frame)
    assert rows(read) == rows(frame)


def test_variant_that_stock_spark_shredded_is_refused(types: SparkSession, tmp_path: Path) -> None:
    types.conf.set("spark.sql.variant.writeShredding.enabled", "true")
    try:
        types.sql("select parse_json('{\"a\":1}') as v, 1 as id").write.parquet(str(tmp_path / "t"))
    finally:
        types.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    with pytest.raises(Exception, match="which only Spark can read"):
        holdfast.read(types, str(tmp_path / "t"), reader="python").collect()
    assert holdfast.read(types, str(tmp_path / "t"), reader="python", columns=["id"]).collect()[0].id == 1


@pytest.mark.slow
def test_user_defined_types_come_back(types: SparkSession, tmp_path: Path) -> None:
    from pyspark.ml.linalg import Vectors

    vectors = [(1, Vectors.dense([1.0, 2.0])), (2, Vectors.sparse(3, [1], [5.0])), (3, None)]
    frame = types.createDataFrame(vectors, ["id", "vector"])
    holdfast.write(frame, str(tmp_path / "t"))
    for read in (
        types.read.parquet(str(tmp_path / "t")),
        holdfast.read(types, str(tmp_path / "t"), reader="python"),
    ):
        assert described(read) == described(frame)
        assert rows(read) == rows(frame)


def test_char_and_varchar_come_back_padded_as_they_are(types: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "table"
    types.sql(f"create table chars (id int, c char(5), v varchar(7)) using parquet location '{place}'")
    try:
        types.sql("insert into chars values (1, 'ab', 'ab'), (2, null, 'abcdefg')")
        frame = types.table("chars")
        assert frame.collect()[0].c in ("ab   ", None)
        holdfast.write(frame, str(tmp_path / "t"))
        for read in (
            types.read.parquet(str(tmp_path / "t")),
            holdfast.read(types, str(tmp_path / "t"), reader="python"),
        ):
            assert read.dtypes == frame.dtypes
            assert not any(field.metadata for field in read.schema), "they are strings now, of any length"
            assert rows(read) == rows(frame)
    finally:
        types.sql("drop table chars")


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("interval 1 year", "PySpark cannot pass year-month intervals to Python"),
        ("array(interval '1-2' year to month)", "PySpark cannot pass year-month intervals to Python"),
        ("cast('12:34:56' as time(9))", "times are stored in microseconds: cast the column to time"),
        ("st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')", "spatial types are not supported yet"),
        ("named_struct('g', st_geogfromwkb(X'0101000000000000000000F03F0000000000000040'))", "spatial types"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    types: SparkSession, tmp_path: Path, column: str, sentence: str
) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        holdfast.write(types.sql(f"select 1 as id, {column} as c"), str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
