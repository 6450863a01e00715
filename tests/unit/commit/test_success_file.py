"""Check reports: in ``_SUCCESS`` after a success, in the report directory after every job."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, Place
from holdfast.commit.success_file import read_success_file
from holdfast.errors import CorruptDataError, InvalidRequestError, UnavailableError
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import Fault, FaultMode, Faulty
from tests.simulation.world import HOME, World, run_job, run_tasks, start


def reporting(world: World, *faults: Fault) -> tuple[CommitContext, MemoryStore]:
    reports = MemoryStore()
    place = Place(store=InterceptedStore(reports, Faulty(*faults)), prefix="reports/", url="memory://reports")
    return replace(world.context(), reports=place), reports


def saved(reports: MemoryStore, job: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reports.get(f"reports/summary-{job}.json"))
    return found


def test_statistics_of_tasks_and_driver_are_in_success() -> None:
    """Scenario 72: counts and durations of tasks travel in manifests and add up."""
    world = World("upload")
    run_job(world.context(), "new")
    report = json.loads(world.store.get(f"{HOME}_SUCCESS"))
    statistics = report["iostatistics"]
    assert statistics["counters"]["committer_tasks_completed"] == 2
    assert statistics["counters"]["committer_task_file_count"] == 4
    assert statistics["counters"]["object_multipart_initiated"] == 4, "the tasks' own"
    assert statistics["counters"]["multipart_upload_completed"] == 4, "the driver's own"
    for kind in ("minimums", "maximums", "meanstatistics"):
        assert any(name.startswith("task_stage_commit") for name in statistics[kind])
        assert any(name.startswith("job_stage_publish") for name in statistics[kind])


@pytest.mark.parametrize("seq", ["9" * 5000, "-1", "1.5", "", 7, None, [], {}])
def test_a_damaged_report_stops_no_later_job(seq: object) -> None:
    """Defect: a number of more digits than Python reads failed all later jobs after their decision, and recovery."""
    world = World("upload")
    run_job(world.context(), "first")
    report = json.loads(world.store.get(f"{HOME}_SUCCESS"))
    report["diagnostics"]["holdfast.seq"] = seq
    world.store.put(f"{HOME}_SUCCESS", json.dumps(report).encode())
    run_job(world.context(), "second")
    assert json.loads(world.store.get(f"{HOME}_SUCCESS"))["diagnostics"]["holdfast.seq"] == "2"


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"name": "of another tool"}', b"{}", b"7"])
def test_a_success_file_in_another_format_is_no_report(data: bytes) -> None:
    world = World("upload")
    world.store.put(f"{HOME}_SUCCESS", data)
    with pytest.raises(CorruptDataError, match="cannot be read"):
        read_success_file(world.context())
    world.store.put(f"{HOME}_SUCCESS", b" ")
    assert read_success_file(world.context()) == {}


def test_report_directory_gets_a_copy() -> None:
    world = World("upload")
    ctx, reports = reporting(world)
    outcome = run_job(ctx, "new")
    assert saved(reports, outcome.job) == json.loads(world.store.get(f"{HOME}_SUCCESS"))


def test_a_job_that_fails_leaves_its_report() -> None:
    """Scenario 74: also when the commit fails, with the reason."""
    world = World("upload")
    ctx, reports = reporting(world)
    job = start(ctx)
    with pytest.raises(InvalidRequestError, match="not every task reported"):
        TWO_PHASE.commit_job(ctx, job, [], 2)
    report = saved(reports, job.job)
    assert report["success"] is False and report["state"] == "failed"
    assert "not every task reported" in report["diagnostics"]["exception"]
    assert "in check" in report["diagnostics"]["stacktrace"]


def test_an_abort_is_reported_with_its_stage() -> None:
    """Scenario 20: aborting twice is one abort; the report says that it failed, and where."""
    world = World("upload")
    ctx, reports = reporting(world)
    job = start(ctx)
    run_tasks(ctx, job, "new")
    for _ in range(2):
        assert not TWO_PHASE.abort_job(ctx, job).committed
    report = saved(reports, job.job)
    assert report["success"] is False and report["stage"] == "job_stage_abort"


def test_trouble_with_the_report_fails_no_job(caplog: pytest.LogCaptureFixture) -> None:
    world = World("upload")
    ctx, reports = reporting(world, Fault(FaultMode.FAIL, StoreOperation.PUT))
    assert run_job(ctx, "new").finished
    assert "could not be saved" in caplog.text
    assert not reports.list_page("").objects


def test_a_store_that_fails_in_the_commit_is_named_in_the_report() -> None:
    world = World("upload")
    ctx, reports = reporting(world)
    job = start(ctx)
    messages = run_tasks(ctx, job, "new")
    failing = replace(ctx, store=InterceptedStore(world.store, Faulty(Fault(FaultMode.FAIL, StoreOperation.LIST))))
    with pytest.raises(UnavailableError):
        TWO_PHASE.commit_job(failing, job, messages, 2)
    assert saved(reports, job.job)["diagnostics"]["exception"].startswith("UnavailableError")
