"""Start a quiet Spark session for a command, and stop it at the end, even after a signal."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from holdfast.errors import UnavailableError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_END_S = 10.0


@contextlib.contextmanager
def spark_session(
    app: str, master: str | None, *, debug: bool, conf: dict[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start a Spark session for one command, and stop it at the end.

    Args:
        app: the application's name in Spark.
        master: e.g. ``local[4]`` or ``spark://host:7077``; None for all cores of this machine.
        debug: whether to show Spark's log.
        conf: further Spark settings.

    Raises:
        UnavailableError: Spark does not start, or its master cannot be reached.
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
        logging.getLogger().addHandler(logging.NullHandler())  # py4j logs every interrupt; the command reports it
    try:
        with _hide_stderr_at_start(debug), _end_jvm_on_failure():
            spark = builder.getOrCreate()
    except (Py4JJavaError, PySparkRuntimeError) as error:
        if isinstance(error, PySparkRuntimeError) and master is None:
            raise  # most likely, Java is missing
        raise UnavailableError(
            "Spark did not start: check --master, and see Spark's log with --debug", master=master or "local[*]"
        ) from error
    if not debug:
        # The thread of PySpark's accumulator server prints a traceback when the JVM is gone.
        spark.sparkContext._accumulatorServer.handle_error = _ignore_socket_error  # type: ignore[method-assign]  # no other way
    with stop_spark_afterwards(spark):
        yield spark


@contextlib.contextmanager
def _end_jvm_on_failure() -> Iterator[None]:
    """End the JVM if Spark does not start, or if SIGINT or SIGTERM arrives while it starts; then raise.

    An exception that a signal handler raises while PySpark launches the JVM would leave the JVM behind: nothing knows
    its process then. So the handler only notes the signal, and a thread ends the JVM as soon as PySpark knows it.
    """
    from pyspark import SparkContext

    signals: list[int] = []
    is_over = threading.Event()

    def end_jvm_once_known() -> None:
        while not is_over.wait(0.05):
            if SparkContext._gateway is not None:
                SparkContext._gateway.proc.terminate()
                return

    def end_jvm_on_signal(number: int, frame: object) -> None:
        signals.append(number)
        threading.Thread(target=end_jvm_once_known, daemon=True).start()  # noqa: TID251  # it must not outlive the command

    before = {number: signal.signal(number, end_jvm_on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        try:
            yield
        finally:
            is_over.set()
            for number, handler in before.items():
                signal.signal(number, handler)
    except BaseException as error:
        _end_jvm(SparkContext._active_spark_context, SparkContext._gateway)
        if signals:
            raise _signal_exception(signals[0]) from error
        raise
    if signals:
        _end_jvm(SparkContext._active_spark_context, SparkContext._gateway)
        raise _signal_exception(signals[0])


def _ignore_socket_error(request: object, client_address: object) -> None:
    """Print no traceback: a replacement for socketserver's `handle_error`."""


@contextlib.contextmanager
def stop_spark_afterwards(spark: SparkSession) -> Iterator[None]:
    """Stop Spark at the end of the block; after SIGINT or SIGTERM, end its JVM and raise the signal's exception.

    Guarantee: after a signal, KeyboardInterrupt or SystemExit replaces any error of the block. This is needed because
    the signal may interrupt a call to the JVM, so that py4j's next call reads the wrong reply and fails; or it may
    arrive in a finalizer, where Python drops the exception.
    """
    signals: list[int] = []

    def end_by_signal(number: int, frame: object) -> NoReturn:
        signals.append(number)
        raise _signal_exception(number)

    for number in (signal.SIGINT, signal.SIGTERM):  # PySpark's SIGINT handler would call the JVM during another call
        signal.signal(number, end_by_signal)
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
        _end_jvm(spark.sparkContext, spark.sparkContext._gateway)
        raise _signal_exception(signals[0]) from failed


def _signal_exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def _end_jvm(context: SparkContext | None, gateway: JavaGateway | None) -> None:
    """End the JVM, and with it every task. After an interrupted call, the connection to the JVM is unusable.

    Args:
        context, gateway: None for what PySpark has not started yet.
    """
    if context is not None:
        context._accumulatorServer.shutdown()  # otherwise it waits for the JVM
    if gateway is None:
        return
    process = gateway.proc
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _hide_stderr_at_start(debug: bool) -> Iterator[None]:
    """Hide stderr while Spark starts: its launcher and JVM inherit stderr and print before any setting applies."""
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
