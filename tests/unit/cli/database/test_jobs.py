"""`database watch`, `jobs`, `forget` and `stats`, on SQLite."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidRequestError
from holdfast.records import open_database
from holdfast.runtime import Environment
from holdfast.units.jobs import list_jobs
from holdfast.units.work_list import open_work_list
from tests.patience import PATIENCE_S
from tests.unit.cli.destinations import on_screen, run
from tests.unit.units.watched_jobs import TABLE, RunningClock, WatchedJob, text

LINES = 40


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with an empty table."""
    found = f"sqlite://{tmp_path}/s.db?synchronous=normal"
    with open_database(found, create=True) as db:
        db.create_table(TABLE)
    return found


@contextlib.contextmanager
def _job(url: str, **more: Any) -> Iterator[WatchedJob]:
    with open_database(url) as db:
        job = WatchedJob(db, text(LINES), **more)
        job.begin()
        yield job


def _finish(url: str) -> None:
    with _job(url) as job:
        for step in job.steps():
            step()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> RunningClock:
    """The clock of all databases that commands open: whoever waits lets a job go on."""
    found = RunningClock()
    before = Environment()

    def opened(url: str, *, create: bool = False) -> Any:
        return open_database(url, create=create, environment=replace(before, clock=found))

    monkeypatch.setattr("holdfast.records.open_database", opened)
    return found


def _steps(url: str) -> list[Callable[[], object]]:
    """Return what a job does while somebody watches, each with a connection of its own."""

    def step(number: int) -> None:
        with _job(url) as job:
            job.steps()[number]()

    return [lambda number=number: step(number) for number in range(5)]


# --- watch ------------------------------------------------------------------------------------------------------------
def test_watch_prints_a_document_for_each_view(url: str, clock: RunningClock) -> None:
    with _job(url):
        clock.meanwhile = _steps(url)
    result = run("database", "watch", url, TABLE, "--job", "count", "--top", "2", "--json")
    assert result.exit_code == 0, result.output
    views = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(view["done"], view["sum"], view["is_final"]) for view in views] == [
        *((number, 10 * number, False) for number in (0, 10, 20, 30, 40)),
        (40, 400, True),
    ]
    assert [view["share"] for view in views] == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    last = views[-1]
    assert len(last["top"]) == 2 and last["top"][0]["value"] == max(one["value"] for one in last["top"])
    assert (last["tasks"], last["tasks_finished"], last["units"]) == (4, 4, 40)


def test_each_view_is_a_few_lines_and_a_table(url: str, clock: RunningClock) -> None:
    with _job(url):
        clock.meanwhile = _steps(url)
    result = run("database", "watch", url, TABLE, "--job", "count", "--top", "2", "--every", "5s")
    views = [view.splitlines() for view in result.stdout.split("\n\n")]
    assert views[0][:2] == ["count: 0 of 40 units done", "0 rows, sum 0"]
    assert views[1][0] == "count: 10 of 40 units done, 2/s"
    assert views[5][0].startswith("count: 40 of 40 units done") and views[5][1].endswith("sum 400")
    assert views[5][2].split() == ["row", "value"] and len(views[5]) == 5
    assert clock.waits[:3] == pytest.approx([5.0] * 3, abs=0.1)


def test_names_cannot_affect_the_terminal(url: str, clock: RunningClock) -> None:
    with open_database(url) as db:
        db.put(TABLE, "[red]\x1b[2J", 5)
        db.put(TABLE, ("a", 1), 4)
    with _job(url):
        clock.meanwhile = _steps(url)
    shown = on_screen("database", "watch", url, TABLE, "--job", "count", "--top", "80", columns=100)
    assert "[red]\\x1b[2J" in shown and '["a", 1]' in shown


def test_a_column_of_texts_is_refused(url: str) -> None:
    with open_database(url) as db:
        db.put(TABLE, "a", "many")
    result = run("database", "watch", url, TABLE, "--json")
    assert result.exit_code == 2
    assert "choose another column" in json.loads(result.stdout)["error"]


def test_a_job_that_has_not_begun_is_an_error(url: str) -> None:
    result = run("database", "watch", url, TABLE, "--job", "cuont")
    assert result.exit_code == 2
    assert "no such job" in result.stderr


def test_ctrl_c_ends_the_watch(url: str) -> None:
    """Without a job, it watches without end; the signal arrives after the first view."""
    command = [sys.executable, "-m", "holdfast.cli", "database", "watch", url, TABLE, "--json", "--every", "1h"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"rows": 0, "sum": 0, "top": []}
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, json.loads(rest)["kind"], errors.strip()) == (130, "Interrupted", "interrupted")


# --- jobs -------------------------------------------------------------------------------------------------------------
def test_jobs_are_listed_with_their_progress(url: str) -> None:
    assert run("database", "jobs", url).stdout.startswith("no jobs")
    _finish(url)
    with _job(url, name="half") as job:
        job.run(0)
        job.run(1)
    found = [json.loads(line) for line in run("database", "jobs", url, "--json").stdout.splitlines()]
    assert [(one["job"], one["finished"], one["share"], one["done"]) for one in found] == [
        ("count", True, 1.0, 40),
        ("half", False, 0.5, 20),
    ]
    assert found[1]["ended"] is None and found[0]["tasks_finished"] == 4
    lines = run("database", "jobs", url).stdout.splitlines()
    assert lines[0].split()[:5] == ["job", "kind", "state", "done", "units"]
    assert lines[2].split()[:6] == ["half", "map", "not", "finished", "50%", "20"]


def test_a_job_that_failed_at_its_last_unit_is_not_said_to_be_complete(url: str) -> None:
    def fails(txn: Any, key: int, value: object) -> None:
        assert key < 299

    with open_database(url) as db:
        job = WatchedJob(db, text(300), shards=1, function=fails)
        with pytest.raises(InvalidRequestError, match="unit=299"):
            job.run(0)
    shown = [run("database", *command).stdout for command in (("jobs", url), ("jobs", url, "count"))]
    assert all("99%" in one and "100%" not in one and "not finished" in one for one in shown)


def test_a_job_is_shown_by_task_and_in_all(url: str) -> None:
    _finish(url)
    found = json.loads(run("database", "jobs", url, "count", "--json").stdout)
    assert (found["job"], found["finished"], found["total"]["units"], len(found["tasks"])) == ("count", True, 40, 4)
    assert found["units_per_s"] > 0 and found["commit_latency_s"] > 0
    assert sum(found["shares"].values()) == pytest.approx(1.0, abs=0.001)
    lines = run("database", "jobs", url, "count").stdout.splitlines()
    assert any(line.split()[:2] == ["units", "40"] for line in lines)
    assert sum(line.split()[:2] == [str(task), "10"] for line in lines for task in range(4)) == 4


def test_a_job_that_is_not_finished_is_shown_too(url: str) -> None:
    with _job(url) as job:
        job.run(2)
    found = json.loads(run("database", "jobs", url, "count", "--json").stdout)
    assert (found["finished"], found["done"], found["share"], found["ended"]) == (False, 10, 0.25, None)
    assert "not finished" in run("database", "jobs", url, "count").stdout


def test_a_missing_job_is_an_error(url: str) -> None:
    _finish(url)
    for command in ("jobs", "forget"):
        result = run("database", command, url, "cuont")
        assert result.exit_code == 2
        assert "did you mean count" in result.stderr


def test_a_job_is_forgotten(url: str) -> None:
    _finish(url)
    result = run("database", "forget", url, "count")
    assert result.stdout == "forgot the job count: what its units have written stays\n"
    with open_database(url) as db:
        assert list_jobs(db.backend) == []
        assert sum(int(str(columns["value"])) for _row, columns in db.scan(TABLE)) == 400


# --- stats ------------------------------------------------------------------------------------------------------------
def test_stats_count_everything(url: str) -> None:
    _finish(url)
    with open_database(url) as db:
        db.create_table("empty")
        db.put(TABLE, "x", "y", column="other")
        rows = len(list(db.scan(TABLE)))
        open_work_list(db, "todo", create=True).add_many([("a", None), ("b", None)])
    found = json.loads(run("database", "stats", url, "--json").stdout)
    assert [(one["table"], one["rows"], one["cells"]) for one in found["tables"]] == [
        ("empty", 0, 0),
        (TABLE, rows, rows),
    ]
    assert (found["jobs"], found["jobs_finished"]) == (1, 1)
    assert found["work_lists"] == [{"list": "todo", "waiting": 2, "claimed": 0}]
    shown = run("database", "stats", url).stdout
    assert "jobs: 1, of which 1 are finished" in shown
    assert any(line.split() == ["todo", "2", "0"] for line in shown.splitlines())
