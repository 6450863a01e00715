"""The pool: bounded, shared by threads, not by processes, and empty after it was closed."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pymysql
import pytest

from holdfast.errors import UnavailableError
from holdfast.runtime import SystemClock
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.mysql.connection import Link, connect
from holdfast.transactions.mysql.options import MysqlOptions
from holdfast.transactions.pool import Pool
from tests.patience import PATIENCE_S
from tests.servers.mariadb_server import MariadbServer
from tests.unit.transactions.mysql.conftest import Open


class MovableClock(SystemClock):
    """A clock that can be put forward."""

    def __init__(self) -> None:
        self.forward_s = 0.0

    def elapsed_s(self) -> float:
        return super().elapsed_s() + self.forward_s


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def links() -> list[Link]:
    return []


@pytest.fixture
def pool(options: MysqlOptions, clock: MovableClock, links: list[Link]) -> Iterator[Pool[Link]]:
    def open_link() -> Link:
        links.append(connect(options, len(links)))
        return links[-1]

    made = Pool(open_link, 2, clock)
    yield made
    made.close()


def test_connections_are_used_again_the_last_one_first(pool: Pool[Link], links: list[Link]) -> None:
    with pool.lease(1) as one, pool.lease(1) as other:
        assert one is not other
    for _ in range(3):
        with pool.lease(1) as again:
            assert again is one
    assert len(links) == 2


def test_nobody_waits_for_ever(pool: Pool[Link]) -> None:
    with pool.lease(1), pool.lease(1):
        busy = pytest.raises(UnavailableError, match="all connections to the database are busy: allow more, or repeat")
        with busy, pool.lease(0.05):
            pass
    with pool.lease(0.05):
        pass


def test_who_waits_gets_the_next_one(pool: Pool[Link]) -> None:
    order = threading.Barrier(8)

    def use(_: int) -> int:
        order.wait(PATIENCE_S)
        with pool.lease(PATIENCE_S) as link:
            return int(link.send("SELECT 1")[0].rows[0][0])

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(use, range(8))) == 8


def test_an_error_rolls_back_and_a_broken_connection_is_dropped(pool: Pool[Link], links: list[Link]) -> None:
    with suppress(KeyError), pool.lease(1) as link:
        link.run(["START TRANSACTION", "INSERT INTO holdfast_records VALUES ('a', 1, '', 0)"])
        raise KeyError
    with pool.lease(1) as again:
        assert again is link
        open_ones = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()"
        assert again.send(open_ones)[0].rows == ((0,),)
        assert again.send("SELECT COUNT(*) FROM holdfast_records")[0].rows == ((0,),)
        again.close()
    with pool.lease(1) as new:
        assert new is not link
    assert len(links) == 2


def test_a_connection_that_cannot_be_opened_leaves_its_place_free(options: MysqlOptions, clock: MovableClock) -> None:
    pool = Pool(lambda: connect(dataclasses.replace(options, password="wrong"), 1), 1, clock)
    for _ in range(3):
        with pytest.raises(pymysql.OperationalError), pool.lease(0.05):
            pass
    pool.close()


def test_idle_connections_are_replaced(pool: Pool[Link], clock: MovableClock, links: list[Link]) -> None:
    with pool.lease(1), pool.lease(1):
        pass
    clock.forward_s += 31
    with pool.lease(1) as link:
        assert link is links[2]
    assert [one.is_open for one in links] == [False, False, True]


def test_a_closed_pool_closes_what_is_given_back(pool: Pool[Link], links: list[Link]) -> None:
    with pool.lease(1):
        with pool.lease(1):
            pass
        with ThreadPoolExecutor(1) as threads, pool.lease(1):
            waiting = threads.submit(pool.lease(PATIENCE_S).__enter__)
            pool.close()
            with pytest.raises(UnavailableError, match="the database is closed: open it again"):
                waiting.result()
        with pytest.raises(UnavailableError, match="the database is closed"), pool.lease(1):
            pass
        pool.close()
    assert [one.is_open for one in links] == [False, False]


def test_calls_survive_a_restart_of_the_server(server: MariadbServer, options: MysqlOptions, opened: Open) -> None:
    """A server that ends all connections is not noticed before they are used."""
    backend = opened(options)
    barrier = threading.Barrier(4)

    def read(_: int) -> None:
        barrier.wait(PATIENCE_S)
        backend.get_many([b"a"])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(read, range(4)))
    with server.connect() as admin, admin.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (options.database,))
        found = [row[0] for row in cursor.fetchall()]
        assert found
        for thread in found:
            cursor.execute(f"KILL {thread}")
    assert backend.get_many([b"a"]) == {}
    assert isinstance(backend.commit(Commit(puts={b"a": b""})), Committed)
    with backend.locked() as transaction:
        assert transaction.read([b"a"], exclusive=True).keys() == {b"a"}


_FORKING = """
import os, sys
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.mysql.options import parse_mysql_url
from holdfast.transactions.mysql.backend import MysqlBackend
database = MysqlBackend(parse_mysql_url(sys.argv[1]), Environment())
assert isinstance(database.commit(Commit(adds={b"n": 1})), Committed)
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        for _ in range(20):
            assert isinstance(database.commit(Commit(adds={b"n": 1})), Committed)
        database.close()
        os._exit(0)
    children.append(child)
for _ in range(20):
    assert isinstance(database.commit(Commit(adds={b"n": 1})), Committed)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
assert isinstance(database.commit(Commit(adds={b"n": 1})), Committed)
print(database.get_many([b"n"])[b"n"].number, len(database._pool._idle))
database.close()
"""


def test_a_fork_has_connections_of_its_own(server: MariadbServer, options: MysqlOptions) -> None:
    url = f"{server.url(options.database)}?ssl=off"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", _FORKING, url],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "82 1\n", "")
