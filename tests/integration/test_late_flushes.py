"""Kill a database that flushes its log late: what a task or a driver has reported is there, and everything counts once.

The server flushes every ten seconds unless it is asked to, so a kill takes away whatever was not flushed on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import SparkSession

from holdfast.records.database import open_database
from holdfast.spark.units import TransactionalMap
from holdfast.units.work_list import open_work_list
from tests.databases import needs_postgres
from tests.integration.dying_units import add_words, counted, counted_words, lines_of_words
from tests.integration.spark_session import by_value
from tests.patience import PATIENCE_S, wait_until
from tests.servers.postgres_server import PostgresServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    needs_postgres,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the counts
]

by_value(__name__)

LATE = {"synchronous_commit": "off", "wal_writer_delay": "10s"}
LINES = lines_of_words(20)
LAST = len(LINES) - 1


class Gate:
    """A point of a job that it does not pass before the test has let it."""

    def __init__(self, folder: Path) -> None:
        self.reached = folder / "reached"
        self.open = folder / "open"

    def pass_on(self) -> None:
        self.reached.touch()
        wait_until(self.open.exists, "nobody opens the gate")


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings=LATE) as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> str:
    url = server.create_database("words")
    with open_database(url, create=True) as db:
        db.create_table("words")
        db.backend.make_durable()
    return url


@pytest.fixture
def background() -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Run a job beside the test: a server lives no longer than the thread that has started it."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit


def kill_at(gate: Gate, server: PostgresServer, job: Future[Any], is_ready: Callable[[], bool] = lambda: True) -> None:
    wait_until(lambda: gate.reached.exists() and is_ready(), "nobody comes to the gate", over=job.done)
    assert not job.done()
    server.kill()
    server.start()
    gate.open.touch()


def test_a_job_is_there_although_no_unit_was_committed(
    spark: SparkSession, server: PostgresServer, url: str, gate: Gate, background: Any
) -> None:
    def step(txn: Any, key: int, value: Any) -> None:
        gate.pass_on()
        add_words(txn, key, value)

    rows = spark.createDataFrame(LINES, "number int, line string")
    job = background(lambda: TransactionalMap(step, database=url).run(rows, key="number", tasks=1))
    kill_at(gate, server, job)
    assert job.result(PATIENCE_S).total.units == len(LINES)
    with open_database(url) as db:
        assert counted_words(db) == counted(LINES)


def test_units_of_a_work_list_that_were_lost_run_again(
    spark: SparkSession, server: PostgresServer, url: str, gate: Gate, background: Any
) -> None:
    def step(txn: Any, key: int, value: Any) -> None:
        if key == LAST:
            gate.pass_on()
        txn.add("words", key, 1)

    with open_database(url) as db:
        items = open_work_list(db, "numbers", create=True)
        items.add_many((number, None) for number in range(len(LINES)))
        units = TransactionalMap(step, database=url, group=1)
        job = background(lambda: units.run_work_list(spark, "numbers", tasks=2))
        kill_at(gate, server, job, lambda: items.counts()[0] == 0)
        job.result(PATIENCE_S)
        assert {row: columns["value"] for row, columns in db.scan("words")} == dict.fromkeys(range(len(LINES)), 1)
