"""`show` formats a job's report, including reports of Hadoop's committers."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.commit import TWO_PHASE, CommitSettings, open_context
from holdfast.errors import HoldfastError
from holdfast.runtime.simulated import SimulatedClock
from holdfast.stores.interceptors import InterceptedStore, Operation
from tests.interceptors import Fault, FaultMode, Faulty
from tests.unit.cli.destinations import commit_table, run, start_table

# A shortened report of Hadoop's manifest committer: the five maps, sizes among the means, counters that are 0.
HADOOP = {
    "name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1",
    "timestamp": 1714000000000,
    "success": True,
    "date": "Thu Apr 25 00:26:40 BST 2024",
    "hostname": "pi5",
    "committer": "manifest_committer",
    "description": "",
    "jobId": "job_1714000000000_0001",
    "jobIdSource": "JobID",
    "state": "complete",
    "stage": "committer_commit_job",
    "metrics": {},
    "diagnostics": {"principal": "somebody", "fs.abfs.impl": "x"},
    "filenames": ["/terasort/part-r-00000"],
    "iostatistics": {
        "counters": {
            "committer_bytes_committed": 200021,
            "job_stage_setup": 1,
            "job_stage_setup.failures": 0,
            "op_rename": 3,
            "op_rename.failures": 1,
            "commit_file_rename_recovered": 0,
        },
        "gauges": {},
        "minimums": {"job_stage_setup.min": 571, "op_rename.min": 140, "committer_task_file_size.min": 100021},
        "maximums": {"job_stage_setup.max": 571, "op_rename.max": 2160, "committer_task_file_size.max": 100021},
        "meanstatistics": {
            "job_stage_setup.mean": {"samples": 1, "sum": 571},
            "op_rename.mean": {"samples": 3, "sum": 3000},
            "committer_task_file_size.mean": {"samples": 2, "sum": 200042},
        },
    },
}


def shown(path: Path, report: object, *arguments: str) -> list[list[str]]:
    path.write_text(json.dumps(report))
    result = run("show", str(path), *arguments)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= int(os.environ.get("COLUMNS", "80"))
    return [line.split("  ") for line in result.stdout.splitlines()]


def row(lines: list[list[str]], name: str) -> list[str]:
    return next([cell.strip() for cell in line if cell.strip()][1:] for line in lines if line[0].strip() == name)


def test_hadoops_report_with_its_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = shown(tmp_path / "report", HADOOP)
    assert row(lines, "job_stage_setup") == ["1", "571 ms", "571 ms", "571 ms", "571 ms"]
    assert row(lines, "op_rename") == ["3", "1", "140 ms", "1.0 s", "2.2 s", "3.0 s"]
    assert row(lines, "committer_task_file_size") == ["2", *["97.7 KiB"] * 3, "195.4 KiB"]
    assert row(lines, "committer_bytes_committed") == ["200,021 (195.3 KiB)"]
    assert row(lines, "principal") == ["somebody"]
    assert row(lines, "timestamp") == ["2024-04-24 23:06:40Z"]
    assert not any("commit_file_rename_recovered" in line[0] for line in lines)


def test_stages_come_before_operations(tmp_path: Path) -> None:
    names = [line[0].strip() for line in shown(tmp_path / "report", HADOOP)]
    assert names.index("job_stage_setup") < names.index("op_rename")


def test_a_report_with_invalid_statistics_is_shown_without_them(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text(json.dumps({**HADOOP, "iostatistics": {"counters": 3}}))
    result = run("show", str(path))
    assert result.exit_code == 0
    assert "job_1714000000000_0001" in result.stdout
    assert "statistics of the report cannot be read" in result.stderr


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """The report in its report directory of a job whose commit failed."""
    reports = tmp_path / "reports"
    ctx = open_context(str(tmp_path / "t"), settings=CommitSettings(report_dir=str(reports)))
    job, commits = start_table(ctx)
    fault = Fault(FaultMode.FAIL, Operation.PUT, "*/_holdfast/log/*", times=100)

    broken = replace(ctx.with_environment(clock=SimulatedClock()), store=InterceptedStore(ctx.store, Faulty(fault)))
    with pytest.raises(HoldfastError):
        TWO_PHASE.commit_job(broken, job, commits, len(commits))
    TWO_PHASE.abort_job(replace(ctx, reports=None), job)
    ctx.close()
    return reports / f"summary-{job.job}.json"


def test_a_failed_jobs_report_shows_the_error_and_with_debug_the_trace(failed: Path) -> None:
    """Scenario 74: the report of a job that failed."""
    result = run("show", str(failed))
    assert result.exit_code == 0
    assert result.stdout.startswith("the job failed in job_stage_decide: ")
    assert "Traceback" not in result.stdout
    assert "in commit_job" not in result.stdout
    assert result.stdout.rstrip().endswith("see --debug")
    with_trace = run("show", str(failed), "--debug").stdout
    assert "in commit_job" in with_trace
    assert with_trace.index("stack trace:") > with_trace.index("stage or operation")
    report = json.loads(run("show", str(failed), "--json").stdout)["report"]
    assert (report["success"], "stacktrace" in report["diagnostics"]) == (False, True)


def test_a_directory_of_reports_is_refused_and_one_file_suggested(failed: Path) -> None:
    result = run("show", str(failed.parent))
    assert result.exit_code == 2
    assert f"name one of its files, such as {failed.name}" in result.stderr


def test_a_successful_job_shows_its_requests(tmp_path: Path) -> None:
    commit_table(str(tmp_path / "t"))
    result = run("show", str(tmp_path / "t"))
    assert "job_stage_decide" in result.stdout
    assert "object_put_request" in result.stdout
    assert "failed in" not in result.stdout
