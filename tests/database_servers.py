"""Start one PostgreSQL and one MariaDB server for each worker, and create databases in them: fixtures for all tests.

A machine without the programs of a server skips the tests that need it, and says why.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from holdfast.errors import UnsupportedError
from tests.servers.mariadb_server import MariadbServer, find_mariadb
from tests.servers.postgres_server import PostgresServer, find_postgres

__all__ = ["mariadb_server", "new_mysql_url", "new_postgres_url", "postgres_server"]

_numbers = itertools.count()

NewUrl = Callable[[], str]


def _require(find: Callable[[], object]) -> None:
    try:
        find()
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server that all tests of this worker share; they leave it running."""
    _require(find_postgres)
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariadbServer]:
    """Start a server that all tests of this worker share; they leave it running."""
    _require(find_mariadb)
    with MariadbServer() as server:
        yield server


@pytest.fixture(scope="session")
def new_postgres_url(postgres_server: PostgresServer) -> NewUrl:
    """Return a function that creates a database and returns its URL."""
    return lambda: postgres_server.create_database(f"test{next(_numbers)}")


@pytest.fixture(scope="session")
def new_mysql_url(mariadb_server: MariadbServer) -> NewUrl:
    """Return a function that creates a database and returns its URL."""
    return lambda: mariadb_server.create_database(f"shared{next(_numbers)}")
