"""Test that every benchmark runs at a small size and writes the documented fields. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import commit_memory, job_commit, namespace_batch, write_path
from benchmarks.job_files import JobShape
from benchmarks.measure import Result, run_in_turn, write_json
from benchmarks.write_tables import SCHEMAS
from tests.interceptors import ThrottleOptions
from tests.patience import PATIENCE_S

_FIELDS = {
    "benchmark",
    "title",
    "figure",
    "figure_name",
    "target",
    "met",
    "seconds",
    "median_seconds",
    "settings",
    "details",
    "measured_at",
    "machine",
}
_TOY = JobShape(tasks=2, files_per_task=2, file_bytes=64)


def _silent(line: str) -> None:
    """Discard the line."""


def _written(result: Result, folder: Path) -> dict[str, Any]:
    write_json([result], folder, folder / "all.json")
    found = json.loads((folder / f"{result.benchmark}.json").read_text())
    assert json.loads((folder / "all.json").read_text())[0]["figure"] == found["figure"]
    assert set(found) == _FIELDS
    return dict(found)


# --- measuring --------------------------------------------------------------------------------------------------------
def test_contenders_change_places_every_round() -> None:
    ran: list[tuple[str, int]] = []

    def contender(name: str, number: int) -> float:
        ran.append((name, number))
        return float(number)

    contenders = {name: lambda number, name=name: contender(name, number) for name in ("a", "b")}
    seconds = run_in_turn(contenders, 2, _silent)
    assert ran == [("b", 0), ("a", 0), ("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    assert seconds == {"a": [1.0, 2.0], "b": [1.0, 2.0]}, "the warm-up does not count"


def test_a_figure_is_met_up_to_its_target() -> None:
    result = Result(benchmark="x", title="", figure=0.0, figure_name="", target=0.5, seconds={"a": [1, 9, 2], "b": [4]})
    assert result.with_figure(result.ratio_of("a", "b")).met
    assert not result.with_figure(0.51).met


# --- each benchmark ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.s3
def test_job_commit_on_the_embedded_server(tmp_path: Path) -> None:
    found = _written(job_commit.measure_embedded_s3(1, 4, _silent, _TOY), tmp_path)
    assert set(found["median_seconds"]) == {"holdfast", "rename", "rename, bulk delete"}


def test_job_commit_on_the_throttled_store(tmp_path: Path) -> None:
    fast = ThrottleOptions(request_s=0.0, copy_bytes_per_s=1e9)
    found = _written(job_commit.measure_throttled(1, 4, _silent, _TOY, fast), tmp_path)
    assert found["settings"] == {"tasks": 2, "files": 4, "file_bytes": 64, "threads": 4}


def test_the_throttled_store_is_slow_as_in_the_paper() -> None:
    """Paper 000, IX: 6-10 MB/s for copies within S3."""
    assert job_commit.PAPER_S3.request_s == 0.05
    assert job_commit.PAPER_S3.copy_bytes_per_s == 10e6


def test_requests_of_a_job_commit(tmp_path: Path) -> None:
    found = _written(job_commit.measure_requests(4, JobShape(tasks=40, files_per_task=5, file_bytes=1)), tmp_path)
    assert found["details"]["complete_upload"] == 200
    assert found["met"], "a job commit needs little more than one request per file"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_memory_of_a_job_commit(tmp_path: Path) -> None:
    found = _written(commit_memory.measure_memory(4, _silent, [_TOY]), tmp_path)
    for store in ("uploads", "transactions"):
        assert found["details"][f"2 tasks x 2 files, {store}, MB above start"] >= 0


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_memory_of_a_transaction_of_a_namespace(tmp_path: Path) -> None:
    found = _written(namespace_batch.measure_batch(_silent, files=1200, databases=["sqlite"]), tmp_path)
    for changes in ("puts", "uploads"):
        assert found["details"][f"sqlite, {changes}, MB above start"] >= 0


@pytest.mark.slow
@pytest.mark.spark
def test_the_command_writes_a_table_with_both_writers(tmp_path: Path) -> None:
    """Runs in its own process, as `make bench` runs it, because it opens and stops a Spark session."""
    arguments = ["--only", "write", "--rows", "2000", "--rounds", "1", "--breakdown", "--folder", str(tmp_path)]
    every, results = tmp_path / "every.json", tmp_path / "results"
    command = [sys.executable, write_path.__file__, *arguments, "--results", str(results), "--json", str(every)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "measured side by side" in done.stdout
    found = json.loads((results / "write-events.json").read_text())
    assert set(found) == _FIELDS
    assert found["settings"]["rows"] == 1600
    assert {"holdfast, MB on disk", "spark, MB on disk", "holdfast, CPU s", "rows to noop, s", "and encoded, s"} <= set(
        found["details"]
    )
    assert [one["benchmark"] for one in json.loads(every.read_text())] == [f"write-{name}" for name in SCHEMAS]
    assert found["seconds"].keys() == {"holdfast", "spark"}
    assert {path.name for path in tmp_path.iterdir()} == {"every.json", "results"}, "tables are removed"


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        write_path.main(["--only", "reading"])
    assert "commit-memory" in capsys.readouterr().err
