"""The schema: created when asked, by one process at a time, and only on servers whose locks hold."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.errors import AccessDeniedError, NotFoundError, UnavailableError, UnsupportedError
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.mysql import schema
from holdfast.transactions.mysql.connection import connect
from holdfast.transactions.mysql.options import MysqlOptions
from holdfast.transactions.mysql.schema import check_server, prepare_database
from holdfast.transactions.sql_files import load_schema
from tests.servers.mariadb_server import MariadbServer
from tests.unit.transactions.mysql.conftest import Open


def run(options: MysqlOptions, *statements: str) -> None:
    link = connect(options, 1)
    try:
        for statement in statements:
            link.send(statement)
    finally:
        link.close()


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
    link = connect(empty, 1)
    try:
        prepare_database(empty, create=True)  # so that the lock has a name in the server
        run(empty, "DELETE FROM holdfast_schema")
        name = schema.lock_name(empty)
        assert link.send(f"SELECT GET_LOCK('{name}', 1)")[0].rows[0][0] == 1
        with pytest.raises(UnavailableError, match="another process migrates the database for too long"):
            prepare_database(dataclasses.replace(empty, timeout_s=0.1), create=True)
    finally:
        link.close()


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
