"""Measure one write of a table to an S3 server, by Hadoop's S3A magic committer or one of Holdfast's committers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.cpu_time import CpuMeter
from benchmarks.read_tables import FLAT
from benchmarks.spark_session import open_session
from holdfast.s3_server import SeaweedServer
from holdfast.spark.session import register
from holdfast.stores.base import iter_objects
from holdfast.stores.s3.store import S3Store

__all__ = ["OURS", "PEER", "TABLES", "MeteredServer", "PeerRun", "Table", "open_peer_session", "take_run"]

PEER = "S3A magic"
OURS = {"two_phase": "two_phase", "our magic": "magic"}
_BUCKET = "peers"
_S3A = {
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "spark.hadoop.fs.s3a.committer.name": "magic",
    "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a": "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory",
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    "spark.sql.parquet.output.committer.class": "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table to write.

    Attributes:
        title: a description in one line.
        frame: returns the rows.
        partition_by: the partition column, empty for none.
        rows, files: the expected numbers afterwards; None for any number of files.
    """

    title: str
    frame: Callable[[SparkSession], DataFrame]
    partition_by: str = ""
    rows: int
    files: int | None = None


def _large(rows: int) -> Table:
    return Table(
        title=f"{rows:,} rows x {len(FLAT)} columns",
        frame=lambda spark: spark.range(0, rows, 1, 2).selectExpr(*FLAT),
        rows=rows,
    )


def _small(files: int, *, tasks: int = 10, rows_per_file: int = 100) -> Table:
    rows = files * rows_per_file
    return Table(
        title=f"{files:,} small files in {files:,} partitions from {tasks} tasks",
        frame=lambda spark: spark.range(0, rows, 1, tasks).selectExpr(*FLAT[:4], f"id DIV {rows_per_file} AS part"),
        partition_by="part",
        rows=rows,
        files=files,
    )


TABLES: dict[str, Callable[[int], Table]] = {"large": _large, "small": _small}


@dataclass(frozen=True, kw_only=True)
class PeerRun:
    """The cost of one write.

    Attributes:
        total_s: duration of the whole call.
        after_s: duration after the end of the last task.
        cpu_s: CPU seconds of the JVM, its Python workers and the server.
        requests: the number of requests that the server counted.
    """

    total_s: float
    after_s: float
    cpu_s: float
    requests: int


class MeteredServer(SeaweedServer):
    """A server that counts the requests of all clients."""

    def __enter__(self) -> MeteredServer:
        self.start()
        return self

    def _arguments(self, data: Path) -> list[str]:
        found = super()._arguments(data)
        self._metrics_port = next(port for port in iter(_free_port, 0) if port not in self._ports)
        return [*found, f"-metricsPort={self._metrics_port}"]

    def requests(self) -> int:
        """Return the number of requests to S3 since the start."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return int(
            sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("SeaweedFS_s3_request_total{"))
        )

    def store(self) -> S3Store:
        """Create the bucket for the runs and return it."""
        self.create_bucket(_BUCKET)
        return S3Store(_BUCKET, self.options)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextlib.contextmanager
def open_peer_session(server: SeaweedServer, home: Path, jars: Sequence[str]) -> Iterator[SparkSession]:
    """Open a session for the server; with `jars`, also for Hadoop's S3A and its magic committer."""
    options = server.options
    keys = {"endpoint": options.endpoint_url, "access.key": options.access_key, "secret.key": options.secret_key}
    s3a = {
        **_S3A,
        **{f"spark.hadoop.fs.s3a.{name}": str(value) for name, value in keys.items()},
        "spark.driver.extraClassPath": os.pathsep.join(jars),
    }
    with open_session(home, s3a if jars else None) as spark:
        register(spark)
        yield spark


def take_run(spark: SparkSession, server: MeteredServer, writer: str, table: Table, place: str) -> PeerRun:
    """Write `table` to `place` with `writer`, and check the result."""
    frame = table.frame(spark)
    store = server.store()
    try:
        context = spark.sparkContext
        context.setJobGroup(place, place)
        with CpuMeter() as meter:
            requests, cpu_s, started_s = server.requests(), meter.seconds(), time.time()
            _write(frame, server, writer, table, place)
            ended_s = time.time()
            run = PeerRun(
                total_s=ended_s - started_s,
                after_s=ended_s - _last_task_s(spark, place),
                cpu_s=meter.seconds() - cpu_s,
                requests=server.requests() - requests,
            )
        _check(store, writer, table, place)
    finally:
        store.close()
    return run


def _write(frame: DataFrame, server: SeaweedServer, writer: str, table: Table, place: str) -> None:
    if writer == PEER:
        plain = frame.write.mode("append")
        (plain.partitionBy(table.partition_by) if table.partition_by else plain).parquet(f"s3a://{_BUCKET}/{place}")
        return
    options = server.options
    given = {
        "endpoint": options.endpoint_url,
        "region": options.region,
        "accessKey": options.access_key,
        "secretKey": options.secret_key,
        "committer": OURS[writer],
        **({"partitionBy": table.partition_by} if table.partition_by else {}),
    }
    frame.write.format("holdfast").mode("append").options(**given).save(f"s3://{_BUCKET}/{place}")


def _last_task_s(spark: SparkSession, group: str) -> float:
    """Return the end of the last stage of a job group in seconds since the epoch, from Spark's own status store."""
    context: Any = spark.sparkContext
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        ends = [
            store.lastStageAttempt(stage).completionTime() for job in jobs if job is not None for stage in job.stageIds
        ]
        if ends and all(end.isDefined() for end in ends):
            return float(max(end.get().getTime() for end in ends)) / 1000
        time.sleep(0.01)  # the status store is updated a little later
    raise AssertionError("Spark does not report the end of the last task")


def _check(store: S3Store, writer: str, table: Table, place: str) -> None:
    found = [one.key for one in iter_objects(store, f"{place}/") if one.key.endswith(".parquet")]
    assert found, place
    assert table.files is None or len(found) == table.files, (place, len(found))
    success = json.loads(store.get(f"{place}/_SUCCESS"))
    wanted = "magic" if writer == PEER else OURS[writer]
    assert success["committer"] == wanted, success["committer"]
