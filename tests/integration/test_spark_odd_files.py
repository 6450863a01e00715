"""Read directories with empty files, links and markers: Holdfast returns the same rows as stock Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.errors import InvalidRequestError
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

FORMATS = ("parquet", "orc", "text")


def found(df: DataFrame) -> tuple[str, list[tuple[Any, ...]]]:
    return df.schema.simpleString(), sorted(tuple(row) for row in df.collect())


def written(spark: SparkSession, path: Path, name: str, *values: str) -> Path:
    """Write one file with stock Spark and return its path."""
    frame = spark.createDataFrame([(value,) for value in values], "value string").coalesce(1)
    frame.write.format(name).save(str(path))
    return next(path.glob("part-*"))


@pytest.mark.parametrize("name", variants(FORMATS))
def test_empty_files(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = tmp_path / "t"
    file = written(spark, table / "m=1", name, "a", "b")
    for empty in (f"m=1/aaa{file.suffix}", f"m=1/zzz{file.suffix}", f"aaa{file.suffix}", "m=1_$folder$"):
        (table / empty).touch()
    stock = found(spark.read.format(name).load(str(table)))
    assert stock == ("struct<value:string,m:int>", [("a", 1), ("b", 1)])
    assert found(holdfast.read(spark, str(table), file_format=name)) == stock
    (table / "m=x").mkdir()
    (table / f"m=x/aaa{file.suffix}").touch()
    stock = found(spark.read.format(name).load(str(table)))
    assert stock == ("struct<value:string,m:string>", [("a", "1"), ("b", "1")])
    assert found(holdfast.read(spark, str(table), file_format=name)) == stock


@pytest.mark.parametrize("name", variants(["parquet", "text"]))
def test_nothing_but_empty_files(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / "a").touch()
    stock = spark.read.format(name)
    if name == "text":
        assert found(holdfast.read(spark, str(tmp_path), file_format=name)) == found(stock.load(str(tmp_path)))
        return
    with pytest.raises(AnalysisException, match="UNABLE_TO_INFER_SCHEMA"):
        stock.load(str(tmp_path))
    with pytest.raises(InvalidRequestError, match="every file is empty"):
        holdfast.read(spark, str(tmp_path), file_format=name)


def test_links(spark: SparkSession, tmp_path: Path) -> None:
    """Files, and the whole table, may be links; broken links and pipes are no data; a partition may be none."""
    table, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
    written(spark, table / "m=1", "parquet", "a")
    moved = written(spark, elsewhere, "parquet", "b")
    (table / "m=3").mkdir()
    (table / "m=3/linked.parquet").symlink_to(moved)
    (table / "m=3/nowhere.parquet").symlink_to(tmp_path / "nowhere")
    os.mkfifo(table / "m=3/pipe")
    link = tmp_path / "link"
    link.symlink_to(table)
    expected = ("struct<value:string,m:int>", [("a", 1), ("b", 3)])
    assert found(spark.read.parquet(str(link))) == expected
    assert found(holdfast.read(spark, str(link), file_format="parquet")) == expected

    new = spark.createDataFrame([("n", 3)], "value string, m int")
    holdfast.write(new, str(link), partition_by=["m"], mode="overwrite")
    assert found(spark.read.parquet(str(table))) == (expected[0], [("n", 3)])
    assert moved.exists()
    with pytest.raises(InvalidRequestError, match="lies inside another one"):
        holdfast.write(new, str(link / "m=1"))

    (table / "m=2").symlink_to(elsewhere)
    with pytest.raises(InvalidRequestError, match="is a symbolic link, which Holdfast does not follow"):
        holdfast.read(spark, str(link))
