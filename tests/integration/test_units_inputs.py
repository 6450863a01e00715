"""Run units of DataFrames and RDDs: which inputs and keys there are, and which are refused before anything is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import FencedError, InvalidRequestError
from holdfast.records.database import Database, open_database
from holdfast.spark.units import TransactionalMap, TransactionalReduce, runner
from holdfast.units.jobs import begin_job, forget_job, list_jobs
from holdfast.units.report import JobReport
from holdfast.units.work_list import open_work_list
from tests.integration.spark_session import by_value
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the units
]

by_value(__name__)


@pytest.fixture
def db(tmp_path: Path) -> Database:
    db = open_database(f"sqlite://{tmp_path}/database.db?synchronous=normal", create=True)
    db.create_table("seen")
    return db


def note(txn: Any, key: Any, value: Any) -> None:
    txn.add("seen", key)


def note_size(txn: Any, key: Any, values: Any) -> None:
    txn.add("seen", key, len(values))


def seen(db: Database) -> dict[Any, int]:
    return {row: columns["value"] for row, columns in db.scan("seen")}


# --- inputs without rows ----------------------------------------------------------------------------------------------
EMPTY: dict[str, Callable[[SparkSession], Any]] = {
    "known to be empty": lambda spark: spark.range(9).filter("1 = 0"),
    "a range": lambda spark: spark.range(0),
    "nothing left": lambda spark: spark.range(9).filter("id > 9"),
    "an RDD": lambda spark: spark.sparkContext.parallelize([], 3),
    "an RDD without partitions": lambda spark: spark.sparkContext.emptyRDD(),
}


@pytest.mark.parametrize("name", variants(EMPTY, "known to be empty"))
def test_an_input_without_rows_has_no_units(name: str, spark: SparkSession, db: Database) -> None:
    data = EMPTY[name](spark)
    key = "id" if isinstance(data, DataFrame) else None
    report = TransactionalMap(note, database=db).run(data, key=key, tasks=3)
    assert (report.total.units, len(report.tasks)) == (0, 3)


def put_size(txn: Any, key: Any, values: Any) -> None:
    txn.put("seen", key, len(values))


@pytest.mark.parametrize("tasks", variants([2, 4]))
def test_rows_of_a_bucketed_table_come_to_the_tasks_of_their_keys(
    tasks: int, spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """Files of one bucket differ in size, so that Spark reads them in different partitions unless it heeds buckets."""
    rows = spark.range(0, 400, 1, 2).filter("id < 300").selectExpr("id % 7 k", "id")
    rows.write.bucketBy(tasks, "k").option("path", str(tmp_path / "bucketed")).saveAsTable("bucketed")
    try:
        TransactionalReduce(put_size, database=db).run(spark.table("bucketed"), key="k", tasks=tasks)
    finally:
        spark.sql("DROP TABLE bucketed")
    assert seen(db) == {key: len(range(key, 300, 7)) for key in range(7)}


# --- keys -------------------------------------------------------------------------------------------------------------
def test_keys_of_all_types_reach_their_units(spark: SparkSession, db: Database) -> None:
    numbers = spark.range(-6, 6)
    for kind in ("tinyint", "smallint", "int", "bigint"):
        report = TransactionalMap(note, database=db).run(numbers.selectExpr(f"cast(id as {kind}) k"), key="k", tasks=3)
        assert report.total.units == 12
    assert seen(db) == dict.fromkeys(range(-6, 6), 4)
    texts = ["", "a", "a\0", "a\0b", "a\x01", "b", "é", "\uffff", "𝄞"]
    columns = spark.createDataFrame([(text, text.encode()) for text in texts], "t string, b binary")
    for name in ("t", "b"):
        assert TransactionalMap(note, database=db).run(columns, key=name, tasks=1).total.units == len(texts)
    several = TransactionalMap(note, database=db).run(columns, key=["t", "b"], tasks=2)
    assert several.total.units == len(texts)
    found = seen(db)
    assert all(found[text] == found[text.encode()] == found[(text, text.encode())] == 1 for text in texts)


def test_a_job_has_the_same_rows_when_its_key_has_more_bits(spark: SparkSession, db: Database) -> None:
    numbers = spark.range(-6, 40)
    rows = [numbers.selectExpr(f"cast(id as {kind}) k") for kind in ("tinyint", "bigint")]
    runs = [TransactionalMap(note, database=db).run(one, key="k", job="wide", tasks=3).ran for one in rows]
    assert runs == [True, False]
    assert seen(db) == dict.fromkeys(range(-6, 40), 1)


def test_columns_may_differ_in_case_if_spark_tells_them_apart(spark: SparkSession, db: Database) -> None:
    rows = spark.sql("SELECT 1 AS k, 2 AS K")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        TransactionalMap(note, database=db).run(rows, key="K", tasks=1)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert seen(db) == {2: 1}


def test_reduce_gets_all_values_of_a_key(spark: SparkSession, db: Database) -> None:
    rows = spark.range(0, 60, 1, 4).selectExpr("id % 5 as a", "cast(id % 2 as string) as `b.c`", "id")
    TransactionalReduce(note_size, database=db).run(rows, key=["a", "b.c"], tasks=3)
    assert seen(db) == {(a, b): 6 for a in range(5) for b in "01"}
    pairs = rows.rdd.map(lambda row: (row["a"], row["id"]))
    TransactionalReduce(note_size, database=db).run(pairs, tasks=3)
    assert {row: size for row, size in seen(db).items() if isinstance(row, int)} == dict.fromkeys(range(5), 12)


# --- what is refused --------------------------------------------------------------------------------------------------
REFUSED: dict[str, tuple[Callable[[SparkSession], Any], Any, str]] = {
    "null": (lambda spark: spark.sql("SELECT cast(null AS string) AS k"), "k", "the key of a unit is null"),
    "null beside another": (
        lambda spark: spark.sql("SELECT 1 AS a, cast(null AS int) AS k"),
        ["a", "k"],
        "the key of a unit is null",
    ),
    "double": (lambda spark: spark.sql("SELECT 1.5D AS k"), "k", "take unix_micros of a timestamp"),
    "decimal": (lambda spark: spark.sql("SELECT 1.5 AS k"), "k", "take unix_micros of a timestamp"),
    "boolean": (lambda spark: spark.sql("SELECT true AS k"), "k", "take unix_micros of a timestamp"),
    "date": (lambda spark: spark.sql("SELECT current_date() AS k"), "k", "take unix_micros of a timestamp"),
    "timestamp": (lambda spark: spark.sql("SELECT current_timestamp() AS k"), "k", "take unix_micros of a timestamp"),
    "struct": (lambda spark: spark.sql("SELECT struct(1 AS a) AS k"), "k", "take unix_micros of a timestamp"),
    "array": (lambda spark: spark.sql("SELECT array('x, y') AS k"), "k", "take unix_micros of a timestamp"),
    "map": (lambda spark: spark.sql("SELECT map('x, y', 1) AS k"), "k", "take unix_micros of a timestamp"),
    "no key": (lambda spark: spark.range(3), None, "pass key='column'"),
    "no such column": (lambda spark: spark.range(3), "ide", "did you mean id"),
    "two such columns": (lambda spark: spark.sql("SELECT 1 AS k, 2 AS k"), "k", "several columns have it"),
    "texts that are none": (
        lambda spark: spark.sql("SELECT cast(b AS string) AS k FROM VALUES (X'80'), (X'C3A9') AS t(b)"),
        "k",
        "that is not UTF-8: cast the column to binary",
    ),
    "a text that is none": (lambda spark: spark.sql("SELECT cast(X'4DFC' AS string) AS k"), "k", "that is not UTF-8"),
    "a text that is none beside a number": (
        lambda spark: spark.sql("SELECT n, cast(b AS string) AS k FROM VALUES (1, X'61'), (2, X'EDA080') AS t(n, b)"),
        ["n", "k"],
        "that is not UTF-8",
    ),
    "two that differ in case": (lambda spark: spark.sql("SELECT 1 AS k, 2 AS K"), "k", "several columns have it"),
    "twice the same": (lambda spark: spark.sql("SELECT 1 AS k UNION ALL SELECT 1"), "k", "two units have the same key"),
    "no pairs": (lambda spark: spark.sparkContext.parallelize([1, 2], 1), None, "map them to (key, value)"),
    "a key beside an RDD": (lambda spark: spark.sparkContext.parallelize([(1, 2)], 1), "k", "leave out the argument"),
    "null in a pair": (lambda spark: spark.sparkContext.parallelize([(None, 2)], 1), None, "convert it to a text"),
    "a float in a pair": (lambda spark: spark.sparkContext.parallelize([(1.0, 2)], 1), None, "convert it to a text"),
    "no DataFrame": (lambda spark: [(1, 2)], "k", "DataFrame"),
}


@pytest.mark.parametrize(
    "name", variants(REFUSED, "null", "no pairs", "twice the same", "timestamp", "a text that is none")
)
def test_unsuitable_inputs_are_refused_in_one_sentence(name: str, spark: SparkSession, db: Database) -> None:
    make, key, sentence = REFUSED[name]
    with pytest.raises(InvalidRequestError) as caught:
        TransactionalMap(note, database=db).run(make(spark), key=key, tasks=1)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (seen(db), list_jobs(db.backend)) == ({}, [])


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [1, 2])
def test_texts_that_python_cannot_tell_apart_are_not_one_key(tasks: int, spark: SparkSession, db: Database) -> None:
    """Python gets the same character for all that is not UTF-8, as in Müller and Möller in Latin-1."""
    names = "VALUES (X'4DFC6C6C6572'), (X'4DF66C6C6572'), (X'4DFC6C6C6572') AS t(b)"
    for reducer in (True, False):
        kind = TransactionalReduce if reducer else TransactionalMap
        with pytest.raises(InvalidRequestError, match="that is not UTF-8: cast the column to binary") as caught:
            kind(note_size if reducer else note, database=db).run(
                spark.sql(f"SELECT {'' if reducer else 'DISTINCT'} cast(b AS string) AS k FROM {names}"),
                key="k",
                tasks=tasks,
            )
        assert (caught.value.variables["done"], seen(db)) == (0, {})
    TransactionalReduce(note_size, database=db).run(spark.sql(f"SELECT b AS k FROM {names}"), key="k", tasks=tasks)
    assert seen(db) == {b"M\xfcller": 2, b"M\xf6ller": 1}


JOBS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"job": ""}, "the name of a job has 1 to 128 letters.*job=''"),
    "a number for a name": ({"job": 5}, "the name of a job has 1 to 128 letters.*job=5"),
    "no tasks": ({"tasks": 0}, "a job has 1 to 100000 tasks.*tasks=0"),
    "a text for a number": ({"tasks": "2"}, "a job has 1 to 100000 tasks.*tasks='2'"),
    "a half task": ({"tasks": 2.5}, "a job has 1 to 100000 tasks.*tasks=2.5"),
    "a boolean for a number": ({"tasks": True}, "a job has 1 to 100000 tasks.*tasks=True"),
}


@pytest.mark.parametrize("name", JOBS)
def test_unsuitable_names_and_numbers_are_refused(name: str, spark: SparkSession, db: Database) -> None:
    """A name that came out empty does not begin another job each time."""
    given, sentence = JOBS[name]
    with pytest.raises(InvalidRequestError, match=sentence):
        TransactionalMap(note, database=db).run(spark.range(3), key="id", **given)
    assert seen(db) == {}


def test_units_of_a_work_list_add_to_no_other(spark: SparkSession, db: Database) -> None:
    for name in ("this", "other"):
        open_work_list(db, name, create=True).add(1)
    with pytest.raises(InvalidRequestError, match=r"leave out emit_to.*emit_to='other' list='this'"):
        TransactionalMap(note, database=db, emit_to="other").run_work_list(spark, "this")
    with pytest.raises(InvalidRequestError, match="use TransactionalMap"):
        TransactionalReduce(note_size, database=db).run_work_list(spark, "this")
    assert TransactionalMap(note, database=db, emit_to="this").run_work_list(spark, "this", tasks=1).total.units == 1
    assert open_work_list(db, "other").counts() == (1, 0)


# --- two drivers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("when", variants(["begin_job", "read_task_progress"]))
def test_both_drivers_of_a_job_get_its_report(
    when: str, spark: SparkSession, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other driver runs the whole job after this one has begun it, or when this one is about to end it."""
    original = getattr(runner, when)
    others: list[JobReport] = []

    def meanwhile(*given: Any, **named: Any) -> Any:
        found = original(*given, **named) if when == "begin_job" else None
        monkeypatch.undo()
        others.append(TransactionalMap(note, database=db).run(spark.range(9), key="id", job="j", tasks=2))
        return found or original(*given, **named)

    monkeypatch.setattr(runner, when, meanwhile)
    report = TransactionalMap(note, database=db).run(spark.range(9), key="id", job="j", tasks=2)
    assert (report.total.units, report.number, len(report.tasks)) == (9, 2, 2)
    assert others[0].total.units == 9
    assert seen(db) == dict.fromkeys(range(9), 1)


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_job_that_is_forgotten_while_it_runs_fails(
    again: bool, spark: SparkSession, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows any more how many of its units have taken effect, and to run it again would repeat them."""

    def meanwhile(*given: Any, **named: Any) -> Any:
        found = begin_job(*given, **named)
        forget_job(db.backend, "j", db.environment)
        if again:
            begin_job(*given, **named)
        return found

    monkeypatch.setattr(runner, "begin_job", meanwhile)
    with pytest.raises(FencedError, match=r"the job was forgotten meanwhile, .*look at what its units") as caught:
        TransactionalMap(note, database=db).run(spark.range(9), key="id", job="j", tasks=2)
    assert caught.value.variables == {"job": "j"}, "no number of units that have taken effect"
    assert "it goes on" not in str(caught.value)
    assert seen(db) == {}
