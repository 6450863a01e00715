"""Executor JVMs die, or freeze and come back as zombies, under a real Spark cluster on this machine.

facts: E1 (local-cluster starts real executors), faults 3 and 4.
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
from tests.integration.spark_session import assert_clean, by_value, jobs_seen, spark_session, visible

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

by_value(__name__)

_PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # A frozen executor is given up after some 10 s.
    with spark_session(
        "local-cluster[2,1,1024]",
        spark__executor__heartbeatInterval="1s",
        spark__network__timeout="10s",
        spark__network__timeoutInterval="2s",
        spark__sql__execution__arrow__maxRecordsPerBatch="100",
    ) as session:
        yield session


def executor_pid() -> int:
    """The JVM above this Python worker."""
    pid = os.getpid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def wait_for(path: Path, pulse: threading.Event) -> None:
    for _ in range(int(_PATIENCE_S / 0.05)):
        if path.exists():
            return
        pulse.wait(0.05)
    raise AssertionError(f"nobody wrote {path.name}")


def with_fault(df: DataFrame, signals: Path, signal_number: int) -> DataFrame:
    """The same rows; the first attempt at partition 1 sends its own executor a signal in the middle of the write."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        pulse = threading.Event()
        for number, batch in enumerate(batches):
            first = context.partitionId() == 1 and context.attemptNumber() == 0
            if number == 3 and first:
                pid = executor_pid()
                (signals / "victim").write_text(str(pid))
                os.kill(pid, signal_number)
                if signal_number == signal.SIGSTOP:  # the Python worker lives on and goes on when the job is over
                    wait_for(signals / "go-on", pulse)
            yield batch
        if context.partitionId() == 1:
            (signals / f"rows-passed-{context.attemptNumber()}").write_text("")

    return df.mapInArrow(pass_on, df.schema)


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 2000, 1, 2).selectExpr("id", "cast(id % 3 as int) as k")


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.collect())


def test_an_executor_is_killed_in_the_middle_of_a_write(spark: SparkSession, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    signals = tmp_path / "signals"
    signals.mkdir()
    result = holdfast.write(with_fault(rows(spark), signals, signal.SIGKILL), target, partition_by="k")
    assert (signals / "victim").exists()
    assert result.rows == 2000
    assert ids(spark.read.parquet(target)) == [*range(2000)]
    assert_clean(target)


def test_a_zombie_executor_changes_nothing_after_the_decision(spark: SparkSession, tmp_path: Path) -> None:
    """C6: the frozen executor's worker ends its write when the job is long committed."""
    target = str(tmp_path / "t")
    signals = tmp_path / "signals"
    signals.mkdir()
    try:
        result = holdfast.write(with_fault(rows(spark), signals, signal.SIGSTOP), target)
        before = {path: (tmp_path / "t" / path).read_bytes() for path in visible(target)}
        pulse = threading.Event()
        (signals / "go-on").write_text("")
        wait_for(signals / "rows-passed-0", pulse)
    finally:
        os.kill(int((signals / "victim").read_text()), signal.SIGCONT)
    assert result.rows == 2000
    assert ids(spark.read.parquet(target)) == [*range(2000)]
    later = holdfast.write(rows(spark).filter("id = 0"), target)  # reaps what the zombie left
    after = {path: (tmp_path / "t" / path).read_bytes() for path in visible(target)}
    assert before.items() <= after.items()
    assert jobs_seen(target) == {result.job, later.job}
    assert ids(spark.read.parquet(target)) == sorted([*range(2000), *ids(rows(spark).filter("id = 0"))])
