"""A Spark session for a command: quiet, local unless told otherwise, stopped at the end."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_session"]


@contextlib.contextmanager
def spark_session(
    app: str, master: str | None, *, debug: bool, conf: dict[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session that a command has for itself.

    Args:
        app: name that Spark shows.
        master: e.g. ``local[4]`` or ``spark://host:7077``; None for all cores of this machine.
        debug: leave Spark's log on.
        conf: more settings.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app).master(master or "local[*]")
    builder = builder.config("spark.ui.enabled", "false").config(
        "spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower()
    )
    if not debug:
        builder = builder.config("spark.log.level", "OFF")
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    with _quiet_start(debug):
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def _quiet_start(debug: bool) -> Iterator[None]:
    """Spark's launcher and JVM print to stderr before any setting reaches them; they inherit it when they start."""
    if debug:
        yield
        return
    kept = os.dup(2)
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(devnull)
