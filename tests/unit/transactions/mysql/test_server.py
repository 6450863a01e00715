"""The schema: created when asked, by one process at a time, and only on servers whose locks hold."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import cast

import pymysql
import pytest

from holdfast.errors import AccessDeniedError, NotFoundError, UnavailableError, UnsupportedError
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.mysql import server as schema
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import MysqlOptions, MysqlSession, StatementReply, connect
from holdfast.transactions.mysql.server import check_server, make_server_log_durable, prepare_database
from holdfast.transactions.registry import open_backend
from holdfast.transactions.sql import load_schema
from tests.clocks import SimulatedClock
from tests.servers.mariadb_server import MariadbServer, find_mariadb
from tests.unit.transactions.mysql.conftest import Open


def run(options: MysqlOptions, *statements: str) -> None:
    session = connect(options, 1)
    try:
        for statement in statements:
            session.send(statement)
    finally:
        session.close()


def test_an_empty_database_is_prepared_only_if_asked(empty: MysqlOptions, opened: Open) -> None:
    with pytest.raises(NotFoundError, match="the database has no tables of Holdfast: create them first"):
        prepare_database(empty, create=False)
    with pytest.raises(NotFoundError, match="the database has no tables of Holdfast"):
        opened(empty).commit(Commit(puts={b"a": b""}))
    prepare_database(empty, create=True)
    prepare_database(empty, create=False)
    assert isinstance(opened(empty).commit(Commit(puts={b"a": b""})), Committed)


def test_many_processes_may_prepare_at_once(empty: MysqlOptions) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: prepare_database(empty, create=True), range(8)))


def test_a_migration_that_died_is_repeated(options: MysqlOptions, opened: Open) -> None:
    opened(options).commit(Commit(puts={b"a": b"kept"}))
    run(options, "DELETE FROM holdfast_schema")
    prepare_database(options, create=True)
    assert opened(options).get_many([b"a"])[b"a"].value == b"kept"


def test_an_older_schema_is_migrated_and_a_newer_one_refused(
    options: MysqlOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = (*load_schema("holdfast.transactions.mysql"), "-- more\nCREATE TABLE added (a INT);\nDROP TABLE added;\n")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "load_schema", lambda package: scripts)
        prepare_database(options, create=False)
    with pytest.raises(
        UnsupportedError, match="the database has schema 2, and this release of Holdfast knows 1: upgrade"
    ):
        prepare_database(options, create=True)


def test_a_migration_of_another_process_is_waited_for_with_a_bound(empty: MysqlOptions) -> None:
    session = connect(empty, 1)
    try:
        prepare_database(empty, create=True)  # so that the lock has a name in the server
        run(empty, "DELETE FROM holdfast_schema")
        name = schema.migration_lock_name(empty)
        assert session.send(f"SELECT GET_LOCK('{name}', 1)")[0].rows[0][0] == 1
        with pytest.raises(UnavailableError, match="another process migrates the database for too long"):
            prepare_database(dataclasses.replace(empty, timeout_s=0.1), create=True)
    finally:
        session.close()


def test_missing_rights_are_named(server: MariadbServer, empty: MysqlOptions, opened: Open) -> None:
    with server.connect() as admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE USER reader_{empty.database} IDENTIFIED BY 'r'")
        cursor.execute(f"GRANT SELECT ON {empty.database}.* TO reader_{empty.database}")
    reader = dataclasses.replace(empty, user=f"reader_{empty.database}", password="r")
    with pytest.raises(AccessDeniedError, match="grant SELECT, INSERT, UPDATE and DELETE, and CREATE for the tables"):
        prepare_database(reader, create=True)
    prepare_database(empty, create=True)
    prepare_database(reader, create=False)
    assert opened(reader).get_many([b"a"]) == {}
    with pytest.raises(AccessDeniedError, match="grant SELECT, INSERT"):
        opened(reader).commit(Commit(puts={b"a": b""}))


@pytest.mark.parametrize(
    "version", ["8.0.36", "8.4.0", "9.1.0", "10.6.4-MariaDB", "5.5.5-10.11.2-MariaDB-log", "12.0.1-MariaDB"]
)
def test_servers_that_are_supported(version: str) -> None:
    check_server(version, {"wsrep_on": "OFF", "group_replication_single_primary_mode": "ON"}, "d")


@pytest.mark.parametrize("version", ["5.7.44", "10.5.9-MariaDB", "8.0.11-TiDB-v7.5.0", "unknown"])
def test_servers_that_are_not_supported(version: str) -> None:
    with pytest.raises(UnsupportedError, match=r"use MySQL 8.0 or MariaDB 10.6, or a newer one"):
        check_server(version, {}, "d")


@pytest.mark.parametrize("variable", [("wsrep_on", "ON"), ("group_replication_single_primary_mode", "OFF")])
def test_clusters_with_many_writers_are_refused(variable: tuple[str, str]) -> None:
    with pytest.raises(UnsupportedError, match="do not see each other's shared locks"):
        check_server("10.11.2-MariaDB", dict([variable]), "d")


# --- durability -------------------------------------------------------------------------------------------------------
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

    def run(self, statements: Sequence[str]) -> list[StatementReply]:
        self.statements += [one.split()[0] for one in statements]
        (statement,) = statements
        if statement.startswith("SHOW"):
            rows = (
                [("Innodb_lsn_current", "7"), ("Innodb_lsn_flushed", str(self._places.pop(0)))] if self._places else []
            )
            return [StatementReply(0, rows)]
        if statement.startswith("FLUSH") and self._error is not None:
            raise self._error
        return [StatementReply(0, [self._settings])]


def _flush(session: _Link, timeout_s: float = 60.0) -> list[str]:
    """Flush the log of a server in a world whose clock is fast; return the statements that were sent."""
    make_server_log_durable(cast("MysqlSession", session), Environment(clock=SimulatedClock()), timeout_s)
    return session.statements


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
