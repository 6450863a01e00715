"""Real Spark sessions for test modules, and what their tests ask of a destination."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkContext, cloudpickle
from pyspark.sql import SparkSession

from holdfast.commit import open_context, read_history, verify
from holdfast.commit.ids import file_owner
from tests.class_archive import java_options

ROOT = Path(__file__).parents[2]
# Of Spark's processes: what tests import, and before it the module that all Pythons run first.
PYTHONPATH = os.pathsep.join(str(ROOT / folder) for folder in ("tests/warm", "src", ""))


def new_session() -> SparkSession:
    """A session in the application that the test modules share; the end of the test run stops it."""
    session = _start("local[2,4]", {}).newSession()
    # `save` looks formats up in the active session of the thread, whatever the frame's own is.
    SparkSession._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
    return session


@contextlib.contextmanager
def spark_session(master: str = "local[2,4]", **config: str) -> Iterator[SparkSession]:
    """An application of its own, where one is the subject; it ends the shared one, which `new_session` starts again."""
    running = SparkContext._active_spark_context
    if running is not None:
        running.stop()
    session = _start(master, config)
    try:
        yield session
    finally:
        session.stop()


def _start(master: str, config: Mapping[str, str]) -> SparkSession:
    """The running application or a new one, whose workers run this interpreter and import what this process can."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = PYTHONPATH
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.executor.extraJavaOptions": java_options(),
        "spark.executorEnv.PYTHONPATH": PYTHONPATH,
        "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
        **{key.replace("__", "."): value for key, value in config.items()},
    }
    builder = SparkSession.builder.master(master).appName("holdfast tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


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
