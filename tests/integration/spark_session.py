"""Start real Spark sessions for test modules, and check destinations."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext, cloudpickle
from pyspark.sql import SparkSession

from holdfast.commit import open_context, read_history, verify
from holdfast.commit.ids import file_owner
from tests.class_archive import java_options

ROOT = Path(__file__).parents[2]
# For Spark's processes: the source and the tests, and before them tests/warm, which every Python imports first.
PYTHONPATH = os.pathsep.join(str(ROOT / folder) for folder in ("tests/warm", "src", "checker/src", ""))


def new_session() -> SparkSession:
    """Return a new session of the application that all test modules share; the end of the test run stops it."""
    session = _start("local[2,4]", {}).newSession()
    # `save` looks up formats in the thread's active session, not in the frame's.
    SparkSession._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
    return session


@contextlib.contextmanager
def spark_session(master: str = "local[2,4]", **config: str) -> Iterator[SparkSession]:
    """Start a separate application for tests about one. It stops the shared one; `new_session` starts that again."""
    running = SparkContext._active_spark_context
    if running is not None:
        running.stop()
    session = _start(master, config)
    try:
        yield session
    finally:
        session.stop()


def _start(master: str, config: Mapping[str, str]) -> SparkSession:
    """Return the running application or start one whose workers use this interpreter and the same import path."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = PYTHONPATH
    settings = {key.replace("__", "."): value for key, value in config.items()}
    # PySpark starts the JVM with the settings of its first application, and all later applications of the process have
    # them, too: after a cluster with `spark.task.cpus=2`, the shared application would run one task at a time. So the
    # JVM gets what all applications have in common, and what only its start can give it.
    of_jvm = {**_common_settings(), **{key: settings[key] for key in settings if key.startswith("spark.driver.")}}
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(of_jvm.items())))
    builder = SparkSession.builder.master(master).appName("holdfast tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _common_settings() -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.executor.extraJavaOptions": java_options(),
        "spark.executorEnv.PYTHONPATH": PYTHONPATH,
        "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
    }


def by_value(module: str) -> None:
    """Pickle functions and classes of a test module by value, because Spark's processes cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[module])


def visible(url: Path | str) -> list[str]:
    """List the relative paths of the files that a plain reader sees in a directory."""
    root = Path(url)
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(path for path in found if not any(part.startswith(("_", ".")) for part in path.split("/")))


def assert_clean(url: Path | str, **store: Any) -> None:
    """Check that log and files agree and that no job has left data behind."""
    ctx = open_context(str(url), **store)
    try:
        report = verify(ctx)
        assert report.problems == []
        assert report.pending_uploads == 0
        assert read_history(ctx).open_jobs == []
    finally:
        ctx.store.close()


def jobs_seen(url: Path | str) -> set[str]:
    """Return the jobs whose files are visible."""
    owners = (file_owner(path) for path in visible(url))
    return {owner.job for owner in owners if owner is not None}
