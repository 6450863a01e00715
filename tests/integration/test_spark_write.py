"""Write through real Spark: save modes, layout, rejected requests, and what plain readers see."""

from __future__ import annotations

import datetime
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.errors import DestinationExistsError, InvalidRequestError
from holdfast.spark.source import HoldfastDataSource
from tests.integration.spark_session import assert_clean, visible
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

CANARY = "canary-5f2c"


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 100, 1, 2).selectExpr("id", "cast(id % 3 as int) as k", "concat('v', id) as v")


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.collect())


# --- save modes -------------------------------------------------------------------------------------------------------
def test_the_plain_data_source_works_without_registration(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    if " " in sys.executable:
        pytest.skip("Spark looks for Python sources only with an interpreter whose path has no space")
    target = str(tmp_path / "t")
    rows.write.format("holdfast").mode("append").save(target)
    rows.write.format("holdfast").mode("append").save(target)
    assert ids(spark.read.parquet(target)) == sorted([*range(100)] * 2)
    assert ids(spark.read.format("holdfast").load(target)) == sorted([*range(100)] * 2)
    assert_clean(target)


def test_spark_warns_of_no_format_that_is_registered_again(
    spark: SparkSession, rows: DataFrame, tmp_path: Path
) -> None:
    assert spark._jvm is not None
    logging = spark._jvm.org.apache.logging.log4j
    heard = spark._jvm.java.io.StringWriter()
    layout = logging.core.layout.PatternLayout.createDefaultLayout()
    appender = logging.core.appender.WriterAppender.createAppender(layout, None, heard, "heard", False, True)
    appender.start()
    logger = logging.LogManager.getLogger("org.apache.spark.sql.execution.datasources.DataSourceManager")
    logger.addAppender(appender)
    logger.setLevel(logging.Level.WARN)
    try:
        holdfast.write(rows, str(tmp_path / "t"))
        holdfast.read(spark, str(tmp_path / "t"))
        assert heard.toString() == ""
        spark.dataSource.register(HoldfastDataSource)
        assert "replaced" in heard.toString()  # what is heard above if a call registers a format again
    finally:
        logger.removeAppender(appender)
        logger.setLevel(logging.Level.OFF)


def test_overwrite_replaces_everything(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    holdfast.write(rows, target, partition_by="k")
    result = holdfast.write(rows.filter("id < 7"), target, mode="overwrite")
    assert (result.rows, result.finished) == (7, True)
    assert ids(spark.read.parquet(target)) == [*range(7)]
    assert len(visible(target)) == result.files
    assert_clean(target)


@pytest.mark.parametrize("how", variants(["mode", "option"]))
def test_dynamic_overwrite_replaces_the_partitions_written(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, how: str
) -> None:
    target = str(tmp_path / "t")
    holdfast.write(rows, target, partition_by="k")
    part = rows.filter("k = 1 and id < 10")
    if how == "mode":
        holdfast.write(part, target, mode="overwrite-partitions", partition_by=["k"])
    else:
        writer = part.write.format("holdfast").mode("overwrite").option("partitionBy", "k")
        writer.option("partitionOverwriteMode", "dynamic").save(target)
    assert ids(spark.read.parquet(target)) == [i for i in range(100) if i % 3 != 1 or i < 10]
    assert_clean(target)


def test_fail_and_ignore_leave_data_alone(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    assert holdfast.write(rows, target, mode="fail").rows == 100
    before = visible(target)
    for mode in ("fail", "error", "errorifexists"):
        with pytest.raises(DestinationExistsError, match="choose mode append or overwrite"):
            holdfast.write(rows, target, mode=mode)
    assert holdfast.write(rows, target, mode="ignore").job is None
    rows.write.format("holdfast").mode("append").option("ifExists", "ignore").save(target)
    assert visible(target) == before
    assert holdfast.write(rows, str(tmp_path / "new"), mode="ignore").rows == 100
    assert_clean(target)


@pytest.mark.slow
def test_another_layout_is_not_mixed_in(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    holdfast.write(rows, target, partition_by="K")  # names are matched as Spark matches them
    holdfast.write(rows, target, partition_by="k")
    refused = [
        ({}, "other partition columns"),
        ({"partition_by": "v"}, "other partition columns"),
        ({"partition_by": "k", "file_format": "orc"}, "another file format"),
    ]
    for options, sentence in refused:
        with pytest.raises(InvalidRequestError, match=sentence):
            holdfast.write(rows, target, **options)
    assert holdfast.read(spark, target).count() == 200
    holdfast.write(rows, target, mode="overwrite", file_format="orc")
    assert holdfast.read(spark, target).count() == 100
    assert_clean(target)


# --- layout -----------------------------------------------------------------------------------------------------------
ODD = ["a b", "100%", "a+b", "ünïcode-✈", "a=b", "a:b", "a#b", "what?", "a%20b"]


@pytest.mark.parametrize("name", variants(ODD, "a:b", "a%20b"))
def test_odd_characters_in_the_destination(spark: SparkSession, rows: DataFrame, tmp_path: Path, name: str) -> None:
    """facts: faults 90."""
    target = tmp_path / name / "t"
    holdfast.write(rows, str(target), partition_by="k")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert ids(holdfast.read(spark, str(target))) == [*range(100)]
    assert_clean(target)


ODD_VALUES = ["a b", "100%", "a+b", "é✈", "a=b", "a:b", "a#b", "a?b", "a/b", "..", "%20", None, "x" * 200, "'\"{}"]


def test_odd_partition_values_are_read_back_by_spark_and_by_us(spark: SparkSession, tmp_path: Path) -> None:
    """facts: faults 92 and 93."""
    target = str(tmp_path / "t")
    df = spark.createDataFrame(list(enumerate(ODD_VALUES)), "id long, v string")
    holdfast.write(df, target, partition_by="v")
    expected = list(enumerate(ODD_VALUES))
    for found in (spark.read.parquet(target), holdfast.read(spark, target)):
        assert sorted((row["id"], row["v"]) for row in found.collect()) == expected
    assert_clean(target)


@pytest.mark.slow
def test_partition_values_of_other_types(spark: SparkSession, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    values = [
        (1, True, Decimal("1.50"), datetime.date(2026, 2, 3), "ü/"),
        (2, *[None] * 4),
    ]
    df = spark.createDataFrame(values, "id long, b boolean, n decimal(5,2), d date, t string")
    holdfast.write(df, target, partition_by=["b", "n", "d", "t"])
    found = holdfast.read(spark, target)
    assert found.schema == df.schema
    assert sorted(found.collect()) == sorted(df.collect())
    stock = str(tmp_path / "stock")
    df.write.partitionBy("b", "n", "d", "t").parquet(stock)
    assert {str(Path(path).parent) for path in visible(target)} == {str(Path(path).parent) for path in visible(stock)}


def test_an_empty_frame_keeps_its_schema(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """facts: faults 21."""
    target = str(tmp_path / "t")
    result = holdfast.write(rows.filter("id < 0"), target)
    assert (result.rows, result.files) == (0, 1)
    assert spark.read.parquet(target).schema.names == ["id", "k", "v"]
    partitioned = str(tmp_path / "p")
    assert holdfast.write(rows.filter("id < 0"), partitioned, partition_by="k").files == 0
    again = holdfast.read(spark, partitioned)
    assert again.schema.names == ["id", "k", "v"]
    assert again.collect() == []


def test_tasks_without_rows_write_no_file(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    assert holdfast.write(rows.filter("id >= 50"), str(tmp_path / "t")).files == 2  # task 0 keeps the schema
    assert holdfast.write(rows.filter("id < 50"), str(tmp_path / "u")).files == 1


def test_limits_of_files(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    target = tmp_path / "t"
    sorted_rows = rows.repartition("k").sortWithinPartitions("k")
    result = holdfast.write(sorted_rows, str(target), partition_by=["k"], max_records_per_file=10)
    counts = [pq.ParquetFile(target / path).metadata.num_rows for path in visible(target)]
    assert (sum(counts), max(counts)) == (100, 10)
    assert len(counts) == result.files == 4 + 4 + 4  # 34, 33 and 33 rows


def test_the_report_and_the_result_agree(rows: DataFrame, tmp_path: Path) -> None:
    result = holdfast.write(rows, str(tmp_path / "t"))
    report = json.loads((tmp_path / "t" / "_SUCCESS").read_text())
    sizes = sum((tmp_path / "t" / path).stat().st_size for path in visible(tmp_path / "t"))
    assert report["jobId"] == result.job
    assert (report["metrics"]["rows"], report["metrics"]["bytes"]) == (result.rows, result.bytes) == (100, sizes)


def test_a_name_with_a_comma_and_backticks(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, "x"), (2, "y")], ["id", "a,`b"])
    holdfast.write(df, str(tmp_path / "t"), partition_by="a,`b")
    assert sorted(holdfast.read(spark, str(tmp_path / "t")).collect()) == [(1, "x"), (2, "y")]


# --- refusals ---------------------------------------------------------------------------------------------------------
WRONG: list[tuple[str, dict[str, str], str]] = [
    ("append", {"fileFromat": "csv"}, "unknown option: did you mean fileFormat"),
    ("append", {"fileFormat": "parquett"}, "did you mean parquet"),
    ("append", {"partitionBy": "kk"}, "no such column to partition by: did you mean k"),
    ("append", {"partitionBy": "id,k,v"}, "partitioning by every column leaves no data"),
    ("append", {"maxRecordsPerFile": "many"}, "not a whole number"),
    ("append", {"targetFileSize": "12parsecs"}, "write bytes, or a number with k, m or g"),
    ("append", {"compression": "rar"}, "no such choice"),
    ("append", {"committer": "three_phase"}, "did you mean two_phase"),
    ("overwrite", {"ifExists": "fail"}, "ifExists contradicts mode overwrite"),
    ("overwrite", {"partitionOverwriteMode": "dynamic"}, "name them in partitionBy"),
    ("append", {"path": "memory://x"}, "memory:// exists in one process only"),
    ("append", {"path": "s4://bucket/key"}, "no store has this url scheme: use s3"),
    ("append", {"accessKey": CANARY}, "an access key and a secret key go together"),
    ("append", {"fileFormat": "text"}, ""),
]


@pytest.mark.parametrize(("mode", "options", "sentence"), WRONG)
def test_a_wrong_request_is_refused_in_one_sentence(
    rows: DataFrame, tmp_path: Path, mode: str, options: dict[str, str], sentence: str
) -> None:
    """facts: faults 95: before any task runs, with nothing written to the destination."""
    target = tmp_path / "t"
    with pytest.raises(PySparkException) as caught:
        rows.write.format("holdfast").mode(mode).options(**{"path": str(target), **options}).save()
    message = str(caught.value)
    assert sentence in message
    assert len(message.strip().splitlines()) == 2  # ours, and Spark's SQLSTATE
    assert CANARY not in message
    assert not target.exists()


def test_holdfast_write_raises_our_own_errors(rows: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="no such column to partition by"):
        holdfast.write(rows, str(tmp_path / "t"), partition_by="kk")
    with pytest.raises(InvalidRequestError, match="no such mode"):
        holdfast.write(rows, str(tmp_path / "t"), mode="upsert")


def test_the_destination_may_not_be_a_file(rows: DataFrame, tmp_path: Path) -> None:
    """facts: faults 91."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidRequestError, match="the destination is a file"):
        holdfast.write(rows, str(tmp_path / "file"))
    with pytest.raises(holdfast.HoldfastError):
        holdfast.write(rows, str(tmp_path / "file" / "below"))


def test_save_as_table_needs_a_path(spark: SparkSession, rows: DataFrame) -> None:
    with pytest.raises(PySparkException, match="no destination was given"):
        rows.write.format("holdfast").mode("append").saveAsTable("t")


# --- paths ----------------------------------------------------------------------------------------------------------
def test_a_relative_path_is_the_callers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's own processes keep the directory in which Spark was started."""
    holdfast.write(spark.range(1), str(tmp_path / "before"))  # the data source's process runs already
    monkeypatch.chdir(tmp_path)
    assert holdfast.write(spark.range(3).coalesce(1), "x").url == str(tmp_path / "x")
    assert len(visible(str(tmp_path / "x"))) == 1
    for reader in ("native", "python"):
        assert ids(holdfast.read(spark, "x", reader=reader)) == [0, 1, 2]
    assert holdfast.count(spark, "x", reader="python") == 3


# --- secrets ----------------------------------------------------------------------------------------------------------
def test_credentials_show_nowhere(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """facts: faults 86."""
    target = tmp_path / "t"
    secrets: dict[str, Any] = {"access_key": CANARY, "secret_key": CANARY, "session_token": CANARY}
    holdfast.write(rows, str(target), **secrets)
    found = holdfast.read(spark, str(target), **secrets)
    found.explain(extended=True)
    with pytest.raises(holdfast.HoldfastError) as caught:
        holdfast.write(rows, str(target), mode="fail", **secrets)
    out, err = capfd.readouterr()
    assert CANARY not in out + err + str(caught.value) + repr(caught.value)
    assert all(CANARY not in path.read_text("latin-1") for path in target.rglob("*") if path.is_file())
