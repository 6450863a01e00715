"""Test that the comparison of committers runs, and that its claims about copies and requests hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.committer_runs import FAR_RENAME, FAR_UPLOAD, Shape
from benchmarks.committers import COMPARED, main, measure_committers


def test_every_committer_is_measured_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--tasks", "3", "--files", "2", "--latency-ms", "0", "--world", "far", "--results", str(tmp_path)]
    assert main(arguments) == 0
    document = json.loads((tmp_path / "committers.json").read_text())
    assert {run["committer"] for run in document["runs"]} == set(COMPARED)
    assert (tmp_path / "committers.png").read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMPARED)


def test_no_copy_and_hardly_more_than_a_request_a_file() -> None:
    """The promise of two_phase and magic: no copy, and at most 1.2 requests per file in the job commit."""
    shape = Shape(tasks=200, files_per_task=5, file_bytes=10, threads=8)
    runs = measure_committers(shape, [replace(FAR_UPLOAD, request_s=0)], lambda line: None, ["two_phase", "magic"])
    assert [run.committer for run in runs] == ["two_phase", "magic"]
    for run in runs:
        assert run.copied_bytes == 0 and "copy" not in run.job_requests and "copy" not in run.task_requests
        assert run.job_requests_per_file(shape) <= 1.2


def test_renames_are_measured_where_they_are_one_step() -> None:
    shape = Shape(tasks=2, files_per_task=2, file_bytes=10, threads=2)
    runs = measure_committers(shape, [replace(FAR_RENAME, request_s=0)], lambda line: None)
    assert {run.committer for run in runs} == {"two_phase", "manifest", "file-v1", "file-v2"}
    assert all(run.copied_bytes == 0 for run in runs)
