"""A snapshot that nobody reads from keeps the log of the file, so it ends after an hour."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.errors import UnavailableError
from holdfast.runtime import Environment
from holdfast.runtime.simulated import StillClock
from holdfast.transactions.base import Commit
from holdfast.transactions.sqlite.backend import SqliteBackend
from holdfast.transactions.sqlite.connection import prepare_file
from holdfast.transactions.sqlite.snapshot import SqliteSnapshot
from tests.patience import PATIENCE_S

_HOUR_S = 3600.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "records.db")
    prepare_file(path, create=True)
    return path


def _fill(backend: SqliteBackend, commits: int) -> int:
    """Write so often; return the size of the log."""
    for number in range(commits):
        backend.commit(Commit(puts={b"k%d" % (number % 5): os.urandom(100_000)}))
    return os.path.getsize(f"{backend._path}-wal")


def test_a_forgotten_snapshot_no_longer_keeps_the_log(path: str) -> None:
    clock = StillClock()
    backend = SqliteBackend(path, Environment(clock=clock), synchronous="normal")
    with backend.snapshot() as forgotten:
        kept = _fill(backend, 100)
        clock.at_s += _HOUR_S + 1
        assert _fill(backend, 400) < 2 * kept, "the log is written from its start again"
        with pytest.raises(UnavailableError, match="nobody has read from the snapshot for an hour"):
            forgotten.get_many([b"k0"])
    with backend.snapshot() as another:
        assert len(another.scan(b"k", b"l", 10).records) == 5
    backend.close()


def test_a_snapshot_that_is_read_slowly_goes_on(path: str) -> None:
    clock = StillClock()
    backend = SqliteBackend(path, Environment(clock=clock), synchronous="normal")
    backend.commit(Commit(puts={b"k": b"old"}))
    with backend.snapshot() as slow:
        for _ in range(5):
            clock.at_s += _HOUR_S - 1
            backend.commit(Commit(puts={b"k": b"new"}))
            assert slow.get_many([b"k"])[b"k"].value == b"old"
            assert slow.scan(b"k", b"l", 1).records[0][1].value == b"old"
    backend.close()


def test_a_snapshot_that_was_left_alone_for_an_hour_ends_even_if_nobody_else_uses_the_file(path: str) -> None:
    clock = StillClock()
    backend = SqliteBackend(path, Environment(clock=clock))
    with backend.snapshot() as snapshot:
        clock.at_s += _HOUR_S + 1
        with pytest.raises(UnavailableError, match="begin to read anew"):
            snapshot.scan(b"a", b"z", 1)
    backend.close()


def test_a_snapshot_that_is_over_ends_no_transaction_of_who_has_its_connection_now(path: str) -> None:
    clock = StillClock()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        snapshot = SqliteSnapshot(connection, clock)
        snapshot.close()
        connection.execute("BEGIN")
        clock.at_s += _HOUR_S + 1
        snapshot.end_if_idle()
        assert connection.in_transaction


def test_a_read_that_takes_more_than_an_hour_is_not_ended_by_others(path: str) -> None:
    clock = StillClock()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("BEGIN")
        snapshot = SqliteSnapshot(connection, clock)
        other = threading.Thread(target=snapshot.end_if_idle)

        def wait(_statement: str) -> None:
            connection.set_trace_callback(None)
            clock.at_s += _HOUR_S + 1
            other.start()
            other.join(1.0)  # longer only if it waits for the end of the statement

        connection.set_trace_callback(wait)
        assert snapshot.get_many([b"k"]) == {}
        other.join(PATIENCE_S)
        assert snapshot.get_many([b"k"]) == {}
