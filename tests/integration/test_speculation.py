"""A slow attempt and its speculative copy both finish: every committer that is safe gives each row once (C2, C3).

facts E1-E3: a standalone cluster of two hosts; a loser has done all its writing before Spark asks who may commit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql")

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.commit import COMMITTERS, CommitContext, open_context, recover, verify
from holdfast.commit.layout import iter_visible
from holdfast.spark.task_files import Task
from holdfast.testing.weed import SeaweedServer
from tests.integration.spark_session import by_value, spark_session
from tests.integration.standalone_cluster import standalone_cluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

by_value(__name__)

_PATIENCE_S = 60.0
_SLOW = 2
_BUCKET = "speculation"

# Where each runs: on an object store, or where files are renamed.
SAFE = {
    "two_phase": "s3",
    "magic": "s3",
    "staging-directory": "s3",
    "staging-partitioned": "s3",
    "manifest": "file",
    "file-v1": "file",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with (
        standalone_cluster(tmp_path_factory.mktemp("cluster")) as master,
        spark_session(
            master,
            spark__executor__memory="512m",
            spark__executor__cores="2",
            spark__speculation="true",
            spark__speculation__interval="200ms",
            spark__speculation__quantile="0.5",
            spark__speculation__multiplier="1.1",
            spark__speculation__minTaskRuntime="100ms",
            spark__task__maxFailures="8",  # a denied copy counts as a failure (SPARK-56564)
            spark__sql__execution__arrow__maxRecordsPerBatch="100",
        ) as session,
    ):
        yield session


def test_every_safe_committer_is_tried() -> None:
    comparison = {name for name, committer in COMMITTERS.items() if committer.unsafe}
    assert set(SAFE) == set(COMMITTERS) - comparison - {"file-v2"}  # visible at task commit: not safe, and says so


def test_files_of_a_job_come_from_one_attempt(spark: SparkSession, server: SeaweedServer, tmp_path: Path) -> None:
    """`holdfast.job`: Spark takes the accumulator's update of the winner only, though both attempts report (C3)."""
    server.create_bucket(_BUCKET)
    signals = tmp_path / "signals"
    signals.mkdir()
    url = f"s3://{_BUCKET}/job"
    reach = {
        "endpoint": server.options.endpoint_url,
        "access_key": server.options.access_key,
        "secret_key": server.options.secret_key,
    }
    rows = spark.range(0, 400, 1, 4)

    def save(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                with task.open(f"{task.partition}/{number:03d}") as file:
                    file.write(task.attempt.encode())
            yield batch

    with holdfast.job(spark, url, **reach) as job:
        slowed(rows, signals).mapInArrow(job.attempt(save), rows.schema).collect()
    assert {path.name for path in signals.iterdir()} >= {"passed-0", "passed-1"}, "both attempts came to their end"
    ctx = open_context(url, s3=server.options)
    try:
        found = {path: ctx.store.get(info.key) for path, info in iter_visible(ctx.store, ctx.prefix)}
        assert job.result.files == 400
        assert sorted(found) == [f"{number // 100}/{number:03d}" for number in range(400)]
        assert len({data for path, data in found.items() if path.startswith(f"{_SLOW}/")}) == 1
        wait_for_the_loser(ctx)  # what an attempt announces after its records are gone would be found by nobody
        recover(ctx)
        assert verify(ctx).pending_uploads == 0
    finally:
        ctx.close()


def wait_for_the_loser(ctx: CommitContext) -> None:
    """Until nothing was uploaded for two seconds: Spark has killed the attempt that did not count."""
    pulse, seen, since = threading.Event(), -1, 0
    for _ in range(int(_PATIENCE_S / 0.2)):
        waiting = verify(ctx).pending_uploads
        seen, since = waiting, since + 1 if waiting == seen else 0
        if since == 10:
            return
        pulse.wait(0.2)
    raise AssertionError("the loser goes on for ever")


def slowed(df: DataFrame, signals: Path) -> DataFrame:
    """The same rows; the two attempts at one partition wait for each other at its end."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == _SLOW:
            mine, other = context.attemptNumber(), 1 - context.attemptNumber()
            (signals / f"passed-{mine}").write_text("")
            pulse = threading.Event()
            for _ in range(int(_PATIENCE_S / 0.02)):
                if mine > 1 or (signals / f"passed-{other}").exists():
                    return
                pulse.wait(0.02)
            raise AssertionError("no copy was started")

    return df.mapInArrow(pass_on, df.schema)


# The others one by one in `make check`: they share the steps that matter here.
DEFAULT = ("two_phase",)


@pytest.mark.parametrize(
    "committer", [name if name in DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in SAFE]
)
def test_a_slow_attempt_and_its_copy_give_each_row_once(
    committer: str, spark: SparkSession, server: SeaweedServer, tmp_path: Path
) -> None:
    server.create_bucket(_BUCKET)
    signals = tmp_path / "signals"
    signals.mkdir()
    on_s3 = SAFE[committer] == "s3"
    url = f"s3://{_BUCKET}/{committer}" if on_s3 else str(tmp_path / "table")
    reach = {
        "endpoint": server.options.endpoint_url,
        "access_key": server.options.access_key,
        "secret_key": server.options.secret_key,
    }
    rows = spark.range(0, 2000, 1, 4).selectExpr("id", "cast(id % 3 as int) as k")
    partition_by = "k" if committer == "staging-partitioned" else None
    options = reach if on_s3 else {}
    result = holdfast.write(slowed(rows, signals), url, committer=committer, partition_by=partition_by, **options)
    assert {path.name for path in signals.iterdir()} >= {"passed-0", "passed-1"}, "both attempts came to their end"
    assert result.rows == 2000
    found = holdfast.read(spark, url, **options).collect()
    assert sorted(row["id"] for row in found) == [*range(2000)]
