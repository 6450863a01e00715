"""The progress bar of a job: drawn on a terminal, and only there."""

from __future__ import annotations

import io

import pytest

from holdfast.spark.units.runner import job_progress
from tests.unit.units.watched_jobs import AtHand, WatchedJob, memory_db, text


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _drawn(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO) -> str:
    for name, value in (("COLUMNS", "120"), ("LINES", "25"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", stderr)
    job, hand = WatchedJob(memory_db(), text(40), name="count:1"), AtHand()
    job.begin()
    with job_progress(job.db.backend, job.name, periodic=hand):
        for shard in range(4):
            if hand.work is not None:
                hand.work()
            job.run(shard)
    return stderr.getvalue()


def test_the_bar_shows_units_and_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _drawn(monkeypatch, _Terminal())
    assert "count:1: 0 units, 0 of 4 tasks" in drawn
    assert "count:1: 30 units, 3 of 4 tasks, 0.0% conflicts" in drawn
    assert "75%" in drawn


def test_nothing_is_drawn_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _drawn(monkeypatch, io.StringIO()) == ""


def test_a_closed_stream_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = _Terminal()
    closed.close()
    monkeypatch.setattr(closed, "isatty", lambda: (_ for _ in ()).throw(ValueError("I/O operation on closed file")))
    monkeypatch.setattr("sys.stderr", closed)
    with job_progress(memory_db().backend, "count"):
        pass
    monkeypatch.setattr("sys.stderr", None)
    with job_progress(memory_db().backend, "count"):
        pass
