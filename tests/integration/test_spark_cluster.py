"""Run a standalone Spark cluster of two hosts: speculative copies, executors that die, a host that freezes.

A slow attempt and its speculative copy both finish, and every committer that is safe gives each row once (C2, C3): a
loser has done all its writing before Spark asks who may commit (facts E1-E3).
"""

from __future__ import annotations

import os
import signal
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
from holdfast.s3_server import SeaweedServer
from holdfast.spark.task import Task
from tests.frozen import thaw
from tests.integration.spark_session import assert_clean, by_value, jobs_seen, spark_session, visible
from tests.integration.standalone_cluster import standalone_cluster
from tests.patience import PATIENCE_S, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

by_value(__name__)

_SLOW = 2
_BUCKET = "speculation"

# The store of each committer: an object store, or a file system with renames.
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
            spark__task__cpus="2",  # one task per host: a host that fails takes one task with it
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


def test_the_next_application_of_this_process_has_none_of_these_settings(spark: SparkSession) -> None:
    """With `spark.task.cpus=2`, the application that the other modules share once ran one task at a time."""
    jvm = spark._jvm
    assert jvm is not None
    assert jvm.java.lang.System.getProperty("spark.driver.memory") == "1g"
    assert jvm.java.lang.System.getProperty("spark.task.cpus") is None


def test_every_safe_committer_is_tried() -> None:
    assert set(SAFE) == set(COMMITTERS) - {"file-v2"}  # visible at task commit: not safe, and says so


def test_files_of_a_job_come_from_one_attempt(spark: SparkSession, server: SeaweedServer, tmp_path: Path) -> None:
    """`holdfast.job`: Spark takes the result of the winner only, though both attempts report (C3)."""
    server.create_bucket(_BUCKET)
    signals = tmp_path / "signals"
    signals.mkdir()
    url = f"s3://{_BUCKET}/job"
    reach = {
        "endpoint": server.options.endpoint_url,
        "access_key": server.options.access_key,
        "secret_key": server.options.secret_key,
    }
    numbers = spark.range(0, 400, 1, 4)

    def save(task: Task, batches: Iterator[pa.RecordBatch]) -> None:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                with task.open(f"{task.partition}/{number:03d}") as file:
                    file.write(task.attempt.encode())

    with holdfast.job(spark, url, **reach) as job:
        job.run(slowed(numbers, signals), save)
    assert {path.name for path in signals.iterdir()} >= {"passed-0", "passed-1"}, "both attempts came to their end"
    ctx = open_context(url, store_options=[server.options])
    try:
        found = {path: ctx.store.get(info.key) for path, info in iter_visible(ctx.store, ctx.prefix)}
        assert job.result.files == 400
        assert sorted(found) == [f"{number // 100}/{number:03d}" for number in range(400)]
        assert len({data for path, data in found.items() if path.startswith(f"{_SLOW}/")}) == 1
        wait_for_the_loser(spark, ctx)  # recovery would not find what an attempt announces after its records are gone
        recover(ctx)
        assert verify(ctx).pending_uploads == 0
    finally:
        ctx.close()


def wait_for_the_loser(spark: SparkSession, ctx: CommitContext) -> None:
    """Wait until no task runs and nothing was uploaded for two seconds: Spark has killed the attempt that lost."""
    executors = spark._jsc.sc().statusTracker().getExecutorInfos
    pulse, seen, since = threading.Event(), -1, 0
    for _ in range(int(PATIENCE_S / 0.2)):
        pending = verify(ctx).pending_uploads
        quiet = pending == seen and sum(executor.numRunningTasks() for executor in executors()) == 0
        seen, since = pending, since + 1 if quiet else 0
        if since == 10:
            return
        pulse.wait(0.2)
    raise AssertionError("the attempt that lost does not end")


def slowed(df: DataFrame, signals: Path, *, both_commit: bool = True) -> DataFrame:
    """Return the same rows; both attempts at one partition wait for each other at its end.

    Args:
        both_commit: whether both attempts then commit at the same time; if not, the copy waits until Spark kills it.
    """

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == _SLOW:
            mine, other = context.attemptNumber(), 1 - context.attemptNumber()
            (signals / f"passed-{mine}").write_text("")
            pulse = threading.Event()
            for _ in range(int(PATIENCE_S / 0.02)):
                if mine > 1 or ((signals / f"passed-{other}").exists() and (both_commit or mine == 0)):
                    return
                pulse.wait(0.02)
            raise AssertionError("no copy was started")

    return df.mapInArrow(pass_on, df.schema)


# A second commit deletes the output of the first before it renames its own ("displaced directory" in
# docs/explanation/holes.md). Spark may kill it between these two steps.
DISPLACING = ("staging-directory", "staging-partitioned", "manifest", "file-v1")


@pytest.mark.parametrize("committer", SAFE)
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
    table = spark.range(0, 2000, 1, 4).selectExpr("id", "cast(id % 3 as int) as k")
    partition_by = "k" if committer == "staging-partitioned" else None
    options = reach if on_s3 else {}
    rows = slowed(table, signals, both_commit=committer not in DISPLACING)
    result = holdfast.write(rows, url, committer=committer, partition_by=partition_by, **options)
    assert {path.name for path in signals.iterdir()} >= {"passed-0", "passed-1"}, "both attempts came to their end"
    assert result.rows == 2000
    found = holdfast.read(spark, url, **options).collect()
    assert sorted(row["id"] for row in found) == [*range(2000)]


# --- hosts that fail --------------------------------------------------------------------------------------------------
def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def executor_pid() -> int:
    """Return the process ID of the JVM that started this Python worker."""
    pid = os.getpid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = parent(pid)
    return pid


def wait_for(path: Path, patience_s: float = PATIENCE_S) -> None:
    pulse = threading.Event()
    for _ in range(int(patience_s / 0.05)):
        if path.exists():
            return
        pulse.wait(0.05)
    raise AssertionError(f"no process wrote {path.name}")


def with_fault(df: DataFrame, signals: Path, *, freezes: bool) -> DataFrame:
    """Return the same rows; the first attempt at partition 1 kills its executor, or freezes its host, in mid-write.

    Not before partition 0 has its first rows: until then the other host may be fetching the task's code from this one,
    and waits eight minutes for an answer of one that is frozen (four times ``spark.network.timeout``).
    """

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1 and context.attemptNumber() > 0:
            wait_for(signals / "victims")  # if a copy ended earlier, Spark would kill the first attempt
        for number, batch in enumerate(batches):
            if context.partitionId() == 0:
                (signals / "other-began").write_text("")
            if (number, context.partitionId(), context.attemptNumber()) == (3, 1, 0):
                wait_for(signals / "other-began")
                executor = executor_pid()
                host = parent(executor)  # Spark's worker: a running one would kill an executor that Spark gave up
                (signals / "found").write_text(f"{executor} {host}")
                (signals / "found").rename(signals / "victims")
                if freezes:
                    os.kill(host, signal.SIGSTOP)
                    os.kill(executor, signal.SIGSTOP)
                    # This process lives on, and continues when the job has ended.
                    wait_for(signals / "go-on", 10 * PATIENCE_S)
                else:
                    os.kill(executor, signal.SIGKILL)
            yield batch
        if context.partitionId() == 1:
            (signals / f"rows-passed-{context.attemptNumber()}").write_text("")

    return df.mapInArrow(pass_on, df.schema)


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 2000, 1, 2).selectExpr("id", "cast(id % 3 as int) as k")


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.collect())


def wait_for_hosts(spark: SparkSession) -> None:
    """Wait until both hosts run an executor: two tasks on one host would freeze together."""
    # The driver is one of the three.
    wait_until(lambda: spark._jsc.sc().getExecutorMemoryStatus().size() == 3, "an executor is missing")


def test_an_executor_is_killed_in_the_middle_of_a_write(spark: SparkSession, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    signals = tmp_path / "signals"
    signals.mkdir()
    result = holdfast.write(with_fault(rows(spark), signals, freezes=False), target, partition_by="k")
    assert (signals / "victims").exists()
    assert result.rows == 2000
    assert ids(spark.read.parquet(target)) == [*range(2000)]
    assert_clean(target)


def test_a_frozen_host_changes_nothing_after_the_decision(spark: SparkSession, tmp_path: Path) -> None:
    """C6: the frozen executor's worker finishes its write long after the job commit."""
    target = str(tmp_path / "t")
    signals = tmp_path / "signals"
    signals.mkdir()
    wait_for_hosts(spark)
    try:
        result = holdfast.write(with_fault(rows(spark), signals, freezes=True), target)
        before = {path: (tmp_path / "t" / path).read_bytes() for path in visible(target)}
        assert not (signals / "rows-passed-0").exists()
        (signals / "go-on").write_text("")
        wait_for(signals / "rows-passed-0")
    finally:
        thaw(signals / "victims")
    assert result.rows == 2000
    assert ids(spark.read.parquet(target)) == [*range(2000)]
    later = holdfast.write(rows(spark).filter("id = 0"), target)  # deletes what the frozen attempt left
    after = {path: (tmp_path / "t" / path).read_bytes() for path in visible(target)}
    assert before.items() <= after.items()
    assert jobs_seen(target) == {result.job, later.job}
    assert ids(spark.read.parquet(target)) == sorted([*range(2000), *ids(rows(spark).filter("id = 0"))])
