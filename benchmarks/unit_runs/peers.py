"""Do the work of units as one would write it with psycopg: without a transaction, SERIALIZABLE, and with locks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import psycopg
from psycopg import errors

from benchmarks.unit_runs.workloads import CELLS

__all__ = ["PEERS", "Connection", "Done", "PeerTask", "connect", "create_tables", "forget_progress", "peer_total"]

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

_TABLES = """
CREATE TABLE IF NOT EXISTS cells (k int PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 70);
CREATE TABLE IF NOT EXISTS progress (task int PRIMARY KEY, units int NOT NULL) WITH (fillfactor = 20);
"""
_GET = "SELECT n FROM cells WHERE k = %s"
_LOCK = "SELECT n FROM cells WHERE k = %s FOR UPDATE"
_PUT = "UPDATE cells SET n = %s WHERE k = %s"
_PROGRESS = "UPDATE progress SET units = %s WHERE task = %s"


def connect(url: str) -> Connection:
    """Open a connection that finds rows by their index, however small a table is.

    Under SERIALIZABLE, a scan of a whole table conflicts with everybody who writes to it.
    """
    connection = psycopg.connect(url, prepare_threshold=0, autocommit=True)
    connection.execute("SET enable_seqscan = off")
    return connection


def create_tables(url: str) -> None:
    """Create the tables, with all cells."""
    with connect(url) as connection:
        connection.execute(_TABLES, prepare=False)
        connection.execute("INSERT INTO cells SELECT n, 0 FROM generate_series(0, %s - 1) AS n", (CELLS,))
        connection.execute("VACUUM ANALYZE cells")


def forget_progress(url: str, tasks: int) -> None:
    """Let so many tasks start anew."""
    with connect(url) as connection:
        connection.execute("TRUNCATE progress")
        connection.execute("INSERT INTO progress SELECT n, 0 FROM generate_series(0, %s - 1) AS n", (tasks,))


def peer_total(url: str) -> int:
    """Return the sum of all cells."""
    with connect(url) as connection:
        row = connection.execute("SELECT sum(n) FROM cells").fetchone()
    assert row is not None, "an aggregate has a row"
    return int(row[0])


Transact = Callable[[Connection, tuple[int, int], Callable[[], None]], None]
"""Does the work of a unit with two cells; calls the function to record that it is done."""


def _naive(connection: Connection, cells: tuple[int, int], record: Callable[[], None]) -> None:
    found = [_value(connection, _GET, cell) for cell in cells]
    for cell, value in zip(cells, found, strict=True):
        connection.execute(_PUT, (value + 1, cell))


def _transact(query: str) -> Transact:
    def run(connection: Connection, cells: tuple[int, int], record: Callable[[], None]) -> None:
        with connection.transaction():
            found = [_value(connection, query, cell) for cell in cells]
            for cell, value in zip(cells, found, strict=True):
                connection.execute(_PUT, (value + 1, cell))
            record()

    return run


def _value(connection: Connection, query: str, cell: int) -> int:
    row = connection.execute(query, (cell,)).fetchone()
    assert row is not None, "all cells exist"
    return int(row[0])


PEERS: Mapping[str, Transact] = {
    "naive": _naive,
    "serializable": _transact(_GET),
    "for update": _transact(_LOCK),
}
"""``naive`` reads and writes without a transaction, and records no progress. The others record it as Holdfast does, in
the transaction of the unit. ``for update`` locks in the order of the keys."""

_ISOLATION = {"serializable": psycopg.IsolationLevel.SERIALIZABLE}


class Done:
    """What a task has done.

    Attributes:
        units: that took effect.
        conflicts: transactions that were repeated.
    """

    def __init__(self) -> None:
        self.units = 0
        self.conflicts = 0


class PeerTask:
    """A task that does one unit after the other.

    Args:
        name: a key of `PEERS`.
        task: its number.
    """

    def __init__(self, connection: Connection, name: str, task: int) -> None:
        connection.isolation_level = _ISOLATION.get(name)
        self._connection = connection
        self._transact = PEERS[name]
        self._task = task
        self._is_recorded = name != "naive"

    def run(self, units: Iterable[tuple[int, int]], done: Done) -> None:
        """Run units; those that an earlier attempt has recorded are left out."""
        skipped = self._recorded() if self._is_recorded else 0
        for number, cells in enumerate(units, 1):
            if number > skipped:
                self._run_one(number, cells, done)

    def _recorded(self) -> int:
        row = self._connection.execute("SELECT units FROM progress WHERE task = %s", (self._task,)).fetchone()
        assert row is not None, "all tasks have a row"
        return int(row[0])

    def _record(self, number: int) -> None:
        self._connection.execute(_PROGRESS, (number, self._task))

    def _run_one(self, number: int, cells: tuple[int, int], done: Done) -> None:
        wait_s = 0.001
        while True:
            try:
                self._transact(self._connection, cells, lambda: self._record(number))
            except (errors.SerializationFailure, errors.DeadlockDetected):
                done.conflicts += 1
                time.sleep(wait_s * random.random())
                wait_s = min(2 * wait_s, 0.1)
            else:
                done.units += 1
                return
