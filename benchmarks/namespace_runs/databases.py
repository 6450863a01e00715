"""Start the databases of the benchmark, with durable commits, and create namespaces in them."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.cpu_time import CpuMeter
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PostgresServer

__all__ = ["DATABASES", "USER", "DatabaseServer", "opened"]

USER = "bench"
"""The superuser of every namespace here, and the user of every client."""

_numbers = itertools.count()

_CONNECTIONS = 600
"""Clients of all modes keep their connections between rounds."""

_POSTGRES = {
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": str(_CONNECTIONS),
    "max_wal_size": "8GB",  # no checkpoint because of the log's size within a short measurement
}
_MARIADB = {
    "innodb_flush_log_at_trx_commit": "1",
    "max_connections": str(_CONNECTIONS),
    "innodb_log_file_size": "1G",
}


@dataclass(frozen=True)
class DatabaseServer:
    """A running database server, or a directory for database files.

    Attributes:
        name: in tables and on the command line.
        new_url: creates an empty database and returns its URL.
        folder: for the data of the namespaces.
        settings: what decides about durability, as the server reports it.
        pid: of the server; None if there is none.
        admin_url: with which PostgreSQL's own views can be read; empty for others.
    """

    name: str
    new_url: Callable[[], str]
    folder: Path
    settings: Mapping[str, str]
    pid: int | None = None
    admin_url: str = ""

    def new_namespace(self) -> str:
        """Create a namespace in a database of its own; return the database's URL."""
        url = self.new_url()
        data = f"file://{self.folder}/data{next(_numbers)}"  # a place has one namespace
        configuration = Configuration(name="bench", data=data, superuser=USER)
        init_namespace(configuration, url, register=False)
        return url

    def open(self, url: str) -> Namespace:
        """Open a namespace in this process, to prepare and to check measurements."""
        return open_namespace(url, user=USER, groups=())

    def cpu_s(self) -> float:
        """Return the CPU seconds of the server so far; 0 if there is none."""
        return 0.0 if self.pid is None else CpuMeter(self.pid).seconds()


@contextmanager
def _sqlite(folder: Path) -> Iterator[DatabaseServer]:
    numbers = itertools.count()
    settings = {"version": sqlite3.sqlite_version, "journal_mode": "wal", "synchronous": "full"}
    yield DatabaseServer("sqlite", lambda: f"sqlite://{folder}/names{next(numbers)}.db", folder, settings)


@contextmanager
def _postgres(folder: Path) -> Iterator[DatabaseServer]:
    numbers = itertools.count()
    with PostgresServer(shared_buffers="512MB", settings=_POSTGRES) as server:
        names = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            settings = {name: str(connection.execute(f"SHOW {name}").fetchone()[0]) for name in names}  # type: ignore[index]  # every setting has a row
        yield DatabaseServer(
            "postgresql",
            lambda: server.create_database(f"names{next(numbers)}"),
            folder,
            settings,
            server.pid,
            server.url(),
        )


@contextmanager
def _mariadb(folder: Path) -> Iterator[DatabaseServer]:
    numbers = itertools.count()
    with MariadbServer(buffer_pool="512M", settings=_MARIADB) as server:
        names = ("version", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_buffer_pool_size")
        connection = server.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {', '.join(f'@@{name}' for name in names)}")
                settings = dict(zip(names, map(str, cursor.fetchone()), strict=True))
        finally:
            connection.close()
        yield DatabaseServer(
            "mariadb", lambda: server.create_database(f"names{next(numbers)}"), folder, settings, server.pid
        )


DATABASES = {"postgresql": _postgres, "sqlite": _sqlite, "mariadb": _mariadb}


@contextmanager
def opened(name: str) -> Iterator[DatabaseServer]:
    """Start a database; it is gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-names-"))
    try:
        with DATABASES[name](folder) as database:
            yield database
    finally:
        shutil.rmtree(folder, ignore_errors=True)
