"""Watching a table while units write to it: every view is of one instant, and the last one is exact."""

from __future__ import annotations

import itertools
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import CorruptDataError, FencedError, InvalidRequestError, NotFoundError, UnavailableError
from holdfast.records import open_database
from holdfast.records.batches import iter_records
from holdfast.records.database import Database
from holdfast.records.keys import cells_range
from holdfast.runtime import Alarm, Environment, SeededRandom
from holdfast.transactions.base import Commit
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import WORK_LIST, begin_job, end_job, forget_job, read_task_progress
from holdfast.units.report import JobReport, poll
from holdfast.units.unit import Unit, UnitSettings
from holdfast.units.watch import LargestValueRow, View, summarize_column, watch
from holdfast.units.work_list import create_work_list, open_work_list
from holdfast.units.work_task import WorkTask
from tests.clocks import CountingIds, never
from tests.forgetful_database import ForgetfulDatabase
from tests.patience import PATIENCE_S, wait_until
from tests.unit.units.watched_jobs import TABLE, RunningClock, WatchedJob, add_words, memory_db, text
from tests.units_world import finish

WORDS = 10


def _world(lines: int = 120, **more: Any) -> tuple[WatchedJob, RunningClock]:
    clock = RunningClock()
    job = WatchedJob(memory_db(clock), text(lines), **more)
    job.begin()
    clock.meanwhile = job.steps()
    return job, clock


def _counted(job: WatchedJob) -> Counter[str]:
    return Counter(word for line in job.lines for word in line)


# --- views ------------------------------------------------------------------------------------------------------------
def test_views_follow_the_job_and_the_last_one_is_exact() -> None:
    job, clock = _world()
    views = list(watch(job.db, TABLE, job="count", top=3))
    assert [view.done for view in views] == [0, 30, 60, 90, 120, 120]
    assert [view.sum for view in views] == [WORDS * view.done for view in views]
    assert [view.is_final for view in views] == [False] * 5 + [True]
    last = views[-1]
    counted = _counted(job)
    expected = sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:3]
    assert last.top == [LargestValueRow(word, count) for word, count in expected]
    assert (last.rows, last.share, last.ends_in_s) == (len(counted), 1.0, 0.0)
    assert clock.waits == pytest.approx([1.0] * 5, abs=0.1)


def test_the_number_of_units_is_known_from_the_begin() -> None:
    job, _clock = _world()
    views = list(watch(job.db, TABLE, job="count"))
    assert views[0].share == 0.0 and views[0].ends_in_s is None
    assert [view.share for view in views[1:]] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert views[1].state is not None and (views[1].state.finished, views[1].state.job.shards) == (1, 4)
    rate = views[2].units_per_s
    assert rate is not None and views[2].ends_in_s == pytest.approx(60 / rate)
    assert views[4].ends_in_s == 0.0 and not views[4].is_final


def test_views_within_a_task() -> None:
    """The input of a task is taken up lazily: a watcher sees whole groups only, and each with its progress."""
    job, clock = _world(lines=40, shards=1)
    clock.meanwhile = []
    views = watch(job.db, TABLE, job="count")
    seen: list[View] = []

    def units() -> Iterator[Unit]:
        for unit in job.units(0):
            seen.append(next(views))
            yield unit

    job.run(0, units())
    assert [view.sum for view in seen] == [WORDS * view.done for view in seen]
    assert len({view.done for view in seen}) > 3
    job.end()
    assert next(views).is_final
    assert next(views, None) is None


def test_an_idle_job_is_seen() -> None:
    job, clock = _world()
    clock.meanwhile = []
    views = list(itertools.islice(watch(job.db, TABLE, job="count", every_s=5.0), 4))
    assert views[3].units_per_s == 0.0 and views[3].ends_in_s is None


def test_a_failover_that_loses_units_does_not_make_the_rate_negative() -> None:
    clock = RunningClock()
    database = ForgetfulDatabase(keeps=False)
    db = Database(database, "memory://test", Environment(clock=clock, ids=CountingIds(), chance=SeededRandom(1)))
    db.create_table(TABLE)
    job = WatchedJob(db, text(120))
    job.run(0)
    kept = database.newest
    job.run(1)
    clock.meanwhile = [lambda: database.forget(database.newest - kept), lambda: job.run(1)]
    views = list(itertools.islice(watch(db, TABLE, job="count"), 3))
    assert [view.done for view in views] == [60, 30, 60]
    assert views[1].units_per_s is None and views[1].ends_in_s is None
    assert views[2].units_per_s == pytest.approx(30, rel=0.1)


def test_a_slow_reader_rests_as_long_as_it_reads() -> None:
    job, clock = _world()
    clock.step_s = 3.0  # each look at the clock takes so long
    for every_s in (1.0, 10.0, 100.0):
        list(itertools.islice(watch(job.db, TABLE, job="count", every_s=every_s), 2))
        assert clock.waits[-1] == pytest.approx(max(6.0, every_s - 6.0))


# --- what is read -----------------------------------------------------------------------------------------------------
def test_without_a_job_there_is_no_end() -> None:
    db = memory_db()
    db.put(TABLE, "a", 3)
    db.put(TABLE, "b", 0.5)
    db.put(TABLE, "b", "not a finite number", column="other")
    views = list(itertools.islice(watch(db, TABLE), 3))
    assert {(view.rows, view.sum, view.is_final, view.share) for view in views} == {(2, 3.5, False, None)}
    assert views[0].done == 0
    assert views[0].top == [LargestValueRow("a", 3), LargestValueRow("b", 0.5)]


def test_another_column_and_a_table_with_history() -> None:
    db = memory_db()
    db.create_table("past", history=True)
    for value in (1, 2, 7):
        db.put("past", ("a", 1), value, column="n")
    db.put("past", "gone", 5, column="n")
    db.delete("past", "gone", column="n")
    db.put("past", "b", 9, column="nn")
    view = next(watch(db, "past", column="n"))
    assert (view.rows, view.sum, view.top) == (1, 7, [LargestValueRow(("a", 1), 7)])


def test_a_sum_beyond_all_floats_is_refused() -> None:
    db = memory_db()
    db.put(TABLE, "a", 1e308)
    db.put(TABLE, "b", 10**308)
    with pytest.raises(InvalidRequestError, match="too large"):
        next(watch(db, TABLE))
    db.put(TABLE, "b", 10**400)
    with pytest.raises(InvalidRequestError, match="too large"):
        next(watch(db, TABLE))


def test_equal_values_come_in_the_order_of_their_rows() -> None:
    db = memory_db()
    for row in "dbeac":
        db.put(TABLE, row, 1)
    assert [one.row for one in next(watch(db, TABLE, top=3)).top] == ["a", "b", "c"]


@pytest.mark.parametrize("value", ["x", True, [1], float("inf"), float("nan")])
def test_a_value_that_is_no_number_is_refused(value: Any) -> None:
    db = memory_db()
    db.put(TABLE, "a", 1)
    db.put(TABLE, "b", value)
    with pytest.raises(InvalidRequestError, match="not a finite number") as caught:
        next(watch(db, TABLE))
    assert "row='b'" in str(caught.value)


def test_a_value_that_cannot_be_read_is_named() -> None:
    db = memory_db()
    db.create_table("t")
    db.put("t", "a", 1)
    [(key, _record)] = iter_records(db.backend, *cells_range(db.table("t").id))
    db.backend.commit(Commit(puts={key: b"f too long"}))
    with pytest.raises(CorruptDataError, match=r"cannot be read.*row='a' column='value'"):
        next(watch(db, "t"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"top": 0},
        {"top": 10_001},
        {"top": True},
        {"every_s": -1.0},
        {"every_s": 10**7},
        {"every_s": True},
        {"top": 2.5},
        {"every_s": float("nan")},
    ],
)
def test_wrong_arguments_are_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        watch(memory_db(), TABLE, **wrong)
    with pytest.raises(InvalidRequestError):
        watch(memory_db().backend, TABLE)  # type: ignore[arg-type] # that is wrong
    watch(memory_db(), TABLE, top=10_000, every_s=0)


# --- begin and end ----------------------------------------------------------------------------------------------------
def test_what_is_not_there_is_an_error() -> None:
    db = memory_db()
    with pytest.raises(NotFoundError, match="no such job"):
        next(watch(db, TABLE, job="count"))
    with pytest.raises(NotFoundError, match="no such table"):
        next(watch(db, "wrods"))


def test_a_finished_job_has_one_view() -> None:
    job, clock = _world()
    for step in clock.meanwhile:
        step()
    (view,) = watch(job.db, TABLE, job="count")
    assert view.is_final and view.sum == 1200 and view.units_per_s is not None and view.units_per_s > 0


def test_the_last_rate_is_that_of_the_report_also_after_a_resume() -> None:
    """The units of earlier runs, and the time between two runs, are not part of it."""
    job, clock = _world()
    for step in clock.meanwhile[:2]:
        step()
    environment = job.db.environment
    assert job.job is not None
    report = JobReport.of_progress(job.job, read_task_progress(job.db.backend, job.job), 2.0)
    finish(job.db.backend, job.job)
    end_job(job.db.backend, job.job, {**report.to_json(), "earlier": 20}, environment)
    (view,) = watch(job.db, TABLE, job="count")
    assert view.done == 60 and view.units_per_s == 20.0


def test_a_view_is_printed_in_a_few_lines() -> None:
    job, _clock = _world()
    views = list(watch(job.db, TABLE, job="count", top=30))
    for view in views:
        assert len(repr(view)) < 200 * len(view.top) + 500 and "JobState" not in repr(view)
        assert len(str(view).splitlines()) == 2 + min(len(view.top), 10) + (len(view.top) > 10)
    assert str(views[0]) == "count: 0 of 120 units done\n0 rows, sum 0"
    lines = str(views[2]).splitlines()
    assert re.fullmatch(r"count: 60 of 120 units done, [\d,]+/s", lines[0])
    assert re.fullmatch(r"\d+ rows, sum 600", lines[1])
    assert re.fullmatch(r"'\w+': \d+", lines[2])
    assert lines[-1] == "and 20 more rows in top"
    assert "more rows" not in str(next(watch(job.db, TABLE, top=10)))
    assert re.fullmatch(r"'\w+': \d+", str(views[-1]).splitlines()[2])
    assert str(next(watch(job.db, TABLE, top=1))).startswith(f"{views[-1].rows} rows, sum 1,200\n")


def test_a_job_that_is_forgotten_meanwhile_is_an_error() -> None:
    job, clock = _world()
    views = watch(job.db, TABLE, job="count")
    next(views)
    clock.meanwhile = [lambda: forget_job(job.db.backend, "count", job.db.environment)]
    with pytest.raises(FencedError, match="forgotten"):
        next(views)


def test_another_job_of_the_same_name_is_an_error() -> None:
    job, clock = _world()
    views = watch(job.db, TABLE, job="count")
    next(views)

    def again() -> None:
        forget_job(job.db.backend, "count", job.db.environment)
        job.begin()

    clock.meanwhile = [again]
    with pytest.raises(FencedError, match="begun again"):
        next(views)


def test_of_a_work_list_only_what_is_done_is_known() -> None:
    """Units add units, so workers that have ended say nothing about those that are to come."""
    db = memory_db()
    environment = db.environment
    begin_job(db.backend, "walk", kind=WORK_LIST, shards=3, environment=environment)
    state = poll(db.backend, "walk")
    assert (state.units, state.share) == (None, None)


def test_a_database_that_goes_away_for_a_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    job, clock = _world()
    clock.meanwhile = []
    database = job.db.backend
    whole = database.snapshot
    fails = iter([True, True])

    def snapshot() -> Any:
        if next(fails, False):
            raise UnavailableError("the database is restarting")
        return whole()

    monkeypatch.setattr(database, "snapshot", snapshot)
    assert next(watch(job.db, TABLE, job="count")).done == 0
    monkeypatch.setattr(database, "snapshot", lambda: (_ for _ in ()).throw(UnavailableError("it is gone")))
    with pytest.raises(UnavailableError):
        next(watch(job.db, TABLE, job="count"))


# --- beside writers ---------------------------------------------------------------------------------------------------
def _watch_writers(db: Database, lines: int) -> None:
    """Watch a job whose tasks run in threads: in every view, the sum is that of the units that are done."""
    views: list[View] = []

    def count(txn: Any, key: int, words: list[str]) -> None:
        """Count words, some of them with a read, so that units conflict; from time to time, wait for another view."""
        for place, word in enumerate(words):
            if place % 5:
                txn.add(TABLE, word)
            else:
                txn.put(TABLE, word, txn.get(TABLE, word, default=0) + 1)
        if key % 20 == 0:
            before = len(views)
            wait_until(lambda: len(views) > before or errors, "there are more views")

    job = WatchedJob(db, text(lines), shards=3, group=4, function=count)
    job.begin()
    errors: list[BaseException] = []

    def run(shard: int) -> None:
        try:
            job.run(shard)
        except BaseException as error:  # noqa: BLE001 # the test's thread looks at it
            errors.append(error)

    threads = [threading.Thread(target=run, args=(shard,)) for shard in range(job.shards)]
    for thread in threads:
        thread.start()
    try:
        for view in watch(db, TABLE, job="count", every_s=0.0):
            views.append(view)
            if view.done == lines or errors:
                break
    finally:
        errors.append(InterruptedError("the watcher has ended"))
        for thread in threads:
            thread.join(PATIENCE_S)
    assert len(errors) == 1, errors
    job.end()
    views += watch(db, TABLE, job="count")
    assert [view.sum for view in views] == [WORDS * view.done for view in views]
    assert views[-1].is_final and views[-1].done == lines
    assert {one.row: one.value for one in views[-1].top} == dict(
        sorted(_counted(job).items(), key=lambda one: (-one[1], one[0]))[:10]
    )
    assert len({view.done for view in views}) > 3, "views in between"


def test_every_view_is_of_one_instant_beside_writers(tmp_path: Path) -> None:
    with open_database(f"sqlite://{tmp_path}/s.db?synchronous=normal", create=True) as db:
        db.create_table(TABLE)
        _watch_writers(db, 120)


@pytest.mark.slow
@pytest.mark.parametrize("new_url", ["new_postgres_url", "new_mysql_url"])
def test_every_view_is_of_one_instant_in_servers(new_url: str, request: pytest.FixtureRequest) -> None:
    with open_database(request.getfixturevalue(new_url)(), create=True) as db:
        db.create_table(TABLE)
        _watch_writers(db, 600)


@pytest.mark.parametrize(
    "new_url",
    [
        None,
        pytest.param("new_postgres_url", marks=pytest.mark.slow),
        pytest.param("new_mysql_url", marks=pytest.mark.slow),
    ],
)
def test_units_commit_while_a_view_is_read(
    new_url: str | None, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watcher's snapshot stays open for as long as a whole task runs: nobody waits for the other."""
    url = request.getfixturevalue(new_url)() if new_url else f"sqlite://{tmp_path}/s.db?synchronous=normal"
    with open_database(url, create=True) as db:
        db.create_table(TABLE)
        job = WatchedJob(db, text(40))
        job.begin()
        job.run(0)

        def read_late(snapshot: Any, *given: Any) -> Any:
            job.run(1)
            return summarize_column(snapshot, *given)

        monkeypatch.setattr("holdfast.units.watch.summarize_column", read_late)
        views = watch(db, TABLE, job="count")
        view = next(views)
        assert (view.done, view.sum) == (10, 100)
        monkeypatch.undo()
        view = next(views)
        assert (view.done, view.sum) == (20, 200)


def test_views_of_a_work_list() -> None:
    """Units that add units: each view has the sum of exactly those that are done, and no share."""
    db = memory_db()
    work = create_work_list(db.backend, "todo", db.environment)
    open_work_list(db, "todo").add(1)
    job = begin_job(db.backend, "walk", kind=WORK_LIST, shards=1, environment=db.environment)
    views: list[View] = []
    looking = watch(db, TABLE, job="walk")

    def visit(txn: Any, key: int, value: object) -> None:
        txn.add(TABLE, "visited", WORDS)
        for following in (2 * key, 2 * key + 1):
            if following < 100:
                txn.emit(following)
        if key % 10 == 0:
            views.append(next(looking))

    execution = UnitExecution(
        visit,
        db.backend,
        UnitSettings(group=8),
        db.environment,
        emit_to=work,
        alarm=Alarm(is_on=False),
    )
    WorkTask(execution, db.backend, job, 0, work, repeat=never).run()
    assert [view.sum for view in views] == [WORDS * view.done for view in views]
    assert len({view.done for view in views}) > 3
    assert {(view.share, view.ends_in_s) for view in views} == {(None, None)}
    report = JobReport.of_progress(job, read_task_progress(db.backend, job), 1.0)
    end_job(db.backend, job, report.to_json(), db.environment)
    last = next(watch(db, TABLE, job="walk"))
    assert (last.done, last.sum, last.share, last.is_final) == (99, 990, 1.0, True)


def test_the_memory_depends_on_the_top_rows_alone() -> None:
    """A table of many rows: the reader keeps as many as it needs, whatever their number."""
    db = memory_db()
    db.transact(lambda txn: [txn.put(TABLE, row, row % 97) for row in range(3000)])
    with db.snapshot() as snapshot:
        totals = summarize_column(snapshot, TABLE, "value", 5)
    assert (totals.rows, totals.sum) == (3000, sum(row % 97 for row in range(3000)))
    assert [(one.row, one.value) for one in totals.top] == [(96 + 97 * n, 96) for n in range(5)]


def test_adding_is_what_the_function_does() -> None:
    db = memory_db()
    db.transact(lambda txn: add_words(txn, 0, ["a", "b", "a"]))
    assert db.get(TABLE, "a") == 2
