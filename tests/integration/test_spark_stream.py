"""Run `writeStream.format("holdfast")` under real Spark: output, refusals and failures.

Faults come from the query's own functions and from a source in this module; the product has no hooks for them.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql")

from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType

import holdfast
from holdfast.commit import Kind, open_context, read_history
from holdfast.commit.layout import JOBS
from holdfast.commit.two_phase.records import LogEntry
from holdfast.spark.session import register
from holdfast.spark.source import HoldfastDataSource
from holdfast.spark.writer import HoldfastStreamWriter
from holdfast.stores.base import iter_objects
from tests.integration.spark_session import assert_clean, by_value
from tests.patience import PATIENCE_S, POLL_S, wait_until
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

by_value(__name__)

ROWS = 10


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(DyingSource)
    register(spark)
    return spark


class Stream:
    """A directory of input files, one a batch; a checkpoint; a destination."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark = spark
        self.home = home
        self.url = str(home / "out")
        self.files = 0
        (home / "in").mkdir()

    def feed(self, files: int = 1) -> None:
        for _ in range(files):
            rows = [{"id": self.files * ROWS + row, "k": row % 2} for row in range(ROWS)]
            partial = self.home / f".{self.files}"
            partial.write_text("".join(json.dumps(row) + "\n" for row in rows))
            os.utime(partial, (1_700_000_000 + self.files,) * 2)  # Spark takes the oldest first
            partial.rename(self.home / "in" / f"{self.files:03d}.json")
            self.files += 1

    @property
    def source(self) -> DataFrame:
        reader = self.spark.readStream.schema("id long, k int").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.home / "in"))

    def start(self, df: DataFrame | None = None, *, source: str = "holdfast", **options: Any) -> StreamingQuery:
        writer = (
            (self.source if df is None else df).writeStream.format(source).outputMode(options.pop("mode", "append"))
        )
        given = {"checkpointLocation": str(self.home / "checkpoint"), **options}
        return writer.options(**given).trigger(availableNow=True).start(self.url)

    def run(self, df: DataFrame | None = None, **options: Any) -> StreamingQuery:
        query = self.start(df, **options)
        assert query.awaitTermination(PATIENCE_S)
        return query

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.spark.read.parquet(self.url).collect())

    def decisions(self) -> list[LogEntry]:
        ctx = open_context(self.url)
        try:
            return [decision.entry for decision in read_history(ctx).decisions]
        finally:
            ctx.close()

    def assert_exact(self) -> None:
        """Check that every reader sees each row once, and that no data is left behind."""
        expected = [*range(self.files * ROWS)]
        assert self.ids() == expected
        assert sorted(row["id"] for row in holdfast.read(self.spark, self.url).collect()) == expected
        ctx = open_context(self.url)
        assert [info.key for info in iter_objects(ctx.store, ctx.key(JOBS))] == []
        ctx.close()
        assert_clean(self.url)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def failure(query: StreamingQuery) -> str:
    """Return the error message of a failed query."""
    with pytest.raises(PySparkException) as caught:
        query.awaitTermination(PATIENCE_S)
    return str(caught.value)


# --- writing ----------------------------------------------------------------------------------------------------------
def test_a_query_goes_on_where_it_stopped(stream: Stream) -> None:
    stream.feed(3)
    query = stream.run(queryName="flights")
    assert [progress["sink"]["numOutputRows"] for progress in query.recentProgress if progress["numInputRows"]] == [
        ROWS,
        ROWS,
        ROWS,
    ]
    stream.assert_exact()
    stream.feed(2)
    again = stream.run()
    assert again.id == query.id and again.runId != query.runId
    stream.assert_exact()
    batches = [entry.record.stream for entry in stream.decisions()]
    assert [batch and (batch.batch, batch.stream) for batch in batches] == [(n, str(query.id)) for n in range(5)]


@pytest.mark.slow
def test_formats_and_partitions(stream: Stream) -> None:
    stream.feed(2)
    stream.run(fileFormat="csv", header="true", partitionBy="k", streamId="flights")
    paths = {path.relative_to(stream.url).parts[0] for path in Path(stream.url).rglob("*.csv")}
    assert paths == {"k=0", "k=1"}
    found = holdfast.read(stream.spark, stream.url, filters=[("k", "=", 1)])
    assert sorted(row["id"] for row in found.collect()) == [n for n in range(2 * ROWS) if n % 2]
    assert found.schema["id"].dataType.simpleString() == "bigint"
    assert_clean(stream.url)


@pytest.mark.slow
def test_output_mode_complete_replaces_everything_with_every_batch(stream: Stream) -> None:
    stream.feed(3)
    counts = stream.source.groupBy("k").count()
    stream.run(counts, mode="complete")
    assert sorted(map(tuple, holdfast.read(stream.spark, stream.url).collect())) == [(0, 15), (1, 15)]
    assert stream.spark.read.parquet(stream.url).count() == 2, "plain readers see the last result alone"
    assert [entry.record.mode.value for entry in stream.decisions()] == ["overwrite"] * 3
    assert_clean(stream.url)


@pytest.mark.slow
def test_batches_without_rows_leave_no_trace(stream: Stream) -> None:
    stream.feed(3)
    stream.run(stream.source.repartition(3).where(f"id >= {ROWS} and id < {ROWS + 1}"))
    assert stream.ids() == [ROWS]
    (entry,) = stream.decisions()
    assert entry.record.stream is not None and entry.record.stream.batch == 1
    assert (entry.tasks, entry.totals.files) == (1, 1), "tasks without rows report nothing"
    assert_clean(stream.url)


@pytest.mark.slow
def test_a_reader_sees_whole_batches_while_the_query_runs(stream: Stream) -> None:
    """C4: every snapshot taken during the query holds whole batches."""
    stream.feed(12)
    query = stream.start(stream.source.repartition(2))
    sizes = []
    poll = threading.Event()
    for _ in range(200):
        if (Path(stream.url) / "_SUCCESS").exists():
            sizes.append(holdfast.read(stream.spark, stream.url).count())
        if not query.isActive:
            break
        poll.wait(POLL_S)
    assert query.awaitTermination(PATIENCE_S)
    assert sizes and all(size % ROWS == 0 for size in sizes) and sizes == sorted(sizes)
    stream.assert_exact()


# --- refusals ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"committer": "file-v1"}, "only two_phase records which batches are committed"),
        ({"ifExists": "fail"}, "a stream appends its batches, or replaces everything in output mode complete"),
        ({"partitionOverwriteMode": "dynamic"}, "a stream appends its batches, or replaces everything"),
        ({"streemId": "flights"}, "unknown option: did you mean streamId"),
        ({"streamId": " "}, "not a name: write 1 to 200 printable characters"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(stream: Stream, options: dict[str, str], sentence: str) -> None:
    stream.feed()
    message = failure(stream.start(**options))
    assert sentence in message and "Traceback" not in message
    assert not Path(stream.url).exists(), "nothing was written"


def test_output_mode_update_is_refused_by_spark(stream: Stream) -> None:
    stream.feed()
    assert "does not support Update mode" in failure(stream.start(stream.source.groupBy("k").count(), mode="update"))


@pytest.mark.slow
def test_a_known_stream_with_a_new_checkpoint(stream: Stream) -> None:
    """The same name is refused, because batch numbers restart; without a name it is another stream."""
    stream.feed(2)
    stream.run(streamId="flights")
    message = failure(stream.start(streamId="flights", checkpointLocation=str(stream.home / "other")))
    assert "continue with that checkpoint; with another streamId" in message
    stream.run(streamId="flights")
    stream.assert_exact()
    stream.run(checkpointLocation=str(stream.home / "third"))
    assert stream.ids() == sorted([*range(2 * ROWS)] * 2), "a deleted checkpoint is a new stream: all input again"


@pytest.mark.slow
def test_another_layout_is_refused(stream: Stream) -> None:
    stream.feed()
    holdfast.write(stream.spark.range(3).selectExpr("id", "cast(0 as int) k"), stream.url, partition_by="k")
    assert "the table has other partition columns" in failure(stream.start())


# --- failures ---------------------------------------------------------------------------------------------------------
def failing(df: DataFrame, attempts: int, marker: Path | None = None) -> DataFrame:
    """Return the same rows; the batch with row 15 fails in its first `attempts` attempts, or while `marker` exists."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            yield batch
            if 15 in batch["id"].to_pylist() and context.attemptNumber() < attempts:
                if marker is None or marker.exists():
                    raise ValueError("injected")

    return df.mapInArrow(pass_on, df.schema)


@pytest.mark.slow
def test_a_retried_task_counts_once(stream: Stream) -> None:
    stream.feed(3)
    stream.run(failing(stream.source, attempts=3))
    stream.assert_exact()


def test_a_query_that_fails_is_started_again(stream: Stream, tmp_path: Path) -> None:
    """All attempts at a task fail and the query stops; after a restart it continues, without leftover data."""
    stream.feed(3)
    marker = tmp_path / "broken"
    marker.touch()
    assert "injected" in failure(stream.start(failing(stream.source.repartition(2), attempts=4, marker=marker)))
    assert stream.ids() == [*range(ROWS)]
    marker.unlink()
    stream.run(failing(stream.source.repartition(2), attempts=4, marker=marker))
    stream.assert_exact()


@pytest.mark.slow
def test_stop_in_the_middle_of_a_batch(stream: Stream, tmp_path: Path) -> None:
    """`stop` kills the tasks; the restarted query writes the batch again."""
    stream.feed(3)
    reached = tmp_path / "reached"

    def wait_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if 15 in batch["id"].to_pylist() and not reached.exists():
                reached.touch()
                threading.Event().wait(PATIENCE_S)

    query = stream.start(stream.source.mapInArrow(wait_once, stream.source.schema))
    wait_until(reached.exists, "no task has read the row", over=lambda: not query.isActive)
    query.stop()
    assert stream.ids() == [*range(ROWS)]
    stream.run()
    stream.assert_exact()


# --- the commit process dies ------------------------------------------------------------------------------------------
class DyingWriter(DataSourceStreamArrowWriter):
    """A writer that delegates everything; the commit process exits, or raises, at its nth mutation of the store."""

    def __init__(self, inner: HoldfastStreamWriter, batch: int, call: int, how: str) -> None:
        self.inner = inner
        self.batch = batch
        self.call = call
        self.how = how

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        return self.inner.write(iterator)

    def commit(self, messages: Any, batchId: int) -> None:
        if batchId == self.batch:
            die_at_call(self.call, self.how)
        self.inner.commit(messages, batchId)

    def abort(self, messages: Any, batchId: int) -> None:
        self.inner.abort(messages, batchId)


def die_at_call(call: int, how: str) -> None:
    from holdfast.errors import AccessDeniedError
    from holdfast.stores.local.store import LocalStore

    numbers = iter(range(1, 1000))

    def counted(method: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            if next(numbers) >= call:
                if how == "exit":
                    os._exit(3)
                raise AccessDeniedError("injected")
            return method(*args, **kwargs)

        return run

    for name in ("put", "rename", "delete", "delete_many"):
        setattr(LocalStore, name, counted(getattr(LocalStore, name)))


class DyingSource(DataSource):
    """The Holdfast data source with options `dieBatch`, `dieAt` and `dieHow`."""

    @classmethod
    def name(cls) -> str:
        return "dying_stream"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DyingWriter:
        options = dict(self.options)
        batch, call, how = int(options.pop("diebatch")), int(options.pop("dieat")), options.pop("diehow")
        return DyingWriter(HoldfastDataSource(options).streamWriter(schema, overwrite), batch, call, how)


_DEATHS = [(1, "exit"), (2, "exit"), (2, "raise"), (3, "exit"), (5, "exit")]


@pytest.mark.parametrize(("call", "how"), variants(_DEATHS, (3, "exit")))
def test_commit_fails_spark_aborts_and_the_query_is_started_again(stream: Stream, call: int, how: str) -> None:
    """Iceberg 4686 in a stream: abort undoes no committed batch and blocks no batch number."""
    stream.feed(3)
    message = failure(stream.start(source="dying_stream", dieBatch=1, dieAt=call, dieHow=how))
    assert "injected" in message or "exited unexpectedly" in message or "crashed" in message
    kinds = [entry.kind for entry in stream.decisions()]
    assert kinds == [Kind.COMMIT, Kind.ABORT if call < 3 else Kind.COMMIT], "abort ran, and read the log first"
    stream.run()
    stream.assert_exact()
