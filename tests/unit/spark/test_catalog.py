"""How a table of Spark's catalog is told from a destination, without Spark; `test_spark_catalog` has the real one."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import LongType, StructField, StructType

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.spark.catalog import refuse_table
from holdfast.spark.session import require_reachable
from holdfast.spark.source import HoldfastDataSource

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
    refuse_table(Context(properties))  # type: ignore[arg-type]  # it is asked for properties only


def test_a_table_that_is_filled() -> None:
    with pytest.raises(UnsupportedError, match="could not be read: write with save"):
        refuse_table(Context({OWN: "4", ROOT: "3"}))  # type: ignore[arg-type]  # it is asked for properties only


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
        require_reachable(connect, url)
    for url in ("t", "./t", "file:t"):
        with pytest.raises(InvalidRequestError, match="another working directory"):
            require_reachable(connect, url)
