"""`make_durable` waits until the log of the server is flushed up to the last commit."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from holdfast.transactions.base import Commit
from holdfast.transactions.registry import open_backend
from tests.servers.postgres_server import PostgresServer


def test_the_log_is_flushed(postgres_server: PostgresServer, new_postgres_url: Callable[[], str]) -> None:
    url = new_postgres_url()
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')  # type: ignore[call-overload] # the name is none of a literal query
    with psycopg.connect(url, autocommit=True) as connection:
        database = open_backend(url, create=True)
        try:
            for number in range(20):  # the server flushes by itself, but not as soon as that
                database.commit(Commit(puts={b"a": b"%d" % number}))
                (written,) = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone() or ()
                database.make_durable()
                row = connection.execute("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", (written,)).fetchone()
                assert row == (True,)
            database.make_durable()
        finally:
            database.close()
