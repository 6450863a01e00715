"""Run a streaming query in its own process: ``python stream_driver.py SETTINGS_JSON``.

It reads the files of a directory, one a batch, and writes them through Holdfast until none is left, then prints what
`holdfast.read` finds. On request the whole application dies with SIGKILL at a store call of a task or of a commit.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

import holdfast
from holdfast.spark import register
from holdfast.spark.source import HoldfastDataSource
from holdfast.spark.writer import HoldfastStreamWriter


@dataclass(frozen=True)
class Death:
    """The moment at which the application dies: its nth store call in a phase, before or after the effect.

    A file that grows by one byte per call counts the calls of all processes.
    """

    phase: str
    nth: int
    after: bool
    counter: str
    driver_group: int

    def await_call(self) -> None:
        """Count the store calls of this process from now on."""
        from holdfast.stores.s3.store import S3Store

        if hasattr(S3Store, "death_counts"):
            return  # Spark reuses the process for the next batch
        S3Store.death_counts = True  # type: ignore[attr-defined]  # a mark of this test's
        file = os.open(self.counter, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def counted(method: Any) -> Any:
            def run(*args: Any, **kwargs: Any) -> Any:
                os.write(file, b".")
                hit = os.fstat(file).st_size >= self.nth
                if hit and not self.after:
                    self.kill()
                result = method(*args, **kwargs)
                if hit:
                    self.kill()
                return result

            return run

        for name in (
            *("put", "get", "head", "list_page", "delete", "delete_many", "create_upload", "upload_part"),
            *("complete_upload", "abort_upload", "list_uploads_page"),
        ):
            setattr(S3Store, name, counted(getattr(S3Store, name)))

    def kill(self) -> None:
        """Kill the driver and its JVM first, then Spark's daemon and workers, this process included."""
        os.killpg(self.driver_group, signal.SIGKILL)
        os.killpg(0, signal.SIGKILL)


class DyingWriter(DataSourceStreamArrowWriter):
    """A writer that delegates everything and counts the store calls of one phase."""

    def __init__(self, inner: HoldfastStreamWriter, death: Death) -> None:
        self.inner = inner
        self.death = death

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        if self.death.phase == "write":
            self.death.await_call()
        return self.inner.write(iterator)

    def commit(self, messages: Any, batchId: int) -> None:
        if self.death.phase == "commit":
            self.death.await_call()
        self.inner.commit(messages, batchId)

    def abort(self, messages: Any, batchId: int) -> None:
        self.inner.abort(messages, batchId)


class DyingSource(DataSource):
    """The Holdfast data source with an option `death`."""

    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DyingWriter:
        options = dict(self.options)
        death = Death(**json.loads(options.pop("death")))
        return DyingWriter(HoldfastDataSource(options).streamWriter(schema, overwrite), death)


def main() -> None:
    settings = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]").appName("stream")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    spark.dataSource.register(DyingSource)
    rows = spark.readStream.schema("id long, name string").option("maxFilesPerTrigger", 1).json(settings["input"])
    writer = rows.repartition(2).writeStream.options(**settings["options"])
    death = settings["death"]
    if death is None:
        writer = writer.format("holdfast")
    else:
        writer = writer.format("dying").option("death", json.dumps({**death, "driver_group": os.getpgid(0)}))
    writer.trigger(availableNow=True).start(settings["url"]).awaitTermination()
    found = holdfast.read(spark, settings["url"], **settings["access"]).collect()
    print(json.dumps(sorted(row["id"] for row in found)))
    spark.stop()


if __name__ == "__main__":
    main()
