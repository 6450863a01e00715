"""Write through the magic filesystem inside Spark's tasks; the job publishes the files of accepted attempts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas
import pytest

import holdfast
from holdfast.s3_server import SeaweedServer
from holdfast.stores.s3.options import S3Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.spark.task import Task
    from holdfast.spark.write import JobResult

pytestmark = [pytest.mark.spark, pytest.mark.s3]

BUCKET = "holdfast-magic-tasks"


def write_frame(task: Task, rows: Iterator[Any], options: dict[str, Any]) -> None:
    """Write a frame and a text per task; the first attempt at each fails after that."""
    from pyspark import TaskContext

    from holdfast.fs import MagicFileSystem

    fs = MagicFileSystem(**options)
    numbers = [row.id for row in rows]
    frame = pandas.DataFrame({"n": numbers})
    frame.to_parquet(f"{task.work_path}/part={task.partition}/frame.parquet", filesystem=fs)
    fs.pipe_file(f"{task.work_path}/texts/{task.partition}.txt", str(numbers).encode())
    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")


def run(spark: SparkSession, url: str, options: dict[str, Any]) -> JobResult:
    store = {name: value for name, value in options.items() if value is not None}
    with holdfast.job(spark, url, committer="magic", **store) as job:

        def save(task: Task, rows: Iterator[Any]) -> None:
            write_frame(task, rows, store)

        job.run(spark.range(0, 100, 1, 3).rdd, save)
    result = job.result
    assert result is not None
    return result


@pytest.fixture(params=["local", "weed"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    if request.param == "local":
        return f"file://{tmp_path}/out put", {}
    server: SeaweedServer = request.getfixturevalue("server")
    server.create_bucket(BUCKET)
    s3: S3Options = server.options
    return f"s3://{BUCKET}/out put", {
        "endpoint": s3.endpoint_url,
        "region": s3.region,
        "access_key": s3.access_key,
        "secret_key": s3.secret_key,
        "path_style": True,
    }


def test_attempts_that_fail_leave_nothing(spark: SparkSession, target: tuple[str, dict[str, Any]]) -> None:
    """Scenario 7 with real attempts: every file is visible exactly once."""
    from holdfast.fs import MagicFileSystem

    url, options = target
    result = run(spark, url, options)
    assert (result.files, result.finished) == (6, True)
    fs = MagicFileSystem(**options)
    names = [path.removeprefix(fs._strip_protocol(url)) for path in fs.find(url)]
    assert names == [
        "/_SUCCESS",
        *(f"/part={number}/frame.parquet" for number in range(3)),
        *(f"/texts/{number}.txt" for number in range(3)),
    ]
    frames = [pandas.read_parquet(f"{url}/part={number}/frame.parquet", filesystem=fs) for number in range(3)]
    assert sorted(pandas.concat(frames)["n"]) == list(range(100))
