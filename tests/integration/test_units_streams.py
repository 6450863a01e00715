"""Run units of a stream's batches: each batch counts once, and none is dropped, whatever Spark repeats."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark import inheritable_thread_target
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import InvalidRequestError
from holdfast.records.database import Database, open_database
from holdfast.spark.units import TransactionalMap, TransactionalReduce
from holdfast.units.jobs import list_jobs
from holdfast.units.unit import UnitFunction
from tests.integration.spark_session import by_value
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the batches
]

by_value(__name__)


@pytest.fixture
def db(tmp_path: Path) -> Database:
    db = open_database(f"sqlite://{tmp_path}/database.db?synchronous=normal", create=True)
    db.create_table("seen")
    return db


def note(txn: Any, key: int, row: Any) -> None:
    txn.add("seen", key)


def adds_to(row: str) -> UnitFunction:
    return lambda txn, key, value: txn.add("total", row, key)


def seen(db: Database) -> dict[Any, int]:
    return {row: columns["value"] for row, columns in db.scan("seen")}


def add_rows(txn: Any, key: int, row: Any) -> None:
    txn.add("seen", key, row["count"])


def stream(
    spark: SparkSession,
    folder: Path,
    checkpoint: Path,
    function: Callable[[DataFrame, int], None],
    *,
    at_once: int = 1,
) -> None:
    """Run the batches of all new files: one each, or several."""
    rows = spark.readStream.option("maxFilesPerTrigger", at_once).text(str(folder))
    numbers = rows.selectExpr("cast(value AS long) AS id")
    query = numbers.writeStream.foreachBatch(function).option("checkpointLocation", str(checkpoint))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()


def write(folder: Path, name: str, *numbers: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{number}\n" for number in numbers))


def test_batches_count_once_from_any_checkpoint(spark: SparkSession, db: Database, tmp_path: Path) -> None:
    files = tmp_path / "files"
    count = TransactionalMap(note, database=db).for_each_batch(key="id", job="counts", tasks=2)
    left = ["after the job", "before the job"]

    def fails(batch: DataFrame, number: int) -> None:
        if number and left[-1:] == ["before the job"]:
            raise RuntimeError(left.pop())
        count(batch, number)
        if number and left:
            raise RuntimeError(left.pop())

    write(files, "0", 1, 2, 3)
    stream(spark, files, tmp_path / "first", fails)
    write(files, "1", 4, 5)
    for error in ("before the job", "after the job"):
        with pytest.raises(StreamingQueryException, match=error):
            stream(spark, files, tmp_path / "first", fails)
    stream(spark, files, tmp_path / "first", fails)
    assert seen(db) == dict.fromkeys(range(1, 6), 1), "the last batch was repeated twice"
    assert len(list_jobs(db.backend)) == 2

    write(tmp_path / "other files", "0", 1, 6)
    stream(spark, tmp_path / "other files", tmp_path / "second", count)
    assert seen(db) == {**dict.fromkeys(range(1, 7), 1), 1: 2}, "batch 0 of the new checkpoint was not dropped"


def test_a_repeated_batch_with_other_rows_goes_on_when_the_query_is_as_it_was(
    spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """The driver dies between the end of a batch and Spark's note of it, and the query is changed before it goes on."""
    files, checkpoint = tmp_path / "files", tmp_path / "checkpoint"
    count = TransactionalMap(note, database=db).for_each_batch(key="id", job="counts", tasks=2)
    write(files, "0", 1, 2, 3)
    stream(spark, files, checkpoint, count)
    (checkpoint / "commits" / "0").unlink()
    (checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
    write(files, "1", 4)
    with pytest.raises(StreamingQueryException, match=r"run the query once more as it was when the batch began"):
        stream(spark, files, checkpoint, lambda batch, number: count(batch.filter("id <> 3"), number))
    assert seen(db) == dict.fromkeys((1, 2, 3), 1)
    stream(spark, files, checkpoint, count)
    assert seen(db) == dict.fromkeys((1, 2, 3, 4), 1)


def one_after_the_other(*calls: Callable[[], None]) -> None:
    for call in calls:
        call()


def whatever_fails(first: Callable[[], None], second: Callable[[], None]) -> None:
    with pytest.raises(InvalidRequestError, match="injected"):
        first()
    second()


def in_threads(*calls: Callable[[], None]) -> None:
    with ThreadPoolExecutor(len(calls)) as pool:
        for one in [pool.submit(inheritable_thread_target(call)) for call in calls]:
            one.result()


def fails_at_2(txn: Any, key: int, value: Any) -> None:
    assert key != 2, "injected"
    txn.add("total", "first", key)


@pytest.mark.parametrize(
    ("function", "way"),
    variants([(fails_at_2, whatever_fails), (adds_to("first"), one_after_the_other), (adds_to("first"), in_threads)]),
    ids=["after an error", "one after the other", "in threads"],
)
def test_two_functions_do_not_share_a_name(
    function: UnitFunction, way: Callable[..., None], spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """The second one would leave out what the first one has done, also if its URL of the database is another one."""
    db.create_table("total")
    first = TransactionalMap(function, database=db, group=1)
    second = TransactionalMap(adds_to("second"), database=f"sqlite:///{tmp_path}/database.db")

    def both(name: str) -> Callable[[DataFrame, int], None]:
        run_first, run_second = first.for_each_batch(key="id", job="n"), second.for_each_batch(key="id", job=name)

        def run(batch: DataFrame, number: int) -> None:
            way(lambda: run_first(batch, number), lambda: run_second(batch, number))

        return run

    write(tmp_path / "files", "0", 1, 2, 3)
    with pytest.raises(StreamingQueryException, match=r"has begun already: .*give each a job name.* job='n'"):
        stream(spark, tmp_path / "files", tmp_path / "checkpoint", both("n"))
    assert None in (db.get("total", "first"), db.get("total", "second")), "one of them has not run"


@pytest.mark.slow
def test_functions_have_names_of_their_own(spark: SparkSession, db: Database, tmp_path: Path) -> None:
    with closing(open_database(f"sqlite://{tmp_path}/other.db", create=True)) as other:
        for one in (db, other):
            one.create_table("total")
        units = [
            TransactionalMap(adds_to(row), database=one).for_each_batch(key="id", job=name)
            for row, one, name in (("first", db, "n"), ("second", db, "totals"), ("third", other, "others"))
        ]

        def run(batch: DataFrame, number: int) -> None:
            for one in units:
                one(batch, number)

        write(tmp_path / "files", "0", 1, 2, 3)
        stream(spark, tmp_path / "files", tmp_path / "checkpoint", run)
        assert db.get_many("total", ["first", "second"]) == {"first": 6, "second": 6}
        assert other.get("total", "third") == 6


@pytest.mark.slow
def test_a_batch_is_repeated_also_under_a_job_group_of_its_own(
    spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """The group says nothing about the run of the query then."""
    step = TransactionalMap(note, database=db).for_each_batch(key="id", job="n")
    fails = [True]

    def run(batch: DataFrame, number: int) -> None:
        spark.sparkContext.setJobGroup("etl", "a load")
        step(batch, number)
        if fails.pop():
            raise ValueError("injected")

    write(tmp_path / "files", "0", 1, 2, 3)
    with pytest.raises(StreamingQueryException, match="injected"):
        stream(spark, tmp_path / "files", tmp_path / "checkpoint", run)
    fails.append(False)
    stream(spark, tmp_path / "files", tmp_path / "checkpoint", run)
    assert seen(db) == {1: 1, 2: 1, 3: 1}


def fails_at_3(txn: Any, key: int, row: Any) -> None:
    if key == 3:
        raise ValueError("injected")
    note(txn, key, row)


CHANGES: dict[str, tuple[type[TransactionalMap], dict[str, Any]]] = {
    "key": (TransactionalMap, {"key": "b"}),
    "number of tasks": (TransactionalMap, {"key": "id", "tasks": 3}),
    "kind": (TransactionalReduce, {"key": "id"}),
}


@pytest.mark.parametrize(
    "name", [name if name == "key" else pytest.param(name, marks=pytest.mark.slow) for name in CHANGES]
)
def test_a_batch_that_is_half_done_goes_on_when_the_query_is_as_it_was(
    name: str, spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    kind, changed = CHANGES[name]

    def run(units: TransactionalMap, **given: Any) -> None:
        count = units.for_each_batch(job="counts", **{"tasks": None, **given})

        def with_b(batch: DataFrame, number: int) -> None:
            count(batch.selectExpr("id", "id AS b"), number)

        stream(spark, tmp_path / "files", tmp_path / "checkpoint", with_b)

    write(tmp_path / "files", "0", 1, 2, 3)
    with pytest.raises(StreamingQueryException, match=r"mend it, and run the job or the query again.*injected"):
        run(TransactionalMap(fails_at_3, database=db, group=1), key="id")
    before = seen(db)
    with pytest.raises(StreamingQueryException) as caught:
        run(kind(note, database=db), **changed)
    [told] = re.findall(r"InputChangedError: (.*)", str(caught.value).partition("JVM stacktrace")[0])
    assert re.search(r"run the query once more as it was.*another name would run again what is done", told)
    assert seen(db) == before
    run(TransactionalMap(note, database=db), key="id")
    assert seen(db) == dict.fromkeys((1, 2, 3), 1)


@pytest.mark.slow
def test_a_name_that_is_used_again_is_no_reason_to_drop_a_batch(
    spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """Whoever names jobs after the numbers of batches is told when a new checkpoint begins with 0 again."""
    units = TransactionalMap(note, database=db)

    def count(batch: DataFrame, number: int) -> None:
        units.run(batch, key="id", job=f"batch-{number}", tasks=2)

    write(tmp_path / "files", "0", 1, 2, 3)
    stream(spark, tmp_path / "files", tmp_path / "first", count)
    write(tmp_path / "files", "0", 4)
    with pytest.raises(StreamingQueryException, match=r"the job is finished, and had other rows.*job='batch-0'"):
        stream(spark, tmp_path / "files", tmp_path / "second", count)
    assert seen(db) == dict.fromkeys((1, 2, 3), 1)


@pytest.mark.slow
def test_a_batch_that_an_older_checkpoint_makes_anew_is_not_dropped(
    spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """Its keys are those of a batch that has counted, as if Spark repeated that, but it has rows that have not."""
    files, checkpoint, copy = tmp_path / "files", tmp_path / "checkpoint", tmp_path / "copy"
    count = TransactionalMap(add_rows, database=db).for_each_batch(key="id", job="counts", tasks=2)

    def run() -> None:
        stream(spark, files, checkpoint, lambda batch, number: count(batch.groupBy("id").count(), number), at_once=9)

    write(files, "0", 1, 2)
    run()
    shutil.copytree(checkpoint, copy)
    write(files, "1", 1, 2)
    run()
    write(files, "2", 1, 2)
    checkpoint.rename(tmp_path / "newest")
    copy.rename(checkpoint)
    with pytest.raises(StreamingQueryException, match=r"from an older copy of the checkpoint.*with its newest check"):
        run()
    assert seen(db) == {1: 2, 2: 2}
    shutil.rmtree(checkpoint)
    (tmp_path / "newest").rename(checkpoint)
    run()
    assert seen(db) == {1: 3, 2: 3}


@pytest.mark.slow
@pytest.mark.parametrize("is_half_done", [False, True])
def test_after_a_restore_of_the_db_the_checkpoint_is_put_back(
    is_half_done: bool, spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """As the guide says: later commits are deleted, and all but one of the later offsets."""
    files, checkpoint = tmp_path / "files", tmp_path / "checkpoint"

    def run(function: Any, db: Database) -> None:
        units = TransactionalMap(function, database=db, group=1)
        stream(spark, files, checkpoint, units.for_each_batch(key="id", job="counts"))

    write(files, "0", 1)
    run(note, db)
    write(files, "1", 2, 3)
    if is_half_done:
        with pytest.raises(StreamingQueryException, match="injected"):
            run(fails_at_3, db)
    with closing(sqlite3.connect(tmp_path / "database.db")) as database:
        database.execute("VACUUM INTO ?", [str(tmp_path / "restored.db")])
    for number in (2, 3):
        run(note, db)
        write(files, str(number), 2 * number)
    run(note, db)
    for folder, last in (("commits", 0), ("offsets", 1)):
        for file in (checkpoint / folder).iterdir():
            if int(file.name.removeprefix(".").removesuffix(".crc")) > last:
                file.unlink()
    with open_database(f"sqlite://{tmp_path}/restored.db") as restored:
        assert seen(restored) == dict.fromkeys((1, 2) if is_half_done else (1,), 1)
        run(note, restored)
        assert seen(restored) == dict.fromkeys((1, 2, 3, 4, 6), 1)


def test_wrong_calls_are_refused(spark: SparkSession, db: Database) -> None:
    units = TransactionalMap(note, database=db)
    for name in ("", "a b", "n" * 80, 5):
        with pytest.raises(InvalidRequestError, match="the name of a job has"):
            units.for_each_batch(key="id", job=name)  # type: ignore[arg-type] # names of all types are checked
    with pytest.raises(InvalidRequestError, match=r"pass it to foreachBatch.*PYSPARK_PIN_THREAD"):
        units.for_each_batch(key="id", job="counts")(spark.range(3), 0)
