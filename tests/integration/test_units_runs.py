"""Run, fail, mend and run again, as users do: with other rows, another key, or another number of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import InvalidRequestError
from holdfast.records.database import Database, open_database
from holdfast.spark.units import TransactionalMap, TransactionalReduce, inputs, runner
from holdfast.units.jobs import list_jobs
from holdfast.units.report import poll
from holdfast.units.work_list import open_work_list
from tests.integration.spark_session import by_value
from tests.patience import PATIENCE_S, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the runs
]

by_value(__name__)

ROWS, BAD = 40, 39


@pytest.fixture
def db(tmp_path: Path) -> Database:
    db = open_database(f"sqlite://{tmp_path}/database.db?synchronous=normal", create=True)
    db.create_table("seen")
    return db


def note(txn: Any, key: Any, value: Any) -> None:
    txn.add("seen", key)


def fails(txn: Any, key: Any, value: Any) -> None:
    if key == BAD:
        raise ValueError("injected")
    txn.add("seen", key)


def note_size(txn: Any, key: Any, values: Any) -> None:
    txn.add("seen", key, len(values))


def put_size(txn: Any, key: Any, values: Any) -> None:
    txn.put("seen", key, len(values))


def fails_in_sizes(txn: Any, key: Any, values: Any) -> None:
    if key == BAD:
        raise ValueError("injected")
    txn.add("seen", key, len(values))


def seen(db: Database) -> dict[Any, int]:
    return {row: columns["value"] for row, columns in db.scan("seen")}


def once(*keys: int) -> dict[Any, int]:
    return dict.fromkeys(range(*keys), 1)


def stop(spark: SparkSession, db: Database, tasks: int) -> tuple[int, dict[Any, int]]:
    """Begin the job, whose unit 39 fails; return how many units have taken effect, and the table."""
    with pytest.raises(InvalidRequestError) as caught:
        TransactionalMap(fails, database=db, group=4).run(spark.range(ROWS), key="id", job="j", tasks=tasks)
    done = len(seen(db))
    assert "mend it, and run the job or the query again, which goes on where it was error=" in str(caught.value)
    assert f"unit={BAD} job='j' done={done} units={ROWS}" in str(caught.value)
    return done, seen(db)


# --- the input is fixed before the first unit -------------------------------------------------------------------------
OTHERS: dict[str, tuple[Callable[[SparkSession], Any], Any, str]] = {
    "grown": (lambda spark: spark.range(60), "id", "the job began with other rows"),
    "missing": (lambda spark: spark.range(30), "id", "the job began with other rows"),
    "emptied": (lambda spark: spark.range(40).filter("1 = 0"), "id", "the job began with other rows"),
    "changed": (lambda spark: spark.range(40).selectExpr("id + 1 AS id"), "id", "the job began with other rows"),
    "another column": (lambda spark: spark.range(40).selectExpr("id", "id AS b"), "b", "the job has another key"),
    "another type": (
        lambda spark: spark.range(40).selectExpr("cast(id AS string) id"),
        "id",
        "the job has another key",
    ),
    "more columns": (lambda spark: spark.range(40).selectExpr("id", "id AS b"), ["id", "b"], "another key"),
    "another order": (lambda spark: spark.range(40).selectExpr("id", "id AS b"), ["b", "id"], "another key"),
    "pairs": (lambda spark: spark.range(40).rdd.map(lambda row: (row["id"], row)), None, "another key"),
}
DEFAULT = {("grown", 2)}


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        pytest.param(name, tasks, marks=() if (name, tasks) in DEFAULT else pytest.mark.slow)
        for name in OTHERS
        for tasks in (2, 64)
    ],
)
def test_other_rows_are_refused_as_a_whole_and_the_advice_works(
    name: str, tasks: int, spark: SparkSession, db: Database
) -> None:
    make, key, sentence = OTHERS[name]
    done, before = stop(spark, db, tasks)
    mended = TransactionalMap(note, database=db, group=4)
    for _ in range(2):
        with pytest.raises(InvalidRequestError, match=f"{sentence}.*job='j'.*done={done} units={ROWS}"):
            mended.run(make(spark), key=key, job="j")
        assert seen(db) == before, "nothing of the refused rows has taken effect"
    assert mended.run(spark.range(ROWS), key="id", job="j").total.units == ROWS
    assert seen(db) == once(ROWS)
    if name == "grown":
        mended.run(spark.range(60).filter(f"id >= {ROWS}"), key="id", job="j-new-rows")
        assert seen(db) == once(60)


@pytest.mark.slow
def test_a_row_that_was_repaired_runs_and_another_number_of_tasks_is_refused(spark: SparkSession, db: Database) -> None:
    """Only keys tell rows apart: the other columns may have been repaired in the source."""
    _done, before = stop(spark, db, 2)
    mended = TransactionalMap(note, database=db, group=4)
    repaired = spark.range(ROWS).selectExpr("cast(id AS int) AS id", "'repaired' AS more").repartition(5)
    with pytest.raises(InvalidRequestError, match="another number of tasks: leave the number out"):
        mended.run(repaired, key="id", job="j", tasks=64)
    assert seen(db) == before
    assert mended.run(repaired, key="id", job="j").total.units == ROWS
    assert seen(db) == once(ROWS)


SIZES: dict[str, str] = {"of a key that is done": "id % 40", "of a new key": "40"}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["rows", pytest.param("pairs", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SIZES)
def test_new_rows_for_reduce_are_refused(name: str, form: str, spark: SparkSession, db: Database) -> None:
    def values(df: DataFrame) -> tuple[Any, Any]:
        return (df, "k") if form == "rows" else (df.rdd.map(lambda row: (row["k"], row["id"])), None)

    def run(function: Any, df: DataFrame, job: str = "j") -> Any:
        data, key = values(df)
        return TransactionalReduce(function, database=db, group=4).run(data, key=key, job=job, tasks=2)

    old = spark.range(120).selectExpr("id % 40 AS k", "id")
    with pytest.raises(InvalidRequestError, match="the function of a unit failed"):
        run(fails_in_sizes, old)
    before = seen(db)
    new = old.union(spark.range(120, 121).selectExpr(f"{SIZES[name]} AS k", "id"))
    with pytest.raises(InvalidRequestError, match="the job began with other rows"):
        run(note_size, new)
    assert seen(db) == before
    run(note_size, old)
    assert seen(db) == dict.fromkeys(range(ROWS), 3)
    with pytest.raises(InvalidRequestError, match=r"had other rows: .*run all rows of these keys"):
        run(note_size, new)
    key = 0 if name == "of a key that is done" else 40
    run(put_size, new.filter(f"k = {key}"), job="j-new-rows")
    assert seen(db) == {**dict.fromkeys(range(ROWS), 3), key: 4 if key == 0 else 1}


# --- rows that cannot be units ----------------------------------------------------------------------------------------
UNSUITABLE: Mapping[str, tuple[Callable[[SparkSession], Any], str]] = {
    "twice": (
        lambda spark: spark.range(1000).union(spark.range(999, 1000)),
        "two units have the same key.*unit=999",
    ),
    "null": (lambda spark: spark.sql("SELECT id FROM range(1000) UNION ALL SELECT null"), "the key of a unit is null"),
    "twice in pairs": (
        lambda spark: spark.sparkContext.parallelize([*range(1000), 999], 4).map(lambda number: (number, None)),
        "two units have the same key.*unit=999",
    ),
}


@pytest.mark.parametrize("name", [pytest.param("twice in pairs", marks=pytest.mark.slow), "twice", "null"])
def test_rows_without_a_key_of_their_own_are_refused_before_any_unit(
    name: str, spark: SparkSession, db: Database
) -> None:
    make, sentence = UNSUITABLE[name]
    data = make(spark)
    key = "id" if isinstance(data, DataFrame) else None
    with pytest.raises(InvalidRequestError, match=f"{sentence}.*job='j' done=0"):
        TransactionalMap(note, database=db, group=1).run(data, key=key, job="j", tasks=2)
    assert (seen(db), list_jobs(db.backend)) == ({}, []), "other rows may take the name"


def test_a_job_without_a_name_tells_the_one_it_got(spark: SparkSession, db: Database) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        TransactionalMap(fails, database=db).run(spark.range(ROWS), key="id", tasks=2)
    [job] = list_jobs(db.backend)
    assert f"job={job.name!r} done={len(seen(db))} units={ROWS}" in str(caught.value)
    assert poll(db.backend, job.name).share == len(seen(db)) / ROWS
    TransactionalMap(note, database=db).run(spark.range(ROWS), key="id", job=job.name)
    assert seen(db) == once(ROWS)


@pytest.mark.slow
def test_the_log_tells_how_a_job_goes_on_after_an_error_of_spark(
    spark: SparkSession, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    stop(spark, db, 2)
    broken = spark.range(ROWS).selectExpr("id", f"assert_true(id <> {BAD}) AS ok")
    with pytest.raises(Exception, match="is not true"):
        TransactionalMap(note, database=db).run(broken, key="id", job="j", tasks=2)
    assert f"it goes on: job='j' done={len(seen(db))} units={ROWS}" in caplog.text


# --- two passes over the rows -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["rows", pytest.param("pairs", marks=pytest.mark.slow)])
def test_a_source_is_evaluated_once(form: str, spark: SparkSession, db: Database) -> None:
    """Spark keeps what it has sorted, so the two passes over the rows see the same ones, however random they are."""
    evaluated = spark.sparkContext.accumulator(0)

    def row(number: int) -> tuple[int, int]:
        evaluated.add(1)
        return number, number

    pairs = spark.sparkContext.parallelize(range(ROWS), 4).map(row)
    data, key = (pairs.toDF("id long, b long"), "id") if form == "rows" else (pairs, None)
    assert TransactionalMap(note, database=db).run(data, key=key, job="j", tasks=2).total.units == ROWS
    assert (evaluated.value, seen(db)) == (ROWS, once(ROWS))


@pytest.mark.parametrize("to", [pytest.param(39, marks=pytest.mark.slow), 41])
def test_rows_that_change_between_the_passes_do_not_run(
    to: int, spark: SparkSession, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark Connect evaluates a source twice."""
    size = tmp_path / "size"

    def ids(_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"id": range(int(size.read_text()))})

    fix_input = runner.record_job_input

    def meanwhile(*given: Any, **named: Any) -> Any:
        found = fix_input(*given, **named)
        size.write_text(str(to))
        return found

    monkeypatch.setattr(inputs, "is_classic_session", lambda _spark: False)
    units = TransactionalMap(note, database=db)
    size.write_text(str(ROWS))
    rows = spark.range(1).coalesce(1).mapInArrow(ids, "id long")
    with monkeypatch.context() as patched:
        patched.setattr(runner, "record_job_input", meanwhile)
        with pytest.raises(InvalidRequestError, match=r"the rows have changed since .*the same rows each time"):
            units.run(rows, key="id", job="j", tasks=2)
    assert seen(db).keys() <= once(ROWS).keys()
    size.write_text(str(ROWS))
    assert units.run(rows, key="id", job="j").total.units == ROWS
    assert seen(db) == once(ROWS)


# --- the end of a run -------------------------------------------------------------------------------------------------
def overtaken(marks: Path) -> Callable[..., None]:
    """Return a function of units, of which the second one fails while the first one runs in another task, and waits.

    Args:
        marks: a directory, in which processes tell each other what they have done.
    """

    def await_mark(name: str) -> None:
        wait_until((marks / name).exists, f"no {name}")

    def step(txn: Any, key: int, value: Any) -> None:
        txn.add("seen", key)
        try:
            (marks / "first").mkdir()
        except FileExistsError:
            await_mark("waits")
            raise ValueError("injected") from None
        (marks / "waits").touch()
        await_mark("raised")

    return step


def is_idle(spark: SparkSession) -> bool:
    executors = spark._jsc.sc().statusTracker().getExecutorInfos()
    return sum(executor.numRunningTasks() for executor in executors) == 0


@pytest.mark.parametrize("work", ["rows", pytest.param("work list", marks=pytest.mark.slow)])
def test_no_unit_takes_effect_after_a_run_has_raised(
    work: str, spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """One task is in the middle of a unit when another one fails, and commits only when `run` has raised."""
    open_work_list(db, "frontier", create=True).add_many((key, None) for key in range(16))

    def run(function: Any) -> Any:
        units = TransactionalMap(function, database=db, group=1, timeout_s=PATIENCE_S)
        if work == "rows":
            return units.run(spark.range(16), key="id", job="j", tasks=2)
        return units.run_work_list(spark, "frontier", job="j", tasks=2)

    try:
        with pytest.raises(InvalidRequestError, match=r"the function of a unit failed.*job='j' done=0"):
            run(overtaken(tmp_path))
    finally:
        (tmp_path / "raised").touch()
    wait_until(lambda: is_idle(spark), "a task of the run goes on")
    assert seen(db) == {}
    assert run(note).total.units == 16
    assert seen(db) == once(16)


# --- a finished job ---------------------------------------------------------------------------------------------------
def test_a_finished_job_says_so_if_it_is_given_other_rows(spark: SparkSession, db: Database) -> None:
    words = TransactionalMap(note, database=db)
    words.run(spark.range(ROWS), key="id", job="j", tasks=2)
    again = words.run(spark.range(ROWS).repartition(3), key="id", job="j")
    assert (again.ran, again.total.units) == (False, ROWS)
    with pytest.raises(
        InvalidRequestError,
        match=r"finished, and had other rows: run those .*, and only those,.*job='j' given=60 done=40",
    ):
        words.run(spark.range(60), key="id", job="j")
    with pytest.raises(InvalidRequestError, match="run it as it was; choose another name only if"):
        TransactionalReduce(note_size, database=db).run(spark.range(ROWS), key="id", job="j")
    assert seen(db) == once(ROWS)
