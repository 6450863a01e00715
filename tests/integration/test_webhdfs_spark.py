"""Stock Spark on the WebHDFS server: its own formats, committers, tables and streams."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.integration.served_namespace import ServedNamespace, serve_namespace
from tests.patience import PATIENCE_S
from tests.variants import variants

pytestmark = pytest.mark.spark

ROWS = 300


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNamespace]:
    with serve_namespace(tmp_path_factory.mktemp("served"), superuser=getpass.getuser()) as running:
        yield running


@pytest.fixture
def base(served: ServedNamespace, request: pytest.FixtureRequest) -> str:
    """The address of a directory of the test."""
    return f"{served.url}/{request.node.name.replace('[', '/').rstrip(']')}"


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    numbers = spark.range(0, ROWS, 1, 3)
    return numbers.select(
        "id", (F.col("id") % 3).alias("g"), F.concat(F.lit("é%"), F.col("id").cast("string")).alias("s")
    )


def _names(served: ServedNamespace, url: str) -> list[str]:
    """List the paths of all files below an address, relative to it."""
    top = url.removeprefix(served.url)
    with served.open() as namespace:
        return sorted(one.path.removeprefix(top + "/") for one in namespace.walk(top) if not one.is_directory)


FORMATS = [(form, algorithm) for form in ("parquet", "orc", "csv", "json") for algorithm in ("1", "2")]


@pytest.mark.parametrize(("form", "algorithm"), variants(FORMATS, *FORMATS[:3], ("csv", "1"), ("json", "1")))
def test_formats_and_committers(
    form: str, algorithm: str, spark: SparkSession, frame: DataFrame, served: ServedNamespace, base: str
) -> None:
    def save(mode: str) -> None:
        option = "mapreduce.fileoutputcommitter.algorithm.version"
        frame.write.option(option, algorithm).mode(mode).format(form).save(base)

    save("overwrite")
    save("overwrite")
    save("append")
    found = spark.read.schema(frame.schema).format(form).load(base)
    assert found.count() == 2 * ROWS
    assert [row.s for row in found.filter("id = 7").collect()] == ["é%7"] * 2
    files = _names(served, base)
    assert len([name for name in files if name.startswith("part-")]) == 6
    assert [name for name in files if not name.startswith("part-")] == ["_SUCCESS"], "nothing else is left"


def test_text_and_rdds(spark: SparkSession, frame: DataFrame, base: str) -> None:
    frame.select("s").write.text(f"{base}/text")
    assert {row.value for row in spark.read.text(f"{base}/text").collect()} == {f"é%{n}" for n in range(ROWS)}
    context = spark.sparkContext
    context.parallelize(map(str, range(100)), 3).saveAsTextFile(f"{base}/rdd")
    assert sorted(context.textFile(f"{base}/rdd/part-*").map(int).collect()) == list(range(100))
    whole = dict(context.wholeTextFiles(f"{base}/rdd").collect())
    assert len(whole) == 3 and sum(len(text.split()) for text in whole.values()) == 100


ODD_VALUES = ("é漢 a%b+c=d;e&f#g?h:i", "..", "'\"\\", "1")


def test_partitions_with_odd_names(spark: SparkSession, frame: DataFrame, base: str) -> None:
    choices = F.array(*map(F.lit, ODD_VALUES))
    odd = frame.withColumn("k", choices[(F.col("id") % len(ODD_VALUES)).cast("int")])
    odd.write.partitionBy("k").parquet(f"{base}/odd names é")
    found = spark.read.option("basePath", f"{base}/odd names é").parquet(f"{base}/odd names é/k=*")
    counts = {row.k: row["count"] for row in found.groupBy("k").count().collect()}
    assert counts == dict.fromkeys(ODD_VALUES, ROWS // len(ODD_VALUES))


def test_overwriting_partitions_dynamically(spark: SparkSession, frame: DataFrame, base: str) -> None:
    frame.write.partitionBy("g").parquet(base)
    few = frame.filter("g = 1").limit(5)
    few.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("g").parquet(base)
    found = {row.g: row["count"] for row in spark.read.parquet(base).groupBy("g").count().collect()}
    assert found == {0: ROWS // 3, 1: 5, 2: ROWS // 3}


def test_a_database_of_tables(spark: SparkSession, frame: DataFrame, served: ServedNamespace, base: str) -> None:
    spark.sql(f"CREATE DATABASE there LOCATION '{base}/there.db'")
    try:
        frame.write.saveAsTable("there.t")
        spark.sql("INSERT INTO there.t SELECT * FROM there.t")
        assert spark.table("there.t").count() == 2 * ROWS
        spark.sql("CREATE TABLE there.few USING orc AS SELECT * FROM there.t WHERE id < 5")
        spark.sql("INSERT OVERWRITE there.t SELECT * FROM there.few")
        assert spark.table("there.t").count() == 10
    finally:
        spark.sql("DROP DATABASE there CASCADE")
    assert _names(served, base) == []


def _run_stream(frame: DataFrame, spark: SparkSession, base: str, target: str) -> None:
    stream = spark.readStream.schema(frame.schema).json(f"{base}/input")
    if target == "counts":
        stream = stream.groupBy("g").count()
    writer: Any = stream.writeStream.option("checkpointLocation", f"{base}/checkpoint {target}")
    writer = writer.trigger(availableNow=True)
    if target == "counts":
        query = writer.format("memory").queryName("counts").outputMode("complete").start()
    else:
        query = writer.format("parquet").start(f"{base}/{target}")
    assert query.awaitTermination(int(PATIENCE_S))


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, frame: DataFrame, base: str) -> None:
    """Source, sink and checkpoint are on the server; each run takes what is new."""
    for run in (1, 2):
        frame.coalesce(1).write.mode("append").json(f"{base}/input")
        _run_stream(frame, spark, base, "output")
        assert spark.read.parquet(f"{base}/output").count() == run * ROWS


def test_a_stream_keeps_its_state_there(spark: SparkSession, frame: DataFrame, base: str) -> None:
    for run in (1, 2):
        frame.coalesce(1).write.mode("append").json(f"{base}/input")
        _run_stream(frame, spark, base, "counts")
        assert {row["count"] for row in spark.table("counts").collect()} == {run * ROWS // 3}
