"""A Spark session for a command: quiet, local unless told otherwise, stopped at the end."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from holdfast.errors import UnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_session"]

_END_S = 10.0


@contextlib.contextmanager
def spark_session(
    app: str, master: str | None, *, debug: bool, conf: dict[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session that a command has for itself.

    Raises:
        UnavailableError: Spark does not start, or its master cannot be reached.

    Args:
        app: name that Spark shows.
        master: e.g. ``local[4]`` or ``spark://host:7077``; None for all cores of this machine.
        debug: leave Spark's log on.
        conf: more settings.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkRuntimeError
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
    if not debug:
        logging.getLogger().addHandler(logging.NullHandler())  # py4j logs every interrupt; the sentence is ours to say
    try:
        with _quiet_start(debug):
            spark = builder.getOrCreate()
    except (Py4JJavaError, PySparkRuntimeError) as error:
        if isinstance(error, PySparkRuntimeError) and master is None:
            raise  # Java is missing, most likely
        raise UnavailableError(
            "Spark did not start: check --master, and with --debug what Spark says", master=master or "local[*]"
        ) from error
    interrupts: list[int] = []

    def interrupt(number: int, frame: object) -> NoReturn:
        interrupts.append(number)
        raise KeyboardInterrupt

    # PySpark's own handler calls the JVM in the middle of another call to it, which fails as often as not.
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield spark
    except (KeyboardInterrupt, SystemExit):
        _end_jvm(spark)
        raise
    except BaseException as error:
        if interrupts:  # raised where Python drops it, in a finalizer say; the JVM got the signal too, and failed
            _end_jvm(spark)
            raise KeyboardInterrupt from error
        spark.stop()
        raise
    spark.stop()


def _end_jvm(spark: SparkSession) -> None:
    """End the JVM, and with it every task: after an interrupted call nobody can rely on talking to it any more."""
    spark.sparkContext._accumulatorServer.shutdown()  # it would print that the JVM is gone
    process: subprocess.Popen[bytes] = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # it was started
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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
