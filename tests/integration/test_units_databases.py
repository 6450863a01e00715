"""Kill the database, or lock it, while units of a Spark job run: every line still counts exactly once."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import UnsupportedError
from holdfast.records.database import open_database
from holdfast.spark.units import TransactionalMap
from holdfast.units.report import JobReport
from tests.integration.dying_units import add_words, change_words, counted, counted_words, lines_of_words
from tests.integration.spark_session import by_value
from tests.patience import PATIENCE_S, wait_until
from tests.servers.mariadb_server import MariadbServer, find_mariadb
from tests.servers.postgres_server import PostgresServer, find_postgres

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the counts
]

by_value(__name__)

LINES = lines_of_words(4000)
KILLS = 3
"""A task whose commits are lost runs again, and Spark does that three times."""

SERVERS = {"postgresql": (PostgresServer, find_postgres), "mysql": (MariadbServer, find_mariadb)}
LAZY = {"postgresql": {"synchronous_commit": "off"}, "mysql": {"innodb_flush_log_at_trx_commit": "0"}}


class Gates:
    """Points of a job that it does not pass before somebody has let it.

    Args:
        folder: of the files that tell who is where.
        every: units whose keys are the first multiples of this number are gates.
    """

    def __init__(self, folder: Path, every: int) -> None:
        folder.mkdir()
        self.folder = folder
        self.every = every

    def pass_on(self, key: int) -> None:
        """Wait at a gate: in a unit."""
        number, rest = divmod(key, self.every)
        if 1 <= number <= KILLS and not rest and not (self.folder / f"open-{number}").exists():
            (self.folder / f"reached-{number}").touch()
            wait_until((self.folder / f"open-{number}").exists, "nobody opens the gate")

    def open(self, number: int, job: Future[JobReport]) -> None:
        """Wait until a unit is at a gate, and let it pass: in the test."""
        wait_until((self.folder / f"reached-{number}").exists, "no unit comes to the gate", over=job.done)
        (self.folder / f"open-{number}").touch()


@pytest.fixture(scope="module")
def lines(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(LINES, "number int, line string").cache()


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(tmp_path / "gates", len(LINES) // (KILLS + 1))


@pytest.fixture
def background() -> Iterator[Callable[[Callable[[], JobReport]], Future[JobReport]]]:
    """Run a job beside the test: a server lives no longer than the thread that has started it."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit


def gated(function: Callable[[Any, Any, Any], object], gates: Gates) -> Callable[[Any, int, Any], None]:
    def run(txn: Any, key: int, value: Any) -> None:
        gates.pass_on(key)
        function(txn, key, value)

    return run


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Return another process that can lock a file of SQLite: it does so as long as its input stays open."""
    program = (
        "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1], isolation_level=None); sys.stdin.readline();"
        "connection.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "database.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_a_file_that_another_process_locks_is_waited_for(
    lines: DataFrame, gates: Gates, locked: subprocess.Popen[str], background: Any, tmp_path: Path
) -> None:
    with open_database(f"sqlite://{tmp_path}/database.db?synchronous=normal", create=True) as db:
        db.create_table("words")
        units = TransactionalMap(gated(add_words, gates), database=db, group=8)
        job = background(lambda: units.run(lines, key="number", tasks=2))
        assert locked.stdin is not None
        assert locked.stdout is not None
        wait_until((gates.folder / "reached-1").exists, "no unit comes to the gate", over=job.done)
        locked.stdin.write("\n")
        locked.stdin.flush()
        assert locked.stdout.readline() == "locked\n"
        for number in range(1, KILLS + 1):
            (gates.folder / f"open-{number}").touch()
        threading.Event().wait(0.5)
        assert not job.done()
        locked.stdin.close()
        report = job.result(PATIENCE_S)
        assert counted_words(db) == counted(LINES)
        assert report.total.units == len(LINES)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, LAZY], ids=["durable", "lazy"])
@pytest.mark.parametrize(("function", "group"), [(add_words, 8), (change_words, 1)])
@pytest.mark.parametrize("name", SERVERS)
def test_a_database_that_is_killed_under_load_loses_and_repeats_nothing(
    name: str,
    function: Callable[[Any, Any, Any], object],
    group: int,
    settings: Mapping[str, Mapping[str, str]],
    lines: DataFrame,
    gates: Gates,
    background: Any,
) -> None:
    kind, find = SERVERS[name]
    try:
        find()
    except UnsupportedError as error:
        pytest.skip(str(error))
    with kind(settings=settings.get(name)) as server:
        url = server.create_database("words")
        with open_database(url, create=True) as db:
            db.create_table("words")
            db.backend.make_durable()
        units = TransactionalMap(gated(function, gates), database=url, group=group)
        job = background(lambda: units.run(lines, key="number", tasks=2))
        for number in range(1, KILLS + 1):
            gates.open(number, job)
            threading.Event().wait(0.01 * number)
            assert not job.done()
            server.kill()
            server.start()
        report = job.result(PATIENCE_S)
        with open_database(url) as db:
            assert counted_words(db) == counted(LINES)
        assert report.total.units == len(LINES)
