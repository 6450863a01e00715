"""A real Spark session for a test module, and what its tests ask of a destination."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from holdfast.commit import open_context, read_history, verify
from holdfast.commit.ids import file_owner

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def spark_session(master: str = "local[2,4]", **config: str) -> Iterator[SparkSession]:
    """A session whose workers run this interpreter and can import what the test process can."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    os.environ["PYTHONPATH"] = paths
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.executorEnv.PYTHONPATH": paths,
        "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
        **{key.replace("__", "."): value for key, value in config.items()},
    }
    builder = SparkSession.builder.master(master).appName("holdfast tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def by_value(module: str) -> None:
    """Functions and classes of a test module travel to Spark's processes whole: they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[module])


def visible(url: Path | str) -> list[str]:
    """Relative paths of what a plain reader sees in a directory."""
    root = Path(url)
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(path for path in found if not any(part.startswith(("_", ".")) for part in path.split("/")))


def assert_clean(url: Path | str, **store: Any) -> None:
    """The log and the files agree, and no job has left anything behind."""
    ctx = open_context(str(url), **store)
    try:
        report = verify(ctx)
        assert report.problems == []
        assert report.pending_uploads == 0
        assert read_history(ctx).open_jobs == []
    finally:
        ctx.store.close()


def jobs_seen(url: Path | str) -> set[str]:
    """The jobs whose files are visible."""
    owners = (file_owner(path) for path in visible(url))
    return {owner.job for owner in owners if owner is not None}
