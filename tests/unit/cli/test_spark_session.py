"""A signal ends a command and its Spark, whatever error Spark raises because of it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.spark_session import stop_spark_afterwards


class _Spark:
    """The parts of a session that its end needs; the JVM is a sleeping process."""

    def __init__(self) -> None:
        self.stops = 0
        self.jvm = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.sparkContext = SimpleNamespace(
            _accumulatorServer=SimpleNamespace(shutdown=lambda: None), _gateway=SimpleNamespace(proc=self.jvm)
        )

    def stop(self) -> None:
        self.stops += 1


@pytest.fixture
def spark() -> Iterator[Any]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    found = _Spark()
    try:
        yield found
    finally:
        found.jvm.kill()
        found.jvm.wait()
        for number, handler in kept.items():
            signal.signal(number, handler)


_ENDS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}


@pytest.mark.parametrize("number", _ENDS)
def test_a_signal_ends_the_jvm_and_the_command(spark: Any, number: signal.Signals) -> None:
    with pytest.raises(_ENDS[number]) as raised, stop_spark_afterwards(spark):
        signal.raise_signal(number)
    assert (spark.stops, spark.jvm.poll() is None) == (0, False)
    if number == signal.SIGTERM:
        assert raised.value.code == 143  # type: ignore[attr-defined]  # a SystemExit


def _call_the_jvm(number: signal.Signals) -> None:
    try:
        signal.raise_signal(number)
    finally:
        {}["m"]


@pytest.mark.parametrize("number", _ENDS)
def test_a_signal_replaces_the_error_of_py4j(spark: Any, number: signal.Signals) -> None:
    """Seen in practice: py4j's next call read the reply of the interrupted call, and raised `KeyError`."""
    with pytest.raises(_ENDS[number]), stop_spark_afterwards(spark):
        _call_the_jvm(number)
    assert (spark.stops, spark.jvm.poll() is None) == (0, False)


@pytest.mark.parametrize("number", _ENDS)
def test_a_signal_that_a_finalizer_drops(spark: Any, number: signal.Signals) -> None:
    with pytest.raises(_ENDS[number]), stop_spark_afterwards(spark), contextlib.suppress(KeyboardInterrupt, SystemExit):
        signal.raise_signal(number)
    assert (spark.stops, spark.jvm.poll() is None) == (0, False)


def test_a_signal_while_spark_is_stopped(spark: Any) -> None:
    spark.stop = lambda: signal.raise_signal(signal.SIGTERM)
    with pytest.raises(SystemExit), stop_spark_afterwards(spark):
        pass
    assert spark.jvm.poll() is not None


def test_without_a_signal_spark_is_stopped(spark: Any) -> None:
    with stop_spark_afterwards(spark):
        pass
    with pytest.raises(KeyError), stop_spark_afterwards(spark):
        {}["m"]
    assert (spark.stops, spark.jvm.poll()) == (2, None)
