"""The functions of a `foreachBatch` are told apart: none takes what another one has done for its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.spark.units import streams
from holdfast.spark.units.streams import StreamBatchJob, find_current_stream_batch


@pytest.fixture(autouse=True)
def _own_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_calls", {})
    monkeypatch.setattr(streams, "_read_batch_creation_time", lambda _spark, _query, _number: "7")
    monkeypatch.setattr(streams, "is_classic_session", lambda spark: hasattr(spark, "sparkContext"))


def batch_of(execution: str, query: str = "query") -> Any:
    properties = {"sql.streaming.queryId": query, "spark.sql.execution.id": execution}
    context = SimpleNamespace(applicationId="application", getLocalProperty=properties.get)
    return SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))


def test_a_name_is_used_once_in_each_call_of_a_query() -> None:
    assert find_current_stream_batch("n", batch_of("1"), 0) == StreamBatchJob("n-query-0", "7")
    for _ in range(2):
        with pytest.raises(InvalidRequestError, match="give each a job name of its own"):
            find_current_stream_batch("n", batch_of("1"), 0)
    assert find_current_stream_batch("m", batch_of("1"), 0).job == "m-query-0"
    assert find_current_stream_batch("n", batch_of("1", "other"), 0).job == "n-other-0"
    assert find_current_stream_batch("n", batch_of("2"), 0).job == "n-query-0", "Spark repeats the batch"
    assert find_current_stream_batch("n", batch_of("3"), 1).job == "n-query-1"


def test_over_spark_connect_the_advice_lets_no_row_count_twice() -> None:
    batch: Any = SimpleNamespace(sparkSession=object())
    with pytest.raises(UnsupportedError, match="let the source begin behind the rows that have counted"):
        find_current_stream_batch("words", batch, 0)
