"""Write the flights once, as a Spark driver in a separate process, which the demo kills.

Run it as ``python -m holdfast.demo.driver TASK.json``. It reports its progress by appending lines of JSON to a file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from holdfast.demo.faults import FaultyDataSource
from holdfast.demo.flights import PARTITION_COLUMN, SPARK_SCHEMA
from holdfast.demo.task import DriverTask
from holdfast.spark.session import register
from holdfast.spark.write import write

_MASTER = "local[2,4]"  # two threads; at most four attempts at each task
_ROWS_PER_FILE = 5_000  # several files in each task, so that an attempt that dies leaves some behind


def _session(task: DriverTask) -> SparkSession:
    return (
        SparkSession.builder.appName("holdfast demo")
        .master(_MASTER)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", task.work)
        .config("spark.sql.warehouse.dir", f"{task.work}/warehouse")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.files.maxPartitionBytes", "8m")  # four tasks
        .getOrCreate()
    )


def _tell(task: DriverTask, event: str, **values: object) -> None:
    with Path(task.events).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"event": event, **values}) + "\n")


def _write_with_faults(rows: DataFrame, task: DriverTask) -> None:
    spark = rows.sparkSession
    register(spark)
    spark.dataSource.register(FaultyDataSource)
    options = {
        "endpoint": task.endpoint,
        "partitionBy": PARTITION_COLUMN,
        "maxRecordsPerFile": str(_ROWS_PER_FILE),
        "faultMarks": str(task.marks),
    }
    rows.write.format(FaultyDataSource.name()).mode("append").options(**options).save(task.url)


def _failed_attempts(spark: SparkSession) -> int:
    """Return how many task attempts failed, as Spark counted them."""
    tracker: Any = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(None)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numFailedTasks for stage in stages if stage)


def main(path: str) -> None:
    """Run the task that the file at `path` describes."""
    task = DriverTask(**json.loads(Path(path).read_text(encoding="utf-8")))
    spark = _session(task)
    try:
        rows = spark.read.csv(task.source, header=True, schema=SPARK_SCHEMA, nullValue="NA")
        _tell(task, "writing")
        if task.marks:
            _write_with_faults(rows, task)
        else:
            write(
                rows,
                task.url,
                partition_by=PARTITION_COLUMN,
                endpoint=task.endpoint,
                max_records_per_file=_ROWS_PER_FILE,
            )
        _tell(task, "written", failed_attempts=_failed_attempts(spark))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
