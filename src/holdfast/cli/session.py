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

__all__ = ["spark_session", "stopped"]

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
    if not debug:
        # An accumulator's thread that finds the JVM gone would print a traceback.
        spark.sparkContext._accumulatorServer.handle_error = _say_nothing  # type: ignore[method-assign]  # no other way
    with stopped(spark):
        yield spark


def _say_nothing(request: object, client_address: object) -> None:
    """In place of a traceback."""


@contextlib.contextmanager
def stopped(spark: SparkSession) -> Iterator[None]:
    """Stop Spark at the end; after SIGINT or SIGTERM end its JVM, and the block as that signal ends a command.

    Guarantee: that end wins over whatever the block itself came to, such as py4j's errors: a signal breaks into a call
    to the JVM, whose answer the next call then takes for its own, or is dropped where it meets a finalizer.
    """
    signals: list[int] = []

    def end(number: int, frame: object) -> NoReturn:
        signals.append(number)
        raise _end_of(number)

    for number in (signal.SIGINT, signal.SIGTERM):  # PySpark's own for SIGINT calls the JVM in the middle of a call
        signal.signal(number, end)
    failed: BaseException | None = None
    try:
        try:
            yield
        finally:
            if not signals:
                spark.stop()
    except BaseException as error:
        if not signals:
            raise
        failed = error
    if signals:
        _end_jvm(spark)
        raise _end_of(signals[0]) from failed


def _end_of(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def _end_jvm(spark: SparkSession) -> None:
    """End the JVM, and with it every task: after an interrupted call nobody can rely on talking to it any more."""
    spark.sparkContext._accumulatorServer.shutdown()  # it would wait for the JVM
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
