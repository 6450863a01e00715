"""Write the flights as a Spark driver in a process of its own, in which everything goes wrong.

The first attempt of task 0 dies in the middle of its write, that of task 1 fails after its upload, and the job commit
stops when some of its uploads are completed, until the process is killed. Each fault leaves a mark, an empty file.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.demo.run import COMPLETED_AT_DEATH, MARKS, PARTITION_COLUMN, SCHEMA
from holdfast.options.write import parse_write_options
from holdfast.spark.session import register
from holdfast.spark.source import HoldfastDataSource
from holdfast.spark.table_job import TaskReport
from holdfast.spark.writer import HoldfastWriter
from holdfast.stores.base import ObjectInfo, Part
from holdfast.stores.s3.store import S3Store

_MASTER = "local[2,4]"  # two threads; at most four attempts at each task
_ROWS_PER_FILE = 5_000  # several files in each task, so that an attempt that dies leaves some behind
_BATCHES_BEFORE_DEATH = 5
_SPARK_TYPES = {pa.int32(): "int", pa.string(): "string", pa.timestamp("us", "UTC"): "timestamp"}
SPARK_SCHEMA = ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in SCHEMA)


def _touch_mark(name: str) -> None:
    (Path(os.environ[MARKS]) / name).touch()


class FaultyDataSource(HoldfastDataSource):
    """Holdfast's data source with injected faults, for the demo."""

    @classmethod
    def name(cls) -> str:
        return "holdfast_demo"

    def writer(self, schema: StructType, overwrite: bool) -> HoldfastWriter:
        """Return a writer for an ordinary job, with injected faults."""
        return _FaultyWriter(parse_write_options(self.options, overwrite), schema)


class _FaultyWriter(HoldfastWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        context = TaskContext.get()
        assert context is not None, "Spark calls write in tasks only"
        task = context.partitionId() if context.attemptNumber() == 0 else None
        report = super().write(_yield_until_death(iterator) if task == 0 else iterator)
        if task == 1:
            _touch_mark("failed-task")
            raise RuntimeError("the demo makes this attempt fail after its upload and before its report")
        return report

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        complete, left = S3Store.complete_upload, threading.Semaphore(COMPLETED_AT_DEATH)

        def complete_upload_or_hang(store: S3Store, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
            if not left.acquire(blocking=False):
                _touch_mark("stopped-commit")
                threading.Event().wait()
            return complete(store, key, upload_id, parts)

        S3Store.complete_upload = complete_upload_or_hang  # type: ignore[assignment,method-assign]  # here only
        super().commit(messages)


def _yield_until_death(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        if number == _BATCHES_BEFORE_DEATH:
            _touch_mark("killed-task")
            os._exit(137)  # without exception or cleanup, like the kernel's out-of-memory killer
        yield batch


def main() -> None:
    """Write a CSV file to a destination. Arguments: the file, the destination's url, Spark's work directory."""
    source, url, work = sys.argv[1:]
    spark = (
        SparkSession.builder.appName("holdfast demo")
        .master(_MASTER)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", work)
        .config("spark.sql.warehouse.dir", f"{work}/warehouse")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.files.maxPartitionBytes", "8m")  # four tasks
        .getOrCreate()
    )
    register(spark)
    spark.dataSource.register(FaultyDataSource)
    rows = spark.read.csv(source, header=True, schema=SPARK_SCHEMA, nullValue="NA")
    options = {"partitionBy": PARTITION_COLUMN, "maxRecordsPerFile": str(_ROWS_PER_FILE)}
    rows.write.format(FaultyDataSource.name()).mode("append").options(**options).save(url)
