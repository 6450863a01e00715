"""Read and load tables of a database with Spark; see `holdfast.spark.database`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("pyspark.sql")

from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException

from holdfast.records import Database, open_database
from holdfast.records.keys import dropped_range, loads_range
from tests.integration.database_faults import DyingStoreSource
from tests.integration.spark_session import by_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]  # PySpark's own imports warn

by_value(__name__)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/shop.db"


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    with open_database(url, create=True) as opened:
        yield opened


def read(spark: SparkSession, url: str, table: str = "words", schema: str = "", **options: object) -> DataFrame:
    reader = spark.read.format("holdfast-database").option("url", url).option("table", table)
    reader = reader.schema(schema) if schema else reader
    return reader.options(**options).load()  # type: ignore[arg-type]  # PySpark's hints leave out int


def save(df: DataFrame, url: str, table: str = "words", mode: str = "append", **options: object) -> None:
    writer = df.write.format("holdfast-database").option("url", url).option("table", table)
    writer.options(**options).mode(mode).save()  # type: ignore[arg-type]  # PySpark's hints leave out int


def leftovers(db: Database) -> int:
    """Count loads that have not ended, and dropped tables that are not deleted."""
    return sum(len(db.backend.scan(start, end, 100).records) for start, end in (loads_range(), dropped_range()))


def test_values_of_every_type_come_back(spark: SparkSession, db: Database, url: str) -> None:
    rows = [
        ("a", 1, 2.5, "é\0", b"\0\xff", True, [1.0, float("inf")], [[1, 2], [3, 4]], '{"k":[1,null]}'),
        ("b", -(2**63), -0.0, "", b"", False, [], [[5]], "[]"),
        ("c", None, None, "only this", None, None, None, None, None),
    ]
    schema = (
        "row string, i long, f double, t string, b binary, o boolean, a array<double>, m array<array<long>>, j string"
    )
    df = spark.createDataFrame(rows, schema)
    save(df, url, jsonColumns="j")
    cells = db.get_row("words", "a")
    assert {type(value) for value in cells.values()} == {int, float, str, bytes, bool, np.ndarray, dict}
    assert cells["j"] == {"k": [1, None]} and cells["m"].shape == (2, 2)
    assert db.get_row("words", "c") == {"t": "only this"}
    found = read(spark, url, schema=schema)
    assert [tuple(row) for row in found.orderBy("row").collect()] == rows
    inferred = read(spark, url, columns="i,f,t,b,a,m,j").schema
    assert inferred.simpleString() == (
        "struct<row:string,i:bigint,f:double,t:string,b:binary,a:array<double>,m:array<array<bigint>>,j:string>"
    )
    assert leftovers(db) == 0


def test_partitions_and_filters(spark: SparkSession, db: Database, url: str) -> None:
    save(spark.range(3000).selectExpr("id", "id * 2 as double"), url, "numbers", rowColumn="id")
    df = read(spark, url, "numbers", rowColumn="id", partitions=4)
    assert df.rdd.getNumPartitions() == 4
    assert {(row.id, row.double) for row in df.collect()} == {(number, 2 * number) for number in range(3000)}
    some = read(spark, url, "numbers", rowColumn="id", filters='[["id", ">=", 10], ["id", "<", 13]]')
    assert sorted(row.id for row in some.collect()) == [10, 11, 12]
    save(
        spark.createDataFrame([("ada", 1, 0.5), ("bob", 2, 1.5)], "user string, item int, score double"),
        url,
        "scores",
        rowColumn="user,item",
    )
    assert db.get("scores", ("bob", 2), column="score") == 1.5
    assert read(spark, url, "scores").columns == ["row_1", "row_2", "score"]
    assert [tuple(row) for row in read(spark, url, "scores", filters='[["row_1", "=", "ada"]]').collect()] == [
        ("ada", 1, 0.5)
    ]


def test_an_overwrite_is_seen_at_one_instant(spark: SparkSession, db: Database, url: str) -> None:
    save(spark.range(400).selectExpr("id as row", "1 as n"), url)
    seen: set[tuple[int, int]] = set()
    done = threading.Event()

    def poll() -> None:
        with open_database(url) as other:
            while not done.is_set():
                rows = [columns["n"] for _row, columns in other.scan("words")]
                seen.add((len(rows), sum(rows)))

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        save(spark.range(700).repartition(3).selectExpr("id as row", "2 as n"), url, mode="overwrite")
    finally:
        done.set()
        reader.join()
    assert seen <= {(400, 400), (700, 1400)}, seen
    assert sum(row.n for row in read(spark, url).collect()) == 1400
    assert leftovers(db) == 0


def _faulty(rows: Iterator[Any], once: Path) -> Iterator[Any]:
    """Let the first attempt at a partition die in the middle, after it has written a batch."""
    for number, row in enumerate(rows):
        if number == 40:
            context = TaskContext.get()
            assert context is not None
            try:
                (once / str(context.partitionId())).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                raise RuntimeError("the first attempt fails")
        yield row


def test_a_failing_task_is_repeated_and_an_abort_leaves_the_old_table(
    spark: SparkSession, db: Database, url: str, tmp_path: Path
) -> None:
    rows = spark.sparkContext.parallelize([(number, f"w{number}") for number in range(200)], 2)
    failing = spark.createDataFrame(rows.mapPartitions(lambda part: _faulty(part, tmp_path)), "row long, word string")
    save(failing, url, batchRows=10)
    assert read(spark, url).count() == 200
    broken = spark.range(50).selectExpr("id as row", "if(id = 30, raise_error('broken'), 'new') as word")
    with pytest.raises(PySparkException, match="broken"):
        save(broken, url, mode="overwrite", batchRows=5)
    assert {row.word for row in read(spark, url).collect()} == {f"w{number}" for number in range(200)}
    assert leftovers(db) == 0


def test_two_rows_of_one_name_are_refused(spark: SparkSession, db: Database, url: str) -> None:
    twice = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "word string, n int").repartition(3)
    with pytest.raises(PySparkException, match="the same name"):
        save(twice, url, rowColumn="word")
    assert db.tables() == [] and leftovers(db) == 0


@pytest.mark.slow
def test_errors_are_one_sentence_without_the_password(spark: SparkSession, db: Database, url: str) -> None:
    db.create_table("mixed")
    db.put("mixed", "a", 1)
    db.put("mixed", "b", "text")
    with pytest.raises(PySparkException, match="different types: pass a schema"):
        read(spark, url, "mixed")
    with pytest.raises(PySparkException, match=r"row='b' column='value'"):
        read(spark, url, "mixed", schema="row string, value long").collect()
    with pytest.raises(PySparkException, match="did you mean rowColumn"):
        read(spark, url, "mixed", rowColum="x")
    with pytest.raises(PySparkException) as caught:
        read(spark, "postgresql://me:hunter2@127.0.0.1:1/shop", "mixed")
    assert "hunter2" not in str(caught.value)
    save(spark.range(3).selectExpr("id as row", "1L as value"), url, "mixed2")
    assert read(spark, url, "mixed", schema="row string, value string").count() == 2


def save_dying(spark: SparkSession, url: str, once: Path, die: str, mode: str) -> None:
    spark.dataSource.register(DyingStoreSource)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
    rows = spark.range(100, 300, numPartitions=2).selectExpr("id as row", "'new' as word")
    try:
        writer = rows.write.format("dying-database").options(
            url=url, table="words", batchRows="15", die=die, once=str(once)
        )
        writer.mode(mode).save()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.slow
@pytest.mark.parametrize("history", [0, 5])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("die", ["early", "late"])
def test_tasks_that_die_twice(
    spark: SparkSession, db: Database, url: str, tmp_path: Path, die: str, mode: str, history: int
) -> None:
    db.create_table("words", history=history)
    db.put("words", 100, "old", column="word")
    db.put("words", 1, "old", column="word")
    once = tmp_path / "once"
    once.mkdir()
    save_dying(spark, url, once, die, mode)
    assert len(list(once.iterdir())) == 4
    expected = dict.fromkeys(range(100, 300), "new") | ({1: "old"} if mode == "append" else {})
    assert {row.row: row.word for row in read(spark, url).collect()} == expected
    if history:
        values = [(1, "old"), (2, "new")] if mode == "append" else [(1, "new")]
        assert db.history("words", 100, column="word") == values
        assert db.history("words", 299, column="word") == [(1, "new")]
    assert leftovers(db) == 0


@pytest.mark.slow
@pytest.mark.parametrize("die", ["before", "after"])
def test_a_commit_that_dies(spark: SparkSession, db: Database, url: str, tmp_path: Path, die: str) -> None:
    save(spark.range(5).selectExpr("id as row", "'old' as word"), url)
    with pytest.raises((PySparkException, Py4JJavaError)):
        save_dying(spark, url, tmp_path, die, "overwrite")
    expected = dict.fromkeys(range(5), "old") if die == "before" else dict.fromkeys(range(100, 300), "new")
    assert {row.row: row.word for row in read(spark, url).collect()} == expected
    assert leftovers(db) == 0
