"""Kill tasks, the commit process and the job under real Spark: the rows are visible exactly once, or not at all.

Faults come from the query's own functions and from subclasses in this module; the product has no hooks for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql")

from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter
from pyspark.sql.types import StructType

import holdfast
from holdfast.commit import Kind, open_context, read_history, recover
from holdfast.spark.session import register
from holdfast.spark.source import HoldfastDataSource
from holdfast.spark.writer import HoldfastWriter
from tests.integration.spark_session import assert_clean, by_value, jobs_seen, visible
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

by_value(__name__)

SPARK_FAILS = (PySparkException, Py4JJavaError)  # Spark reports a dead Python process with the second message


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(DyingSource)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    register(spark)
    return spark


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.collect())


def failing(df: DataFrame, how: str, attempts: int, after_batches: int = 2) -> DataFrame:
    """Return the same rows; partition 1 fails in its first `attempts` attempts while they are written."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number == after_batches and context.partitionId() == 1 and context.attemptNumber() < attempts:
                if how == "kill":
                    os._exit(9)
                raise ValueError("injected")
            yield batch

    return df.mapInArrow(pass_on, df.schema)


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 2000, 1, 2).selectExpr("id", "cast(id % 3 as int) as k")


@pytest.mark.parametrize(("how", "partition_by"), variants([("kill", "k"), ("raise", None), ("raise", "k")]))
def test_a_retried_task_counts_once(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, how: str, partition_by: str | None
) -> None:
    """facts: faults 1, 2, 32."""
    target = str(tmp_path / "t")
    result = holdfast.write(failing(rows, how, attempts=2), target, partition_by=partition_by)
    assert result.rows == 2000
    assert ids(spark.read.parquet(target)) == [*range(2000)]
    assert_clean(target)


@pytest.mark.parametrize(("how", "mode"), variants([("raise", "append"), ("kill", "overwrite")]))
def test_a_job_that_fails_leaves_the_destination_as_it_was(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, how: str, mode: str
) -> None:
    """facts: faults 6, 22, 32."""
    target = str(tmp_path / "t")
    holdfast.write(rows.limit(5), target)
    before = {path: (tmp_path / "t" / path).read_bytes() for path in [*visible(target), "_SUCCESS"]}
    with pytest.raises(SPARK_FAILS, match=r"injected|exited unexpectedly|crashed"):
        holdfast.write(failing(rows, how, attempts=4), target, mode=mode)
    assert {path: (tmp_path / "t" / path).read_bytes() for path in [*visible(target), "_SUCCESS"]} == before
    assert_clean(target)


# --- the commit process dies ------------------------------------------------------------------------------------------
class DyingWriter(DataSourceArrowWriter):
    """A writer that delegates everything; the process of one phase dies, or raises, at the given store call.

    In phase ``write`` that is partition 1's first attempt: it dies at its first call, which is the manifest's.
    """

    def __init__(self, inner: HoldfastWriter, call: int, how: str, phase: str = "commit") -> None:
        self.inner = inner
        self.call = call
        self.how = how
        self.phase = phase

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        context = TaskContext.get()
        assert context is not None
        if self.phase == "write" and context.partitionId() == 1 and context.attemptNumber() == 0:
            die_at_call(self.call, self.how)
        return self.inner.write(iterator)

    def commit(self, messages: Any) -> None:
        if self.phase == "commit":
            die_at_call(self.call, self.how)
        self.inner.commit(messages)

    def abort(self, messages: Any) -> None:
        self.inner.abort(messages)


def die_at_call(call: int, how: str) -> None:
    """Make this process die at its `call`-th mutation of a local store."""
    from holdfast.errors import UnavailableError
    from holdfast.stores.local.store import LocalStore

    count = 0

    def counted(method: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == call:
                if how == "exit":
                    os._exit(3)
                raise UnavailableError("injected")
            return method(*args, **kwargs)

        return run

    for name in ("put", "rename", "delete", "delete_many"):
        setattr(LocalStore, name, counted(getattr(LocalStore, name)))


class DyingSource(DataSource):
    """The Holdfast data source with options `dieAt`, `dieHow` and `dieIn`."""

    @classmethod
    def name(cls) -> str:
        return "dying"

    def writer(self, schema: StructType, overwrite: bool) -> DyingWriter:
        options = dict(self.options)
        call, how, phase = int(options.pop("dieat")), options.pop("diehow"), options.pop("diein", "commit")
        return DyingWriter(HoldfastDataSource(options).writer(schema, overwrite), call, how, phase)


class DyingHoldfast(DataSource):
    """The Holdfast data source, whose commit process dies right after the decision."""

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def writer(self, schema: StructType, overwrite: bool) -> DyingWriter:
        return DyingWriter(HoldfastDataSource(self.options).writer(schema, overwrite), 3, "exit")


@pytest.mark.parametrize(
    ("call", "mode"),
    variants(
        [
            (1, "overwrite"),
            (2, "append"),
            (2, "overwrite"),
            (3, "append"),
            (3, "overwrite"),
            (5, "overwrite"),
            (8, "append"),
        ],
        (2, "overwrite"),
        (5, "overwrite"),
    ),
)
def test_the_commit_process_dies_and_spark_calls_abort(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, call: int, mode: str
) -> None:
    """facts: faults 11 and 12 (Iceberg 4686): abort rolls a decided job forward and aborts an undecided one."""
    target = str(tmp_path / "t")
    old = holdfast.write(rows.filter("id < 10"), target)
    dying = rows.write.format("dying").mode(mode).option("dieAt", call).option("dieHow", "exit")
    with pytest.raises(SPARK_FAILS):
        dying.save(target)
    found = ids(spark.read.parquet(target))
    ctx = open_context(target)
    kinds = [decision.entry.kind for decision in read_history(ctx).decisions]
    ctx.store.close()
    expected_old = [*range(10)] if mode == "append" or kinds[-1] is Kind.ABORT else []
    expected_new = [*range(2000)] if kinds[-1] is Kind.COMMIT else []
    assert len(kinds) == 2
    assert found == sorted(expected_old + expected_new)
    assert (old.job in jobs_seen(target)) == bool(expected_old)
    assert_clean(target)


def test_a_task_dies_between_its_files_and_its_report(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """facts: faults 2: all files of the attempt are complete, and none becomes visible."""
    target = str(tmp_path / "t")
    dying = rows.write.format("dying").mode("append").option("dieAt", 1).option("dieHow", "exit")
    dying.option("dieIn", "write").save(target)
    assert ids(spark.read.parquet(target)) == [*range(2000)]
    assert_clean(target)


def test_an_error_after_the_decision_is_no_failed_write(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    rows.write.format("dying").mode("append").option("dieAt", 5).option("dieHow", "raise").save(target)
    assert ids(spark.read.parquet(target)) == [*range(2000)]
    ctx = open_context(target)
    recover(ctx)
    ctx.store.close()
    assert_clean(target)


def test_write_knows_that_the_job_is_committed_though_spark_says_it_failed(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit process dies after the decision; Spark calls abort, which finishes the job, and raises."""
    target = str(tmp_path / "t")
    monkeypatch.setattr("holdfast.spark.session.register", lambda session: session.dataSource.register(DyingHoldfast))
    try:
        result = holdfast.write(rows, target)
    finally:
        register(spark)
    assert (result.rows, result.finished) == (2000, True)
    assert ids(spark.read.parquet(target)) == [*range(2000)]
    assert_clean(target)


# --- several jobs -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_two_sessions_write_to_one_destination(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """facts: faults 23 and 98: concurrent sessions share worker processes, never state."""
    target = str(tmp_path / "t")
    other = spark.newSession()
    first = holdfast.write(rows, target, file_format="parquet", compression="zstd")
    second = holdfast.write(other.range(2000, 2010), target)
    assert first.job != second.job
    assert ids(spark.read.parquet(target)) == [*range(2010)]
    assert other.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == "2147483647"
    assert_clean(target)
