"""Share one MariaDB or MySQL server among the modules of a worker; each test has a database of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from holdfast.runtime import Environment
from holdfast.transactions.mysql.backend import MysqlBackend
from holdfast.transactions.mysql.connection import MysqlOptions, MysqlSession, parse_mysql_url
from holdfast.transactions.mysql.server import prepare_database
from tests.servers.mariadb_server import MariadbServer

_numbers = itertools.count()

Open = Callable[[MysqlOptions], MysqlBackend]


def wait_for_no_lock(session: MysqlSession) -> None:
    """Let statements fail that would wait for a lock: at once, or after MySQL's shortest wait, a second."""
    session.send("SET SESSION innodb_lock_wait_timeout = IF(VERSION() LIKE '%MariaDB%', 0, 1)")


@pytest.fixture(scope="session")
def server(mariadb_server: MariadbServer) -> MariadbServer:
    """Return the server; tests leave it running."""
    return mariadb_server


@pytest.fixture
def empty(server: MariadbServer) -> MysqlOptions:
    """Create a database without tables."""
    return parse_mysql_url(server.create_database(f"test{next(_numbers)}") + "?ssl=off&timeout=60")


@pytest.fixture
def options(empty: MysqlOptions) -> MysqlOptions:
    """Create a database with tables."""
    prepare_database(empty, create=True)
    return empty


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open databases, and close them after the test."""
    backends: list[MysqlBackend] = []

    def open_database(options: MysqlOptions) -> MysqlBackend:
        backends.append(MysqlBackend(options, Environment()))
        return backends[-1]

    yield open_database
    for backend in backends:
        backend.close()


@pytest.fixture
def backend(options: MysqlOptions, opened: Open) -> MysqlBackend:
    """Open a database in a database with tables."""
    return opened(options)
