"""`make_durable` returns when the log of the server is on the disk, or says what is missing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import pymysql
import pytest

from holdfast.errors import UnavailableError, UnsupportedError
from holdfast.runtime import Environment
from holdfast.runtime.simulated import SimulatedClock
from holdfast.transactions.base import Commit
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import Link, Reply
from holdfast.transactions.mysql.durability import flush_log
from holdfast.transactions.registry import open_backend
from tests.servers.mariadb_server import MariadbServer, find_mariadb


def test_a_server_flushes_its_log(backend: MysqlBackend) -> None:
    backend.commit(Commit(puts={b"a": b"1"}))
    backend.make_durable()
    assert backend.get_many([b"a"])[b"a"].value == b"1"


@pytest.mark.slow
def test_what_is_durable_survives_a_kill_of_a_server_that_does_not_flush() -> None:
    try:
        find_mariadb()
    except UnsupportedError as error:
        pytest.skip(str(error))
    with MariadbServer(settings={"innodb_flush_log_at_trx_commit": "0"}) as server:
        url = server.create_database("lazy")
        with closing(open_backend(url, create=True)) as backend:
            backend.make_durable()
        for number in range(10):
            key = f"{number}".encode()
            with closing(open_backend(url)) as backend:
                backend.commit(Commit(puts={key: b"1"}))
                backend.make_durable()
                server.kill()
            server.start()
            with closing(open_backend(url)) as backend:
                assert backend.get_many([key])[key].value == b"1"


@pytest.mark.slow
def test_what_is_durable_survives_a_power_failure_of_a_server_with_a_binary_log() -> None:
    """MariaDB syncs its binary log late, and takes back what is prepared in its own log but not in the binary one."""
    try:
        find_mariadb()
    except UnsupportedError as error:
        pytest.skip(str(error))
    with MariadbServer(settings={"log_bin": "binary", "server_id": "1", "sync_binlog": "0"}) as server:
        url = server.create_database("late")
        open_backend(url, create=True).close()
        for number in range(10):
            key = f"{number}".encode()
            with closing(open_backend(url)) as backend, closing(server.connect()) as connection:
                backend.get_many([key])
                with connection.cursor() as cursor:
                    cursor.execute("SELECT @@log_bin_basename")
                    ((base,),) = cursor.fetchall()
                log = max(Path(base).parent.glob("binary.0*"))
                synced = log.stat().st_size
                backend.commit(Commit(puts={key: b"1"}))
                backend.make_durable()
                server.kill()
            os.truncate(log, synced)  # nobody has synced the rest: after a power failure, it need not be there
            server.start()
            with closing(open_backend(url)) as backend:
                assert backend.get_many([key])[key].value == b"1"


class _Link:
    """A connection to a server with settings, which lets this user do something, or not.

    Args:
        setting: how often the server flushes its log.
        binary_log: whether it has one, and after how many commits that is synced.
        places: where the log ends on the disk whenever somebody asks, if the server tells; in memory, it ends at 7.
    """

    def __init__(
        self,
        setting: int,
        error: Exception | None = None,
        places: Sequence[int] = (),
        binary_log: tuple[int, int] = (0, 0),
    ) -> None:
        self.statements: list[str] = []
        self._settings = (setting, *binary_log)
        self._error = error
        self._places = list(places)

    def run(self, statements: Sequence[str]) -> list[Reply]:
        self.statements += [one.split()[0] for one in statements]
        (statement,) = statements
        if statement.startswith("SHOW"):
            rows = (
                [("Innodb_lsn_current", "7"), ("Innodb_lsn_flushed", str(self._places.pop(0)))] if self._places else []
            )
            return [Reply(0, rows)]
        if statement.startswith("FLUSH") and self._error is not None:
            raise self._error
        return [Reply(0, [self._settings])]


def _flush(link: _Link, timeout_s: float = 60.0) -> list[str]:
    """Flush the log of a server in a world whose clock is fast; return the statements that were sent."""
    flush_log(cast("Link", link), Environment(clock=SimulatedClock()), timeout_s)
    return link.statements


@pytest.mark.parametrize(
    ("setting", "flushes"), [(0, True), (1, False), (2, True), pytest.param(3, False, id="of MariaDB")]
)
def test_a_log_is_flushed_unless_every_commit_does(setting: int, flushes: bool) -> None:
    assert _flush(_Link(setting)) == (["SELECT", "SHOW", "FLUSH"] if flushes else ["SELECT"])


@pytest.mark.parametrize(
    ("setting", "binary_log", "flushes"),
    [
        (1, (1, 1), False),
        (1, (1, 0), True),
        (1, (1, 100), True),
        (1, (0, 100), False),
        (3, (1, 0), False),
        (2, (1, 1), True),
    ],
)
def test_a_log_is_flushed_if_the_binary_log_is_synced_late(
    setting: int, binary_log: tuple[int, int], flushes: bool
) -> None:
    assert ("FLUSH" in _flush(_Link(setting, binary_log=binary_log))) == flushes


def test_a_server_that_flushes_by_itself_is_waited_for() -> None:
    assert _flush(_Link(0, places=[3, 3, 6, 7])) == ["SELECT", *["SHOW"] * 4]


def test_a_server_that_never_flushes() -> None:
    with pytest.raises(UnavailableError, match="does not flush its log"):
        _flush(_Link(0, places=[3] * 10_000), timeout_s=5.0)


def test_a_user_who_may_not_flush() -> None:
    with pytest.raises(
        UnsupportedError, match="set innodb_flush_log_at_trx_commit and sync_binlog to 1, or grant RELOAD"
    ):
        _flush(_Link(2, pymysql.OperationalError(1227, "Access denied; you need RELOAD")))


def test_another_failure() -> None:
    with pytest.raises(pymysql.OperationalError):
        _flush(_Link(2, pymysql.OperationalError(2013, "Lost connection")))
