"""Count words with units in real Spark while tasks die: every line counts exactly once, and never with plain code."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import DataFrame, SparkSession

from holdfast.records.database import Database, open_database
from holdfast.spark.units import TransactionalMap, TransactionalReduce
from tests.integration.dying_units import (
    ANYTIME,
    BETWEEN,
    COMMITTED,
    COMMITTING,
    FUNCTION,
    RAISING,
    UNKNOWN,
    Dying,
    add_words,
    change_words,
    counted,
    counted_words,
    lines_of_words,
    marks,
    naive,
    put_number_of_values,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the counts
]

LINES = lines_of_words(4000)
RIGHT = counted(LINES)
TASKS = 3
GROUPS = (1, 32)
FUNCTIONS = {"add": add_words, "read and write": change_words}
PLANS = {
    "exit before and after commits": (COMMITTING, COMMITTED, FUNCTION),
    "exit after every third commit": (COMMITTED, COMMITTED, COMMITTED),
    "exit between function and commit": (BETWEEN, COMMITTED, BETWEEN),
    "exceptions": (RAISING, COMMITTED, RAISING),
    "deaths and a lost reply": (COMMITTED, RAISING, UNKNOWN),
    "SIGKILL at any time": (ANYTIME, ANYTIME, ANYTIME),
}
DEFAULT = {("exit before and after commits", "read and write", 32)}


def cases() -> list[object]:
    """Return all combinations, of which some are not slow."""
    return [
        pytest.param(plan, name, group, marks=() if (plan, name, group) in DEFAULT else pytest.mark.slow)
        for plan in PLANS
        for name in FUNCTIONS
        for group in GROUPS
    ]


@pytest.fixture(scope="module")
def lines(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(LINES, "number int, line string").cache()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of the marks."""
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


@pytest.fixture
def db(tmp_path: Path) -> Database:
    db = open_database(f"sqlite://{tmp_path}/database.db?synchronous=normal", create=True)
    db.create_table("words")
    return db


@pytest.mark.parametrize(("plan", "name", "group"), cases())
def test_each_line_counts_once(plan: str, name: str, group: int, lines: DataFrame, db: Database, folder: Path) -> None:
    dying = Dying(FUNCTIONS[name], PLANS[plan], folder)
    report = TransactionalMap(dying, database=db, group=group).run(lines, key="number", tasks=TASKS)
    assert counted_words(db) == RIGHT
    assert report.total.units == len(LINES)
    assert marks(folder) == Counter(PLANS[plan] * TASKS)


@pytest.mark.slow
def test_each_key_is_reduced_once(spark: SparkSession, db: Database, folder: Path) -> None:
    pairs = spark.sparkContext.parallelize(LINES, 4).flatMap(lambda line: [(word, line[0]) for word in line[1].split()])
    dying = Dying(put_number_of_values, (COMMITTED, FUNCTION), folder)
    report = TransactionalReduce(dying, database=db, group=8).run(pairs, tasks=TASKS)
    assert counted_words(db) == RIGHT
    assert report.total.units == len(RIGHT)
    assert marks(folder) == Counter((COMMITTED, FUNCTION) * TASKS)


@pytest.mark.slow
def test_plain_increments_count_twice(lines: DataFrame, db: Database, folder: Path) -> None:
    """The same deaths without units: every attempt that dies after 20 lines has counted them, and the next does too."""
    plan = (COMMITTED, RAISING)
    lines.repartition(TASKS, "number").foreachPartition(naive(db.full_url, plan, folder, after=20))
    assert marks(folder) == Counter(plan * TASKS)
    assert counted_words(db) != RIGHT
    assert counted_words(db).total() == RIGHT.total() + TASKS * len(plan) * 20 * 10
