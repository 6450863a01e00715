"""Reports of jobs: their figures, and what they survive."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from holdfast.errors import CorruptDataError
from holdfast.units.jobs import Job
from holdfast.units.progress import Statistics, TaskProgress
from holdfast.units.report import JobReport, JobState, latency_text

JOB = Job(name="count", id=7, shards=2, kind="map", began_s=1000.0)


def _task(units: int, **more: float) -> Statistics:
    found = Statistics(units=units, groups=10, conflicts=2, reruns=3)
    for name, value in more.items():
        setattr(found, name, value)
    return found


def test_the_figures_of_the_job_are_those_of_its_tasks() -> None:
    report = JobReport.of_tasks(JOB, [_task(100), _task(300)], 8.0)
    assert (report.job, report.kind, report.number, report.total.units) == ("count", "map", 2, 400)
    assert (report.units_per_s, report.total.group_size) == (50.0, 20.0)
    assert report.total.conflict_share == pytest.approx(4 / 24)


def test_units_are_counted_by_the_progress() -> None:
    """The figures of a worker that has died may lack some units; those of the progress are in each unit's commit."""
    progress = TaskProgress(last=b"x", done=11, deferred=[b"a"], statistics=_task(7))
    assert JobReport.of_progress(JOB, [progress], 1.0).total.units == 11


def test_shares_are_of_all_recorded_time() -> None:
    whole = Statistics(run_s=10.0, function_s=4.0, read_s=3.0, commit_s=2.0)
    assert list(whole.time_shares.values()) == pytest.approx([0.4, 0.3, 0.2, 0.1])
    still_running = Statistics(run_s=0.0, function_s=0.1, read_s=0.1, commit_s=0.2)
    assert list(still_running.time_shares.values()) == [0.25, 0.25, 0.5, 0.0]
    assert list(Statistics().time_shares.values()) == [0.0] * 4


def test_a_report_comes_back_from_json() -> None:
    report = JobReport.of_tasks(JOB, [_task(100, run_s=2.5, function_s=1.25), Statistics()], 8.0)
    assert JobReport.of(json.loads(json.dumps(report.to_json()))) == report


def test_the_figures_of_each_task_are_in_json_unless_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.units.report._MOST_TASKS", 2)
    shown = [JobReport.of_tasks(JOB, [_task(100)] * tasks, 8.0).to_json()["tasks"] for tasks in (1, 2, 3)]
    assert [len(tasks) for tasks in shown] == [1, 2, 0]


def test_a_printed_report_is_its_summary() -> None:
    report = JobReport.of_tasks(JOB, [_task(100), _task(300)], 8.0)
    shown = str(report).splitlines()
    assert str(replace(report, ran=False)).splitlines()[len(shown) :] == [
        "the job was finished before: nothing ran this time"
    ]
    assert shown[:4] == ["count, map", "units: 400 in 8.0 s, 50/s", "tasks: 2", "commits: 20 with 20.0 units each"]


def test_the_report_of_a_job_that_went_on_tells_its_own_figures_from_those_of_all_runs() -> None:
    shown = replace(JobReport.of_tasks(JOB, [_task(200)], 4.0), earlier=168).summary()
    assert shown[:2] == [
        ("units", "32 in 4.0 s, 8/s"),
        ("earlier runs", "168 units, which all figures below include"),
    ]


def test_a_report_without_units_has_no_figures() -> None:
    report = JobReport.of_tasks(JOB, [], 0.0)
    assert report.units_per_s == 0.0
    assert JobReport.of(report.to_json()) == report
    assert dict(report.summary())["commit latency"] == "0 ms"


def test_of_very_many_tasks_only_the_total_is_stored() -> None:
    report = JobReport.of_tasks(JOB, [_task(1)] * 1001, 8.0)
    found = JobReport.of(report.to_json())
    assert (found.tasks, found.number, found.total) == ((), 1001, report.total)


def test_a_summary_names_what_happened() -> None:
    more = {"deferred": 3, "locked": 4, "stale": 5, "unknown": 6, "unavailable": 7}
    task = _task(1500, skipped=2, run_s=4.0, commit_s=1.0, **more)
    assert replace(JobReport.of_tasks(JOB, [task], 2.0), earlier=500).summary() == [
        ("units", "1,000 in 2.0 s, 500/s"),
        ("earlier runs", "500 units, which all figures below include"),
        ("tasks", "1"),
        ("commits", "10 with 150.0 units each"),
        ("conflicts", "2, 16.7% of all commits"),
        ("runs repeated", "3"),
        ("commit latency", "56 ms"),
        ("time in tasks", "0% functions, 0% reads, 25% commits, 75% other"),
        ("deferred", "3"),
        ("with locks", "4"),
        ("stale runs", "5"),
        ("lost replies", "6"),
        ("waits for the database", "7"),
    ]
    assert len(JobReport.of_tasks(JOB, [_task(1500)], 2.0).summary()) == 7, "nothing is said of what did not happen"


def test_figures_for_programs_are_rounded() -> None:
    found = JobReport.of_tasks(JOB, [_task(2001, groups=7, run_s=3.0, function_s=1.23456789)], 9.87654321).to_json()
    names = ("seconds", "units_per_s", "conflict_share", "group_size", "shares")
    assert {name: found[name] for name in names} == {
        "seconds": 9.876543,
        "units_per_s": 202.601,
        "conflict_share": 0.222222,
        "group_size": 285.857,
        "shares": {"functions": 0.4115, "reads": 0.0, "commits": 0.0, "other": 0.5885},
    }
    assert found["total"] == {**_task(2001, groups=7, run_s=3.0).to_json(), "function_s": 1.234568}


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [(0.0, "0 ms"), (0.0005, "0.5 ms"), (0.09445, "94 ms"), (0.1, "0.1 s"), (0.156, "0.16 s"), (12.3, "12 s")],
)
def test_a_latency_is_told_with_two_digits(duration_s: float, text: str) -> None:
    assert latency_text(duration_s) == text


def test_the_state_of_a_job_is_that_of_all_its_tasks() -> None:
    one = TaskProgress(last=b"x", done=11, deferred=[b"a"], statistics=Statistics(), is_finished=True)
    other = TaskProgress(last=b"y", done=5, deferred=[b"b", b"c"], statistics=Statistics())
    state = JobState(JOB, [one, other])
    assert (state.done, state.deferred, state.finished) == (16, 3, 1)
    assert JobState(JOB, [other, one]).finished == 1


@pytest.mark.parametrize(
    "damage",
    [{"tasks": None}, {"tasks": [3]}, {"total": None}, {"number": "x"}, {"seconds": None}, {"total": {"units": []}}],
)
def test_a_damaged_report_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(CorruptDataError, match="report"):
        JobReport.of({**JobReport.of_tasks(JOB, [_task(1)], 1.0).to_json(), **damage})
    with pytest.raises(CorruptDataError):
        JobReport.of({})


def test_the_report_of_a_finished_job_is_the_recorded_one() -> None:
    """Later, its duration does not grow."""
    recorded = JobReport.of_tasks(JOB, [_task(100)], 8.0)
    tasks = [TaskProgress(done=100, statistics=_task(100))]
    assert JobState(job=JOB, tasks=tasks, report=recorded).report_at(5000.0) is recorded
    assert JobState(job=JOB, tasks=tasks, report=None).report_at(1020.0).units_per_s == 5.0
