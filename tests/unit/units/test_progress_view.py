"""Following a job in the background: it shows what there is, never fails the job, and ends."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holdfast.errors import NotFoundError, UnavailableError
from holdfast.units.report import JobState, following, poll
from tests.patience import PATIENCE_S, wait_until
from tests.unit.units.watched_jobs import AtHand, WatchedJob, memory_db, text


def _job(lines: int = 40) -> WatchedJob:
    job = WatchedJob(memory_db(), text(lines))
    job.begin()
    return job


def test_a_state_is_of_one_instant() -> None:
    job = _job()
    job.run(1)
    state = poll(job.db.backend, "count")
    assert (state.done, state.finished, state.deferred, state.share()) == (10, 1, 0, 0.25)
    assert state.statistics.units == 10
    assert state.report_at(state.job.began_s + 5.0).units_per_s == 2.0
    for shard in (0, 2, 3):
        job.run(shard)
    job.end()
    ended = poll(job.db.backend, "count")
    assert (ended.done, ended.finished, ended.share(), ended.units()) == (40, 4, 1.0, 40)
    assert ended.report_at(ended.job.began_s + 10**6) == ended.report
    with pytest.raises(NotFoundError):
        poll(job.db.backend, "cuont")


def test_looks_are_shown_while_the_block_runs() -> None:
    job, hand = _job(), AtHand()
    seen: list[JobState] = []
    with following(job.db.backend, "count", seen.append, periodic=hand) as follower:
        for shard in range(4):
            assert hand.work is not None
            hand.work()
            job.run(shard)
    assert [state.done for state in seen] == [0, 10, 20, 30]
    assert (hand.work, follower.failure) == (None, None)


def test_a_look_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    job, hand = _job(), AtHand()
    database = job.db.backend
    whole = database.snapshot
    fails = iter([True, False])

    def snapshot() -> Any:
        if next(fails, False):
            raise UnavailableError("the database is restarting")
        return whole()

    monkeypatch.setattr(database, "snapshot", snapshot)
    seen: list[int] = []
    with following(database, "count", lambda state: seen.append(state.done), periodic=hand) as follower:
        assert hand.work is not None
        hand.work()
        assert isinstance(follower.failure, UnavailableError)
        hand.work()
        assert (seen, follower.failure) == ([0], None)


def test_who_shows_may_fail() -> None:
    job, hand = _job(), AtHand()

    def show(state: JobState) -> None:
        raise ValueError("the terminal is gone")

    with following(job.db.backend, "count", show, periodic=hand) as follower:
        assert hand.work is not None
        hand.work()
    assert isinstance(follower.failure, ValueError)


def test_an_error_of_the_block_passes() -> None:
    with pytest.raises(KeyError), following(_job().db.backend, "count", print, periodic=AtHand()):
        raise KeyError("the job failed")


def test_the_thread_ends_with_the_block() -> None:
    job = _job()
    threads = threading.active_count()
    seen = threading.Event()
    with following(job.db.backend, "count", lambda state: seen.set(), every_s=0.01):
        assert seen.wait(PATIENCE_S)
    wait_until(lambda: threading.active_count() == threads, "the thread is gone")
