"""Read through real Spark: every type in every format, foreign files, columns and conditions."""

from __future__ import annotations

import datetime
import functools
import math
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.commit import SaveMode, open_context
from holdfast.commit.two_phase.committer import TWO_PHASE
from holdfast.errors import InvalidRequestError, NotFoundError
from tests.integration.spark_session import visible
from tests.variants import variants

read = functools.partial(holdfast.read, reader="python")  # Spark's own reader has tests of its own
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

UTC = datetime.timezone.utc
FLAT = (
    "id long, s string, flag boolean, i1 byte, i2 short, i4 int, f4 float, f8 double, price decimal(38,18), day date, "
    "instant timestamp, local timestamp_ntz"
)

NESTED = f"{FLAT}, raw binary, list array<int>, pairs map<string,double>, deep struct<a:int,b:array<struct<c:string>>>"
INSTANT = datetime.datetime(2026, 7, 2, 3, 4, 5, 6)
FLAT_ROWS: list[tuple[Any, ...]] = [
    (1, "a", True, 1, 2, 3, 1.5, 2.5, Decimal("1.5"), datetime.date(2026, 1, 2), INSTANT, INSTANT),
    (2, "ünï ✈\t\"q\" ,;'", False, -128, -(2**15), -(2**31), -0.0, math.inf, Decimal("-9.000000000000000001"),
     datetime.date(1, 1, 1), datetime.datetime(1969, 12, 31, 12, 0, 0, 999999), datetime.datetime(1900, 1, 1)),
    (3, *[None] * 11),
    (4, "x" * 5000, True, 127, 2**15 - 1, 2**31 - 1, 3.4e38, 5e-324, Decimal(0), datetime.date(9999, 12, 31), INSTANT,
     INSTANT),
]  # fmt: skip
NESTED_ROWS = [
    (*FLAT_ROWS[0], b"\x00\xff", [1, None, 3], {"k": 1.5, "": None}, (1, [("x",), (None,)])),
    (*FLAT_ROWS[1], b"", [], {}, (None, None)),
    (*FLAT_ROWS[2], *[None] * 4),
]


def by_id(df: DataFrame) -> list[Any]:
    return sorted(df.collect(), key=lambda row: row["id"])


def holdable(df: DataFrame, name: str) -> DataFrame:
    """Return the rows in two partitions, without dates that ORC's two calendars would change."""
    return (df.filter("day is null or day > date'1600-01-01'") if name == "orc" else df).repartition(2)


# --- formats ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", variants(["parquet", "orc", "arrow", "avro", "json", "csv"], "orc", "json"))
def test_every_type_comes_back(spark: SparkSession, tmp_path: Path, name: str) -> None:
    target = str(tmp_path / "t")
    ddl, rows = (NESTED, NESTED_ROWS) if name not in ("csv", "json") else (FLAT, FLAT_ROWS)
    df = holdable(spark.createDataFrame(rows, ddl), name)
    holdfast.write(df, target, file_format=name, header=True if name == "csv" else None)
    found = read(spark, target)
    assert found.schema == df.schema
    assert by_id(found) == by_id(df)


@pytest.mark.parametrize("name", variants(["parquet", "orc", "json", "csv"], "orc", "csv"))
def test_stock_spark_reads_what_we_write_and_we_what_it_writes(spark: SparkSession, tmp_path: Path, name: str) -> None:
    df = holdable(spark.createDataFrame(FLAT_ROWS, FLAT), name)
    options: dict[str, Any] = {"header": True} if name == "csv" else {}
    holdfast.write(df, str(tmp_path / "ours"), file_format=name, **options)
    stock = spark.read.schema(df.schema).format(name).options(**options).load(str(tmp_path / "ours"))
    assert by_id(stock) == by_id(df)
    if name in ("csv", "json"):
        return  # which only Spark reads
    df.write.format(name).save(str(tmp_path / "theirs"))
    ours = spark.read.schema(df.schema).format("holdfast").option("fileFormat", name).load(str(tmp_path / "theirs"))
    assert by_id(ours) == by_id(df)


@pytest.mark.parametrize(("name", "codec"), [("csv", "gzip"), ("json", "zstd"), ("text", "gzip")])
def test_a_codec_is_told_by_the_file_name(spark: SparkSession, tmp_path: Path, name: str, codec: str) -> None:
    df = spark.range(50).selectExpr("concat('line ', id) as value")
    holdfast.write(df, str(tmp_path / "t"), file_format=name, compression=codec)
    holdfast.write(df, str(tmp_path / "t"), file_format=name)
    assert sorted(read(spark, str(tmp_path / "t")).collect()) == sorted(df.union(df).collect())


def test_options_of_the_write_serve_the_read(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, "a;b"), (2, None)], "id long, s string")
    holdfast.write(df, str(tmp_path / "t"), file_format="csv", header=True, sep=";")
    assert by_id(read(spark, str(tmp_path / "t"))) == by_id(df)


def test_directories_of_others_are_read(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(100).selectExpr("id", "cast(id % 3 as int) as k", "cast(id % 2 as string) as s")
    df.write.partitionBy("k", "s").parquet(str(tmp_path / "t"))
    found = read(spark, str(tmp_path / "t"))
    assert found.dtypes == [("id", "bigint"), ("k", "int"), ("s", "int")]  # as Spark infers from directories
    assert [(row["id"], row["k"]) for row in by_id(found)] == [(i, i % 3) for i in range(100)]


# --- columns and conditions -------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def written_table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write one table; the tests below take copies."""
    df = spark.range(0, 1000, 1, 4).selectExpr("id", "cast(id % 5 as int) as k", "concat('v', id) as v", "id / 4 as f")
    folder = tmp_path_factory.mktemp("table") / "t"
    holdfast.write(df, str(folder), partition_by="k")
    return folder


@pytest.fixture
def table(written_table: Path, tmp_path: Path) -> str:
    """Copy the table, with the modification times that the log records, so that a test may damage it."""
    return str(shutil.copytree(written_table, tmp_path / "t"))


def test_columns_are_chosen(spark: SparkSession, table: str) -> None:
    found = read(spark, table, columns=["v", "id"])
    assert found.columns == ["v", "id"]
    assert by_id(found)[7] == ("v7", 7)
    assert spark.read.schema("v string").format("holdfast").load(table).count() == 1000
    with pytest.raises(Exception, match="the table has no such column"):
        spark.read.schema("v string, nope int").format("holdfast").load(table).count()
    with pytest.raises(InvalidRequestError, match="did you mean v"):
        read(spark, table, columns=["vv"])


@pytest.mark.parametrize(
    ("filters", "condition"),
    [
        ([("k", "=", 1)], "k = 1"),
        ([("k", "in", [1, 2]), ("id", "<", 100)], "k in (1, 2) and id < 100"),
        ([("v", ">=", "v99")], "v >= 'v99'"),
        ([("f", "!=", 0.25)], "f != 0.25"),
        ([("k", "=", 77)], "k = 77"),
    ],
)
def test_conditions_mean_what_sql_means(
    spark: SparkSession, table: str, filters: list[tuple[str, str, object]], condition: str
) -> None:
    found = read(spark, table, filters=filters)
    assert by_id(found) == by_id(spark.read.parquet(table).filter(condition).select(*found.columns))


def test_conditions_spare_files(spark: SparkSession, table: str) -> None:
    """A reader does not open files of excluded partitions."""
    for path in visible(table):
        if not path.startswith("k=3/"):
            (Path(table) / path).write_bytes(b"not Parquet")
    assert read(spark, table, filters=[("k", "=", 3)]).count() == 200


def test_one_frame_is_queried_twice_with_other_conditions(spark: SparkSession, table: str) -> None:
    """With Spark's pushdown into Python sources the second query would get the first one's rows."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        found = read(spark, table)
        assert [found.filter("id < 10").count(), found.count(), found.filter("k = 2").count()] == [10, 1000, 200]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"heder": True}, "unknown option"),
        ({"filters": [("id", "~", 1)]}, "no such operator"),
        ({"filters": [("id", "=", "x")]}, "not have its column's type"),
        ({"filters": [("nope", "=", 1)]}, "a condition's column is not read"),
        ({"split_size": "big"}, "not a size"),
    ],
)
def test_a_wrong_read_is_refused(spark: SparkSession, table: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        read(spark, table, **options)


def test_nothing_to_read(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is nothing to read"):
        read(spark, str(tmp_path / "none"))
    with pytest.raises(PySparkException) as caught:
        spark.read.format("holdfast").load(str(tmp_path / "none"))
    assert len(str(caught.value).strip().splitlines()) == 2  # ours, and Spark's SQLSTATE


# --- visibility -------------------------------------------------------------------------------------------------------
def test_a_job_under_way_is_not_seen(spark: SparkSession, table: str) -> None:
    """C4."""
    ctx = open_context(table)
    try:
        record = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, None)
        assert record is not None
        with TWO_PHASE.setup_task(ctx, record, 0) as attempt:
            path = f"k=0/{attempt.file_name('.parquet')}"
            attempt.open(path).write((Path(table) / visible(table)[0]).read_bytes())
            attempt.commit()
        assert read(spark, table).count() == 1000
        TWO_PHASE.abort_job(ctx, record)
    finally:
        ctx.store.close()
    assert read(spark, table).count() == 1000


def test_many_small_files_share_a_task(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(0, 100, 1, 1)
    holdfast.write(df, str(tmp_path / "t"), max_records_per_file=5)
    found = read(spark, str(tmp_path / "t"))
    assert (len(visible(tmp_path / "t")), found.rdd.getNumPartitions(), found.count()) == (20, 3, 100)
