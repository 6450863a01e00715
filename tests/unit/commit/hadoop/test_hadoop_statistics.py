"""Test statistics as IOStatistics: round trips, and records that Hadoop wrote."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given

from holdfast.commit.statistics import (
    NO_STATISTICS,
    DurationStatistics,
    Statistics,
    decode_statistics,
    encode_statistics,
)
from tests.unit.commit.statistics_values import statistics


@given(statistics())
def test_ours_come_back_as_they_were(value: Statistics) -> None:
    assert decode_statistics(json.loads(json.dumps(encode_statistics(value)))) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_duration_is_spread_over_hadoops_maps() -> None:
    value = Statistics(counters={"a": 2}, gauges={"g": -4}, durations={"op": DurationStatistics(3, 1, 14, 2, 9)})
    assert encode_statistics(value) == {
        "counters": {"a": 2, "op": 3, "op.failures": 1},
        "gauges": {"g": -4},
        "minimums": {"op.min": 2},
        "maximums": {"op.max": 9},
        "meanstatistics": {"op.mean": {"samples": 3, "sum": 14}},
    }


def test_all_maps_are_there_when_nothing_was_counted() -> None:
    """Hadoop's reader asks for each of them."""
    assert encode_statistics(NO_STATISTICS) == {
        "counters": {},
        "gauges": {},
        "minimums": {},
        "maximums": {},
        "meanstatistics": {},
    }


def test_hadoop_times_failures_apart() -> None:
    """As Hadoop writes it: failed runs in ``.failures.…``, -1 and 0 samples for what never ran."""
    value = {
        "counters": {"op": 5, "op.failures": 2, "idle": 0, "idle.failures": 0, "committer_files_committed": 7},
        "gauges": {},
        "minimums": {"op.min": 4, "op.failures.min": 30, "idle.min": -1},
        "maximums": {"op.max": 6, "op.failures.max": 50, "idle.max": -1},
        "meanstatistics": {
            "op.mean": {"samples": 3, "sum": 15},
            "op.failures.mean": {"samples": 2, "sum": 80},
            "idle.mean": {"samples": 0, "sum": 0},
        },
    }
    assert decode_statistics(value) == Statistics(
        counters={"idle": 0, "idle.failures": 0, "committer_files_committed": 7},
        durations={"op": DurationStatistics(5, 2, 95, 4, 50)},
    )


def test_what_hadoop_leaves_out_is_made_good() -> None:
    assert decode_statistics(None) == decode_statistics({}) == NO_STATISTICS
    assert decode_statistics({"counters": None, "later": {"a": 1}}) == NO_STATISTICS
    sizes = {"meanstatistics": {"committer_task_file_size.mean": {"samples": 4, "sum": 42}}}
    assert decode_statistics(sizes).durations == {"committer_task_file_size": DurationStatistics(4, 0, 42, 10, 10)}


@pytest.mark.parametrize(
    "value",
    [
        [],
        "none",
        {"counters": 3},
        {"counters": {"a": "3"}},
        {"counters": {"a": True}},
        {"counters": {"a": -3}},
        {"counters": {"a": 2**63}},
        {"counters": {f"c{number}": 1 for number in range(10_001)}},
        {"minimums": {"a.min": 1.5}},
        {"meanstatistics": {"a.mean": 3}},
        {"meanstatistics": {"a.mean": {"samples": 1}}},
        {"meanstatistics": {"a.mean": {"samples": -1, "sum": 3}}},
    ],
)
def test_other_things_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"statistic|mean|counters"):
        decode_statistics(value)
