"""What the driver does around its tasks, without Spark: it ends the job, and closes the database that it has opened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.errors import PySparkException

from holdfast.errors import (
    FencedError,
    HoldfastError,
    InputChangedError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    StorageFullError,
    UnavailableError,
)
from holdfast.records.database import Database, open_database
from holdfast.runtime import Environment
from holdfast.spark.units import runner
from holdfast.spark.units.runner import convert_changed_rows_errors
from holdfast.spark.units.tasks import UnitsTask
from holdfast.units.job_input import JobInput, digest_task_units
from holdfast.units.jobs import (
    MAP,
    WORK_LIST,
    Job,
    begin_job,
    end_job,
    find_job,
    forget_job,
    list_jobs,
)
from holdfast.units.progress import LIST_DROPPED
from holdfast.units.report import JobReport
from holdfast.units.unit import encode_unit_id
from holdfast.units.work_list import open_work_list
from tests.clocks import CountingIds
from tests.forgetful_database import ForgetfulDatabase
from tests.units_world import finish


def put(txn: Any, key: int, value: object) -> None:
    txn.put("t", key, value or "no value")


class _Driver:
    """A driver whose tasks run in this process.

    Attributes:
        open: how many of the databases that it has opened are not closed.
    """

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = 0
        self.map = runner.TransactionalMap(put, database=url, group=1, patience_s=0.1)
        monkeypatch.setattr(runner, "open_database", self._opened)

    def _opened(self, *given: Any, **more: Any) -> Database:
        db = open_database(*given, **more)
        close = db.close

        def count() -> None:
            self.open -= 1
            close()

        self.open += 1
        db.close = count  # type: ignore[method-assign] # it is counted
        return db

    def run(
        self,
        tasks: Callable[[UnitsTask], list[str]],
        *,
        name: str | None = "job",
        kind: str = MAP,
        emit_to: str | None = None,
        reads: Callable[[], None] = lambda: None,
    ) -> JobReport:
        job_input = JobInput([digest_task_units(map(encode_unit_id, (1, 2)), repeats=False)]) if kind == MAP else None

        def prepare(job: Job) -> runner._PreparedJob:
            with convert_changed_rows_errors(job):
                reads()
            return runner._PreparedJob(tasks, job_input)

        return self.map._run(name, kind, "", None, 1, emit_to, prepare)


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = f"sqlite://{tmp_path}/units.db"
    with open_database(found, create=True) as db:
        db.create_table("t")
    return found


@pytest.fixture
def driver(url: str, monkeypatch: pytest.MonkeyPatch) -> _Driver:
    return _Driver(url, monkeypatch)


def in_this_process(task: UnitsTask) -> list[str]:
    return list(task.run_shard(0, [(1, "one"), (2, "two")]))


def injected(task: UnitsTask) -> list[str]:
    raise InvalidRequestError("injected")


def test_the_db_is_closed_after_the_job_and_after_its_repetition(driver: _Driver) -> None:
    report = driver.run(in_this_process)
    assert report.ran and report.total.units == 2
    assert driver.open == 0
    again = driver.run(in_this_process)
    assert not again.ran and again.total.units == 2
    assert driver.open == 0


def test_the_db_is_closed_after_an_error(driver: _Driver) -> None:
    def fail(task: UnitsTask) -> list[str]:
        raise PySparkException("the application was stopped")

    with pytest.raises(PySparkException):
        driver.run(fail)
    assert driver.open == 0


def test_an_unnamed_job_is_named_after_errors_of_others_too(driver: _Driver, caplog: pytest.LogCaptureFixture) -> None:
    def fail(task: UnitsTask) -> list[str]:
        raise RuntimeError("injected")

    with pytest.raises(RuntimeError):
        driver.run(fail, name=None)
    (told,) = (record.getMessage() for record in caplog.records if "it goes on" in record.getMessage())
    assert told.startswith("run the job again with its name, and it goes on: job='map-")


def test_the_error_of_a_database_that_is_away_names_the_job(driver: _Driver) -> None:
    def fail(task: UnitsTask) -> list[str]:
        raise PySparkException(
            "Job aborted due to stage failure:\n  File worker.py\nholdfast.errors.UnavailableError: the database "
            "cannot be reached: check that the server runs\n\tat org.apache.spark"
        )

    with pytest.raises(UnavailableError, match=r"check that the server runs job='job' done=0 units=2"):
        driver.run(fail)


@pytest.mark.parametrize("kind", [UnavailableError, StorageFullError, OutcomeUnknownError])
def test_an_end_that_cannot_be_recorded_tells_the_name_under_which_the_job_goes_on(
    driver: _Driver, monkeypatch: pytest.MonkeyPatch, kind: type[HoldfastError]
) -> None:
    """All units have taken effect: under another name, they would take effect twice."""

    def fail(*_given: object) -> None:
        raise kind("the database cannot be reached: check that the server runs", database="host/db")

    with monkeypatch.context() as patched:
        patched.setattr(runner, "end_job", fail)
        with pytest.raises(kind, match=r"job='map-\w+' done=2 units=2") as raised:
            driver.run(in_this_process, name=None)
    report = driver.run(in_this_process, name=str(raised.value.variables["job"]))
    assert (report.total.units, report.earlier) == (2, 2)
    assert driver.open == 0


def test_a_job_that_another_driver_has_ended_has_its_report(driver: _Driver) -> None:
    def beside_another(task: UnitsTask) -> list[str]:
        report = driver.run(in_this_process)
        assert report.total.units == 2
        return in_this_process(task)

    report = driver.run(beside_another)
    assert report.total.units == 2
    assert driver.open == 0


def test_a_job_that_is_forgotten_meanwhile_is_an_error(driver: _Driver, url: str) -> None:
    def forget(task: UnitsTask) -> list[str]:
        with open_database(url) as db:
            assert not find_job(db.backend, "job").is_finished
            forget_job(db.backend, "job", db.environment)
        return in_this_process(task)

    with pytest.raises(FencedError, match="the job was forgotten"):
        driver.run(forget)
    assert driver.open == 0


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("began", ["before", "meanwhile"])
def test_a_job_that_is_run_and_forgotten_while_a_driver_reads_its_rows_is_not_run_again(
    began: str, again: bool, driver: _Driver, url: str
) -> None:
    """The driver has stood still, or its source is slow: without a trace of the job, each unit would run twice."""

    def add(txn: Any, key: int, value: object) -> None:
        txn.add("t", key)

    driver.map = runner.TransactionalMap(add, database=url, group=1)

    def run_and_forget() -> None:
        with open_database(url) as db:
            assert driver.run(in_this_process).total.units == 2
            forget_job(db.backend, "job", db.environment)
            if again:  # another driver reads its rows, too
                begin_job(db.backend, "job", kind=MAP, environment=db.environment)

    if began == "before":
        with pytest.raises(InvalidRequestError, match="injected"):
            driver.run(injected)
    with pytest.raises(FencedError, match=r"the job was forgotten meanwhile, .*look at what its units") as caught:
        driver.run(in_this_process, reads=run_and_forget)
    assert caught.value.variables == {"job": "job"}, "no number of units that have taken effect"
    assert driver.open == 0
    with open_database(url) as db:
        assert {row: columns["value"] for row, columns in db.scan("t")} == {1: 1, 2: 1}
        assert len(list_jobs(db.backend)) == again
    assert driver.run(in_this_process).total.units == 2, "who has looked runs it again"


def test_a_job_that_is_begun_while_a_driver_reads_its_rows_goes_on(driver: _Driver) -> None:
    def begin() -> None:
        with pytest.raises(InvalidRequestError, match="injected"):
            driver.run(injected)

    assert driver.run(in_this_process, reads=begin).total.units == 2


@pytest.mark.parametrize(
    ("tasks", "advice"),
    [
        pytest.param(injected, "finish it .*, and run those that no job of this function had", id="half done"),
        pytest.param(
            in_this_process,
            "run those that no job of this function had, and only those, under another name",
            id="finished",
        ),
    ],
)
def test_rows_that_cannot_be_units_are_other_rows_than_those_of_the_job(
    tasks: Callable[[UnitsTask], list[str]], advice: str, driver: _Driver
) -> None:
    """Another key would be refused, too, and under another name, units would run twice."""

    def survey() -> None:
        raise InvalidRequestError("two units have the same key: choose columns that identify each row unit=7")

    with pytest.raises(InvalidRequestError, match="choose columns"):
        driver.run(tasks, reads=survey)
    with suppress(InvalidRequestError):
        driver.run(tasks)
    with pytest.raises(InputChangedError, match=advice) as caught:
        driver.run(in_this_process, reads=survey)
    assert "choose columns" not in str(caught.value)
    assert {"error": "two units have the same key", "job": "job"}.items() <= caught.value.variables.items()


def test_a_driver_whose_rows_cannot_be_read_disturbs_no_other_one(driver: _Driver) -> None:
    def fail() -> None:
        raise InvalidRequestError("the key of a unit is null")

    for _ in range(2):
        with pytest.raises(InvalidRequestError, match=r"is null job='job' done=0"):
            driver.run(in_this_process, reads=fail)
    assert driver.run(in_this_process).total.units == 2


def test_a_work_list_that_is_dropped_does_not_end_the_job(driver: _Driver, url: str) -> None:
    """The job is still there, unfinished: nobody else has ended it."""

    def stop(task: UnitsTask) -> list[str]:
        raise FencedError(LIST_DROPPED)

    with pytest.raises(FencedError, match="work list was dropped"):
        driver.run(stop)
    with open_database(url) as db:
        assert not find_job(db.backend, "job").is_finished


def test_a_work_list_that_was_dropped_between_two_runs_is_not_just_created(driver: _Driver, url: str) -> None:
    """Units that are done add nothing again: a list that is only created lacks what they had added."""

    def add(txn: Any, key: int, value: object) -> None:
        assert key not in fails, "injected"
        txn.emit(key)

    def run() -> JobReport:
        return driver.run(in_this_process, emit_to="list")

    fails, driver.map._function = {2}, add
    with pytest.raises(NotFoundError, match=r"no such work list: create it with .*job='job' done=0"):
        run()
    with open_database(url) as db:
        items = open_work_list(db, "list", create=True)
        with pytest.raises(InvalidRequestError, match="the function of a unit failed"):
            run()
        items.drop()
        fails.clear()
        with pytest.raises(NotFoundError, match=f"{LIST_DROPPED} list='list' job='job' done=1 units=2"):
            run()
        items = open_work_list(db, "list", create=True)
        items.add(1)
        assert run().total.units == 2
        assert items.counts() == (2, 0)
        items.drop()
    with pytest.raises(NotFoundError, match="no such work list: create it with"):
        run()  # a finished job has lost nothing that somebody still wants


def test_the_error_of_a_unit_is_told_without_the_pages_of_spark(driver: _Driver) -> None:
    def fail(task: UnitsTask) -> list[str]:
        raise PySparkException(
            "Job aborted due to stage failure:\n  File worker.py\nholdfast.errors.InvalidRequestError: the function "
            "failed unit=7\n\tat org.apache.spark"
        )

    with pytest.raises(InvalidRequestError, match=r"^the function failed unit=7 job='job' done=0 units=2"):
        driver.run(fail)


def test_workers_emit_to_their_own_list(driver: _Driver, url: str) -> None:
    with open_database(url) as db:
        open_work_list(db, "list", create=True).add(3)

    def work(task: UnitsTask) -> list[str]:
        return list(task.run_worker(0))

    report = driver.run(work, kind=WORK_LIST, emit_to="list")
    assert report.total.units == 1


def fail_or_count(txn: Any, key: str, value: object) -> None:
    if value == "bad":
        raise ValueError("bad")
    txn.add("t", key)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What stands for a session: the only worker of a job runs in this process."""

    def in_this_process(_spark: object, task: UnitsTask) -> list[str]:
        return list(task.run_worker(0))

    monkeypatch.setattr(runner, "require_session", lambda _spark: None)
    monkeypatch.setattr(runner, "run_workers", in_this_process)
    return None


def test_the_report_of_a_job_that_went_on_tells_how_fast_its_last_run_was(tmp_path: Path, spark: Any) -> None:
    url = f"sqlite://{tmp_path}/database.db"
    with open_database(url, create=True) as db:
        db.create_table("t")
        items = open_work_list(db, "list", create=True)
        items.add_many((f"{number:02}", None) for number in range(10))
        items.add("last", "bad")
        units = runner.TransactionalMap(fail_or_count, database=db)
        with pytest.raises(InvalidRequestError, match="unit='last'"):
            units.run_work_list(spark, "list", job="j", tasks=1)
        found = runner.TransactionalMap(lambda txn, key, value: txn.add("t", key), database=db)
        for report in (found.run_work_list(spark, "list", job="j"), found.run_work_list(spark, "list", job="j")):
            assert (report.total.units, report.earlier) == (11, 10)
            assert report.units_per_s * report.seconds == pytest.approx(1)
            assert "units: 1 in" in str(report)
            assert "earlier runs: 10 units" in str(report)


def test_claims_of_a_run_that_failed_are_released_once_no_worker_can_claim_again(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U7: else units of the run could take effect after it has raised."""
    has_ended: list[bool] = []
    release = runner.release_all_claims

    def note_and_release(backend: Any, work: Any) -> None:
        job = find_job(backend, "j")
        has_ended.append(job is not None and len(job.ended_runs) == 1)
        release(backend, work)

    monkeypatch.setattr(runner, "release_all_claims", note_and_release)
    with open_database(f"sqlite://{tmp_path}/database.db", create=True) as db:
        db.create_table("t")
        open_work_list(db, "list", create=True).add("a", "bad")
        with pytest.raises(InvalidRequestError, match="unit='a'"):
            runner.TransactionalMap(fail_or_count, database=db).run_work_list(spark, "list", job="j", tasks=1)
    assert has_ended == [True]


def test_a_job_goes_on_with_the_work_list_with_which_it_began(tmp_path: Path, spark: Any) -> None:
    url = f"sqlite://{tmp_path}/database.db"
    with open_database(url, create=True) as db:
        db.create_table("t")
        first, other = (open_work_list(db, name, create=True) for name in ("first", "other"))
        first.add("a", "bad")
        other.add("b")
        units = runner.TransactionalMap(fail_or_count, database=db)
        with pytest.raises(InvalidRequestError, match="unit='a'"):
            units.run_work_list(spark, "first", job="j", tasks=1)
        with pytest.raises(InvalidRequestError, match="key='work list: first' given='work list: other'"):
            units.run_work_list(spark, "other", job="j")
        assert other.counts() == (1, 0)
        first.drop()
        open_work_list(db, "first", create=True).add("a")
        assert units.run_work_list(spark, "first", job="j").total.units == 1
        assert dict(db.scan("t")) == {"a": {"value": 1}}


def test_a_work_list_goes_on_with_what_is_added_while_its_job_ends(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite://{tmp_path}/database.db"
    with open_database(url, create=True) as db:
        db.create_table("t")
        items = open_work_list(db, "list", create=True)
        items.add("a")
        late, end_job = ["b", "c"], runner.end_job

        def end_later(*arguments: Any) -> object:
            if late:
                items.add(late.pop())
            return end_job(*arguments)

        monkeypatch.setattr(runner, "end_job", end_later)
        report = runner.TransactionalMap(fail_or_count, database=db).run_work_list(spark, "list", job="j", tasks=1)
        assert report.total.units == 3 and items.counts() == (0, 0)
        assert {row: cells["value"] for row, cells in db.scan("t")} == {"a": 1, "b": 1, "c": 1}


def test_a_finished_job_does_not_take_what_was_added_to_its_list_since(tmp_path: Path, spark: Any) -> None:
    url = f"sqlite://{tmp_path}/database.db"
    with open_database(url, create=True) as db:
        db.create_table("t")
        items = open_work_list(db, "list", create=True)
        items.add("a")
        units = runner.TransactionalMap(fail_or_count, database=db)
        assert units.run_work_list(spark, "list", job="j", tasks=1).ran
        assert not units.run_work_list(spark, "list", job="j").ran
        items.add("b")
        with pytest.raises(
            InvalidRequestError, match=r"added to its list since: give this run another name list='list'"
        ):
            units.run_work_list(spark, "list", job="j")
        assert units.run_work_list(spark, "list", job="k", tasks=1).total.units == 1
        assert dict(db.scan("t")) == {key: {"value": 1} for key in "ab"}


@pytest.mark.parametrize(
    ("reads", "sentence"),
    [(5, "reads is not a function"), (partial(print, Lock()), "cannot be sent to Spark's tasks")],
    ids=["no function", "a lock"],
)
def test_what_names_cells_is_checked_before_the_job_begins(reads: Any, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        runner.TransactionalMap(fail_or_count, database="sqlite:///tmp/none.db", reads=reads)


def test_the_end_by_another_driver_counts_once_it_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    database = ForgetfulDatabase()
    environment = Environment(ids=CountingIds())
    job = begin_job(database, "job", kind=MAP, shards=1, environment=environment)
    finish(database, job)
    database.forget_nothing_before()
    database.keeps = False
    end_job(database, job, {}, environment)
    monkeypatch.setattr(database, "make_durable", lambda: database.forget(database.newest))
    assert runner._find_report_by_others(database, job) is None
