"""Add statistics, collect them from threads and store calls, and encode them."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given

from holdfast.commit.statistics import (
    NO_STATISTICS,
    STORE_STATISTICS,
    DurationStatistics,
    Statistics,
    StatisticsRecorder,
)
from holdfast.errors import NotFoundError
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.clocks import SimulatedClock
from tests.unit.commit.statistics_values import statistics


def _fail_after(clock: SimulatedClock, seconds: float) -> None:
    clock.sleep(seconds)
    raise NotFoundError("gone")


def test_durations_add_up_like_the_runs_they_stand_for() -> None:
    total = DurationStatistics(2, 1, 30, 10, 20) + DurationStatistics(1, 0, 3, 3, 3)
    assert total == DurationStatistics(3, 1, 33, 3, 20)


@given(statistics(), statistics(), statistics())
def test_adding_is_associative_and_nothing_adds_nothing(a: Statistics, b: Statistics, c: Statistics) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + NO_STATISTICS == a == NO_STATISTICS + a


def test_of_two_gauges_the_later_one_stays() -> None:
    assert (Statistics(gauges={"a": 1, "b": 2}) + Statistics(gauges={"a": 3})).gauges == {"a": 3, "b": 2}


def test_what_is_timed_is_counted_and_failures_too() -> None:
    clock = SimulatedClock(step_s=0.0)
    recorder = StatisticsRecorder(clock)
    for seconds in (0.010, 0.030):
        with recorder.time_block("job_stage_setup"):
            clock.sleep(seconds)
    with pytest.raises(NotFoundError), recorder.time_block("job_stage_setup"):
        _fail_after(clock, 0.020)
    assert recorder.snapshot().durations == {"job_stage_setup": DurationStatistics(3, 1, 60, 10, 30)}


def test_many_short_runs_add_up_to_their_time() -> None:
    clock = SimulatedClock(step_s=0.0)
    recorder = StatisticsRecorder(clock)
    for _ in range(1000):
        with recorder.time_block("op"):
            clock.sleep(0.0004)
    assert recorder.snapshot().durations["op"] == DurationStatistics(1000, 0, 400, 0, 0)


def test_threads_share_a_recorder() -> None:
    recorder = StatisticsRecorder(SimulatedClock(step_s=0.0))

    def work() -> None:
        for _ in range(500):
            recorder.count("files", by=2)
            with recorder.time_block("op"):
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = recorder.snapshot()
    assert (taken.counters, taken.durations["op"].count) == ({"files": 8000}, 4000)


def test_a_snapshot_does_not_change_any_more() -> None:
    recorder = StatisticsRecorder(SimulatedClock(step_s=0.0))
    recorder.count("files")
    taken = recorder.snapshot()
    recorder.count("files")
    assert taken.counters == {"files": 1}


def test_every_call_of_a_store_has_a_name() -> None:
    assert {operation.value for operation in StoreOperation} <= set(STORE_STATISTICS)
    assert len(set(STORE_STATISTICS.values())) == len(STORE_STATISTICS)


def test_calls_of_a_store_are_timed_under_hadoops_names() -> None:
    recorder = StatisticsRecorder(SimulatedClock(step_s=0.0))
    store = InterceptedStore(MemoryStore(), recorder.observed)
    store.put("a", b"123")
    assert store.get("a") == b"123"
    with pytest.raises(NotFoundError):
        store.head("b")
    upload_id = store.create_upload("b")
    part = store.upload_part("b", upload_id, 1, b"12345")
    store.complete_upload("b", upload_id, [part])
    store.delete_many(["a", "b"])
    store.delete("c")
    taken = recorder.snapshot()
    assert {name: (duration.count, duration.failures) for name, duration in taken.durations.items()} == {
        "object_put_request": (1, 0),
        "action_http_get_request": (1, 0),
        "object_metadata_request": (1, 1),
        "object_multipart_initiated": (1, 0),
        "multipart_upload_part_put": (1, 0),
        "multipart_upload_completed": (1, 0),
        "object_bulk_delete_request": (1, 0),
        "object_delete_request": (1, 0),
    }
    assert taken.counters == {"object_put_bytes": 8, "object_delete_objects": 3}
