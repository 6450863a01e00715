"""One sentence on the way to the driver, and the typed error again from what Spark says."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyspark.sql")

from pyspark.sql.types import LongType, StructField, StructType

from holdfast.errors import DestinationExistsError, InvalidRequestError, UnavailableError, UnsupportedError
from holdfast.spark.failures import errors_without_traceback, find_holdfast_error, refuse_save_as_table
from holdfast.spark.session import refuse_relative_path_over_connect
from holdfast.spark.source import HoldfastDataSource


def test_the_cause_is_left_out() -> None:
    failure = UnavailableError("the store is away: try later")
    failure.__cause__ = OSError("page of noise")
    with pytest.raises(UnavailableError) as caught, errors_without_traceback():
        raise failure
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_other_errors_keep_their_stack() -> None:
    with pytest.raises(ZeroDivisionError) as caught, errors_without_traceback():
        _ = 1 / 0
    assert not caught.value.__suppress_context__


def test_our_error_is_found_in_what_spark_says() -> None:
    text = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to initialize Python data source writer: "
        "holdfast.errors.DestinationExistsError: the destination holds data url='file:///x'\n SQLSTATE: 38000"
    )
    found = find_holdfast_error(RuntimeError(text))
    assert isinstance(found, DestinationExistsError)
    assert str(found) == "the destination holds data url='file:///x'"
    assert find_holdfast_error(RuntimeError("ValueError: no")) is None
    assert find_holdfast_error(RuntimeError("holdfast.errors.NoSuchError: no")) is None
    assert isinstance(find_holdfast_error(RuntimeError("holdfast.errors.InvalidRequestError: no")), InvalidRequestError)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "[X] Failed: Traceback\nModuleNotFoundError: No module named 'holdfast'\n SQLSTATE: 38000",
            "Spark's workers run a Python without holdfast: set PYSPARK_PYTHON",
        ),
        (
            "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run",
            "Spark's workers run another Python version than the driver: set PYSPARK_PYTHON",
        ),
    ],
)
def test_workers_that_cannot_run_ours_are_a_sentence(said: str, sentence: str) -> None:
    found = find_holdfast_error(RuntimeError(said))
    assert isinstance(found, UnsupportedError)
    assert str(found).startswith(sentence)


def test_a_module_that_the_users_own_code_lacks_is_not_ours_to_explain() -> None:
    assert find_holdfast_error(RuntimeError("Traceback\nModuleNotFoundError: No module named 'pandas'")) is None


SCHEMA = StructType([StructField("id", LongType())])
OWN, ROOT, STREAM = "spark.sql.execution.id", "spark.sql.execution.root.id", "sql.streaming.queryId"


class Context:
    """A task's context with some of Spark's properties."""

    def __init__(self, properties: dict[str, str]) -> None:
        self._properties = properties

    def getLocalProperty(self, key: str) -> str | None:
        return self._properties.get(key)


@pytest.mark.parametrize("properties", [{}, {OWN: "3", ROOT: "3"}, {OWN: "3"}, {OWN: "4", ROOT: "3", STREAM: "a-b"}])
def test_what_is_no_table(properties: dict[str, str]) -> None:
    """A plain save; Spark before it told the root; a batch of a stream, whose execution is around the write's."""
    refuse_save_as_table(Context(properties))  # type: ignore[arg-type]  # it is asked for properties only


def test_a_table_that_is_filled() -> None:
    with pytest.raises(UnsupportedError, match="could not be read: write with save"):
        refuse_save_as_table(Context({OWN: "4", ROOT: "3"}))  # type: ignore[arg-type]  # it is asked for properties only


def test_a_table_that_is_made_from_what_is_there() -> None:
    options = {"owner": "me", "provider": "holdfast", "location": "file:/data/t", "path": "file:/data/t"}
    with pytest.raises(UnsupportedError, match="could not be read: write with save"):
        HoldfastDataSource(options).schema()


def test_a_table_that_is_used() -> None:
    source = HoldfastDataSource({})
    calls: list[Any] = [lambda: source.reader(SCHEMA), lambda: source.writer(SCHEMA, False)]
    calls.append(lambda: source.streamWriter(SCHEMA, False))
    for call in calls:
        with pytest.raises(InvalidRequestError, match="where a table of its catalog is"):
            call()


def test_destinations_of_a_server() -> None:
    """A session of Spark Connect has no JVM of its own."""
    connect = object()
    for url in ("s3://bucket/t", "/data/t", "file:/data/t", "file:///data/t"):
        refuse_relative_path_over_connect(connect, url)
    for url in ("t", "./t", "file:t"):
        with pytest.raises(InvalidRequestError, match="another working directory"):
            refuse_relative_path_over_connect(connect, url)
