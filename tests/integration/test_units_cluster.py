"""Run units on real clusters: executors are killed, attempts run twice at the same time, a host freezes and thaws.

The database is the only thing that attempts share: what a twin or a zombie has left to commit conflicts with it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from holdfast.records.database import Database, open_database
from holdfast.spark.units import TransactionalMap, TransactionalReduce
from holdfast.units.work_list import open_work_list
from tests.frozen import thaw
from tests.integration.dying_units import add_words, change_words, counted, counted_words, lines_of_words
from tests.integration.spark_session import by_value, spark_session
from tests.integration.standalone_cluster import standalone_cluster
from tests.patience import PATIENCE_S, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the counts
]

by_value(__name__)

LINES = lines_of_words(2000)
RIGHT = counted(LINES)


@pytest.fixture
def db(tmp_path: Path) -> Database:
    (tmp_path / "signals").mkdir()
    db = open_database(f"sqlite://{tmp_path}/database.db?synchronous=normal", create=True)
    db.create_table("words")
    db.create_table("visits")
    return db


@pytest.fixture
def signals(tmp_path: Path) -> Path:
    return tmp_path / "signals"


def lines(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(LINES, "number int, line string")


def visits(db: Database) -> dict[Any, Any]:
    return {row: columns["value"] for row, columns in db.scan("visits")}


def attempt() -> tuple[int, int]:
    """Return the partition and the number of the attempt."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.attemptNumber()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def executor_pid() -> int:
    """Return the process ID of the JVM that started this Python worker."""
    pid = os.getpid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = parent(pid)
    return pid


class Counting:
    """Calls a function; counts the calls of the attempt that runs in this process."""

    def __init__(self, function: Callable[[Any, Any, Any], object], signals: Path) -> None:
        self.function = function
        self.signals = signals
        self.attempt: tuple[int, int] | None = None
        self.calls = 0

    def __call__(self, txn: Any, key: Any, value: Any) -> None:
        now = attempt()
        if now != self.attempt:
            self.attempt, self.calls = now, 0
        self.calls += 1
        self.before(*now)
        self.function(txn, key, value)

    def before(self, partition: int, number: int) -> None:
        """Do what the test is about: each does something else."""


# --- executors that are killed ----------------------------------------------------------------------------------------
class KillsExecutor(Counting):
    """The first attempts at the tasks 0 and 1 kill their executor with SIGKILL in the middle.

    With an executor goes what it kept of the shuffle; then the stage begins again, and counts its attempts from 0.
    """

    def before(self, partition: int, number: int) -> None:
        killed = self.signals / f"killed-{partition}"
        if partition in (0, 1) and self.calls == 60 and not killed.exists():
            killed.touch()
            os.kill(executor_pid(), signal.SIGKILL)
            threading.Event().wait(PATIENCE_S)


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[SparkSession]:
    with spark_session("local-cluster[2,1,1024]", spark__executor__memory="512m") as session:
        yield session


def test_executors_are_killed_in_a_map(local_cluster: SparkSession, db: Database, signals: Path) -> None:
    units = TransactionalMap(KillsExecutor(change_words, signals), database=db, group=8)
    report = units.run(lines(local_cluster), key="number", tasks=4)
    assert {path.name for path in signals.iterdir()} == {"killed-0", "killed-1"}
    assert (counted_words(db), report.total.units) == (RIGHT, len(LINES))


def test_executors_are_killed_in_a_reduce(local_cluster: SparkSession, db: Database, signals: Path) -> None:
    def count_values(txn: Any, word: str, values: list[int]) -> None:
        txn.add("words", word, len(values))

    pairs = local_cluster.sparkContext.parallelize(LINES, 4).flatMap(lambda one: [(word, 1) for word in one[1].split()])
    units = TransactionalReduce(KillsExecutor(count_values, signals), database=db, group=8)
    report = units.run(pairs, tasks=4)
    assert {path.name for path in signals.iterdir()} == {"killed-0", "killed-1"}
    assert (counted_words(db), report.total.units) == (RIGHT, len(RIGHT))


def test_executors_are_killed_in_a_work_list(local_cluster: SparkSession, db: Database, signals: Path) -> None:
    def double(txn: Any, key: int, value: Any) -> None:
        txn.add("visits", key)
        for near in (2 * key, 2 * key + 1):
            if near < 2000:
                txn.emit(near)

    open_work_list(db, "tree", create=True).add(1)
    units = TransactionalMap(KillsExecutor(double, signals), database=db, group=8, lease_s=3)
    report = units.run_work_list(local_cluster, "tree", tasks=2)
    assert len(list(signals.iterdir())) >= 1
    assert visits(db) == dict.fromkeys(range(1, 2000), 1)
    assert report.total.units == 1999


# --- two hosts --------------------------------------------------------------------------------------------------------
SLOW = 1


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with (
        standalone_cluster(tmp_path_factory.mktemp("cluster")) as master,
        spark_session(
            master,
            spark__executor__memory="512m",
            spark__executor__cores="2",
            spark__task__cpus="2",  # one task per host
            spark__speculation="true",
            spark__speculation__interval="200ms",
            spark__speculation__quantile="0.5",
            spark__speculation__multiplier="1.1",
            spark__speculation__minTaskRuntime="100ms",
        ) as session,
    ):
        # The driver is one of the three. Two tasks on one host would freeze together.
        wait_until(lambda: session._jsc.sc().getExecutorMemoryStatus().size() == 3, "an executor is missing")
        yield session


class WaitsForTwin(Counting):
    """Both attempts at the slow task meet in the middle, and then run at the same time to the end.

    The copy, which has done units of the first attempt's group meanwhile, waits until that one has found this out and
    has gone on: on a busy machine, the first attempt might otherwise commit nothing anymore, and record no conflict.
    """

    def before(self, partition: int, number: int) -> None:
        if partition == SLOW and self.calls == 20:
            (self.signals / f"half-{number}").touch()
            wait_until((self.signals / f"half-{1 - number}").exists, "no copy was started")
            if number == 1:
                wait_until((self.signals / "gone-on").exists, "the first attempt does not go on")
        elif partition == SLOW and self.calls == 60 and number == 0:
            (self.signals / "gone-on").touch()


@pytest.mark.parametrize(("function", "group"), [(add_words, 1), (add_words, 16), (change_words, 4)])
def test_two_attempts_at_one_task_run_at_the_same_time(
    function: Callable[[Any, Any, Any], object], group: int, two_hosts: SparkSession, db: Database, signals: Path
) -> None:
    units = TransactionalMap(WaitsForTwin(function, signals), database=db, group=group)
    report = units.run(lines(two_hosts), key="number", tasks=2)
    assert {path.name for path in signals.iterdir()} >= {"half-0", "half-1"}
    assert (counted_words(db), report.total.units) == (RIGHT, len(LINES))
    assert report.tasks[SLOW].conflicts > 0, "the twins have met in the database"
    assert report.tasks[SLOW].skipped > 0, "each twin has found units that the other had done"


# --- a host that freezes ----------------------------------------------------------------------------------------------
class Freezes(Counting):
    """An attempt freezes the host that has no data of the shuffle; its Python worker lives on, as a zombie.

    The data are on the other host, or it would wait for them for minutes.
    """

    def before(self, partition: int, number: int) -> None:
        has_data = (self.signals / "host-with-data").read_text() == str(executor_pid())
        if has_data:
            (self.signals / "other-began").touch()
            if self.calls == 100:  # until then, or Spark would give both tasks to the host that has the data
                wait_until((self.signals / "victims").exists, "no host freezes")
        elif self.calls == 100:
            # Until then, the other host may be fetching the code of the task from this one.
            wait_until((self.signals / "other-began").exists, "the other task does not begin")
            executor = executor_pid()
            host = parent(executor)  # Spark's worker: a running one would kill an executor that Spark gave up
            (self.signals / "found").write_text(f"{executor} {host}")
            (self.signals / "found").rename(self.signals / "victims")
            os.kill(host, signal.SIGSTOP)
            os.kill(executor, signal.SIGSTOP)
            wait_until((self.signals / "go-on").exists, "the job does not end")
            threading.Thread(target=self.tell_end, args=[threading.get_ident()], daemon=True).start()
            (self.signals / "went-on").write_text(str(os.getpid()))

    def tell_end(self, thread: int) -> None:
        """Tell when a thread runs no units any more."""
        wait_until(lambda: not is_in_units(sys._current_frames()[thread]), "the zombie does not end")
        (self.signals / "ended").touch()


def is_in_units(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith("shard_task.py"):
            return True
        frame = frame.f_back
    return False


def test_a_zombie_on_a_frozen_host_changes_nothing(two_hosts: SparkSession, db: Database, signals: Path) -> None:
    def note_host(pairs: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        (signals / "host-with-data").write_text(str(executor_pid()))
        return pairs

    pairs = two_hosts.sparkContext.parallelize(LINES, 1).mapPartitions(note_host)
    units = TransactionalMap(Freezes(add_words, signals), database=db, group=8, timeout_s=PATIENCE_S)
    try:
        report = units.run(pairs, tasks=2)
        assert (counted_words(db), report.total.units) == (RIGHT, len(LINES))
        assert (signals / "victims").exists(), "no host has frozen"
        (signals / "go-on").touch()
        wait_until((signals / "went-on").exists, "the zombie does not go on")
        zombie = Path("/proc", (signals / "went-on").read_text())
        wait_until(lambda: (signals / "ended").exists() or not zombie.exists(), "the zombie does not end")
        assert counted_words(db) == RIGHT
    finally:
        (signals / "go-on").touch()
        thaw(signals / "victims")
    assert counted_words(db) == RIGHT
