"""Connections: statements in packets, values as text, TLS, and what a server refuses."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from holdfast.errors import AccessDeniedError, InvalidRequestError, NotFoundError, UnavailableError
from holdfast.runtime import SystemClock
from holdfast.s3_server import find_free_ports
from holdfast.transactions.base import MAX_VALUE_BYTES, Commit, Committed
from holdfast.transactions.mysql.backend import MysqlSnapshot
from holdfast.transactions.mysql.connection import (
    MysqlOptions,
    MysqlSession,
    connect,
    join_sql_in_chunks,
    parse_mysql_url,
    sql_literal,
)
from holdfast.transactions.mysql.server import prepare_database
from holdfast.transactions.pool import Pool
from tests.databases import needs_mariadb
from tests.interrupts import InterruptError
from tests.patience import PATIENCE_S
from tests.servers.mariadb_server import MariadbServer
from tests.servers.tls import Authority
from tests.unit.transactions.mysql.conftest import Open


def test_values_travel_unchanged(options: MysqlOptions) -> None:
    session = connect(options, 1)
    try:
        for value in (b"", b"\0'\"\\\n\x1a;--", bytes(range(256)), b"\xff" * 64 * 1024, b"'" * (64 * 1024 + 1)):
            assert bytes(session.send(f"SELECT {sql_literal(value)}")[0].rows[0][0]) == value
    finally:
        session.close()
        session.close()


def test_the_longest_value_fits_into_the_smallest_default_packet() -> None:
    assert len(sql_literal(bytes(MAX_VALUE_BYTES))) < 16 * 1024 * 1024 - 4096


def test_statements_are_split_into_packets(options: MysqlOptions) -> None:
    session = connect(options, 1)
    try:
        large = f"SELECT LENGTH('{'x' * 3_000_000}')"
        statements = ["SELECT 1", large, "SELECT 2", large, "SELECT 3"]
        assert [packet.count("SELECT") for packet in session.join_into_packets(statements)] == [3, 2]
        assert [reply.rows[0][0] for reply in session.run(statements)] == [1, 3_000_000, 2, 3_000_000, 3]
        limit_bytes = session.send("SELECT @@max_allowed_packet")[0].rows[0][0]
        with pytest.raises(InvalidRequestError, match="set max_allowed_packet to at least 16M"):
            session.run(["SELECT 1", "x" * limit_bytes])
        assert session.run([]) == []
    finally:
        session.close()


def test_an_interrupt_before_the_reply_ends_the_connection(
    options: MysqlOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next statement would get the reply of this one."""
    session = connect(options, 1)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(session._raw, "_read_query_result", interrupt)
            with pytest.raises(InterruptError):
                session.send("SELECT 1")
        assert not session.is_open
        session.reset()
        with pytest.raises(pymysql.MySQLError):
            session.send("SELECT 2")
    finally:
        session.close()


def interrupt(*_: object, **__: object) -> None:
    raise InterruptError


def test_a_snapshot_may_be_idle_for_longer_than_a_transaction(options: MysqlOptions) -> None:
    query = "SELECT @@SESSION.wait_timeout"
    session = connect(options, 1)
    try:
        MysqlSnapshot.begin(session)
        assert session.send(query)[0].rows == ((3600,),)
        session.reset()
        assert session.send(query)[0].rows == ((60,),)
    finally:
        session.close()


def test_an_error_ends_a_packet_and_leaves_the_connection_usable(options: MysqlOptions) -> None:
    session = connect(options, 1)
    try:
        with pytest.raises(pymysql.ProgrammingError):
            session.run(["START TRANSACTION", "SELECT wrong FROM nowhere", "DROP TABLE holdfast_records"])
        assert session.run(["SELECT COUNT(*) FROM holdfast_records"])[0].rows == ((0,),)
        session.reset()
        assert session.is_open
    finally:
        session.close()


def test_chunks_have_a_limit_of_items_and_of_bytes() -> None:
    assert list(join_sql_in_chunks([])) == []
    assert [len(chunk.split(",")) for chunk in join_sql_in_chunks(str(i) for i in range(1001))] == [500, 500, 1]
    assert [len(chunk) for chunk in join_sql_in_chunks(["x" * 200_000] * 3)] == [200_000] * 3


def test_a_small_packet_limit_of_the_server_is_kept(server: MariadbServer, options: MysqlOptions, opened: Open) -> None:
    def set_limit(size: int) -> None:
        with server.connect() as admin, admin.cursor() as cursor:
            cursor.execute(f"SET GLOBAL max_allowed_packet = {size}")

    set_limit(512 * 1024)
    try:
        backend = opened(options)
        wanted = {b"%06d" % number: bytes(500) for number in range(2000)}
        assert isinstance(backend.commit(Commit(inserts=wanted)), Committed)
        assert backend.get_many(wanted).keys() == wanted.keys()
        with pytest.raises(InvalidRequestError, match="set max_allowed_packet"):
            backend.commit(Commit(puts={b"a": b"1", b"b": bytes(512 * 1024)}))
        assert backend.get_many([b"a"]) == {}
    finally:
        set_limit(16 * 1024 * 1024)


# --- what a server refuses --------------------------------------------------------------------------------------------
def test_errors_of_the_login_keep_the_password_to_themselves(options: MysqlOptions, opened: Open) -> None:
    wrong = dataclasses.replace(options, password="canary")
    for refused in (lambda: prepare_database(wrong, create=True), lambda: opened(wrong).get_many([b"a"])):
        with pytest.raises(AccessDeniedError, match="does not accept this user and password") as caught:
            refused()
        assert caught.value.variables["user"] == wrong.user
        assert "canary" not in f"{caught.value!r} {caught.value.__cause__!r} {wrong!r}"
    with pytest.raises(NotFoundError, match="the database does not exist: create it first"):
        opened(dataclasses.replace(options, database="absent")).get_many([b"a"])


def test_a_server_that_is_not_there(options: MysqlOptions, opened: Open) -> None:
    absent = dataclasses.replace(options, port=find_free_ports(1)[0], timeout_s=0.05)
    with pytest.raises(UnavailableError, match="the database server cannot be reached"):
        prepare_database(absent, create=True)
    backend = opened(absent)
    with pytest.raises(UnavailableError, match="the database server cannot be reached"):
        backend.get_many([b"a"])
    with pytest.raises(UnavailableError, match="the database server cannot be reached"):
        backend.commit(Commit(puts={b"a": b""}))
    with (
        pytest.raises(UnavailableError, match="the database server cannot be reached"),
        backend.begin_locking_transaction(),
    ):
        pass


def test_tls_is_refused_by_a_server_without_it(options: MysqlOptions, opened: Open) -> None:
    for ssl in ("require", "verify"):
        with pytest.raises(InvalidRequestError, match="the server has no TLS"):
            opened(dataclasses.replace(options, ssl=ssl)).get_many([b"a"])
    assert opened(dataclasses.replace(options, ssl="prefer")).get_many([b"a"]) == {}
    with pytest.raises(InvalidRequestError, match="certificates of ssl_ca cannot be read"):
        opened(dataclasses.replace(options, ssl="verify", ssl_ca="/absent.pem")).get_many([b"a"])


@pytest.mark.slow
@needs_mariadb
def test_tls_with_and_without_a_check_of_the_certificate(opened: Open, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.0.0.1")
    files = {name: Path(path).read_text() for name, path in (("ssl_cert", certificate), ("ssl_key", key))}
    secure = MariadbServer(settings={"loose_ssl": "ON", "tls_version": "TLSv1.2,TLSv1.3"})
    process = secure._process
    process.make_directories()  # the server's user cannot read the directory of the test
    secure._settings |= {name: str(process.write_secret(f"{name}.pem", text)) for name, text in files.items()}
    with secure:
        options = parse_mysql_url(secure.create_database("t") + "?timeout=5")
        prepare_database(options, create=True)
        for ssl, ca, encrypted in (
            ("off", None, False),
            ("prefer", None, True),
            ("require", None, True),
            ("verify", authority.bundle, True),
        ):
            session = connect(dataclasses.replace(options, ssl=ssl, ssl_ca=ca), 1)
            try:
                assert bool(session.send("SHOW STATUS LIKE 'Ssl_cipher'")[0].rows[0][1]) == encrypted
            finally:
                session.close()
        with pytest.raises(InvalidRequestError, match="the server failed the checks of TLS"):
            opened(dataclasses.replace(options, ssl="verify")).get_many([b"a"])


# --- options ----------------------------------------------------------------------------------------------------------
def test_a_full_url() -> None:
    options = parse_mysql_url("mysql://us%40er:p%2Fw%3A@db.example:3307/a%20b?connections=3&ssl=require&timeout=1.5")
    assert options == MysqlOptions(
        host="db.example",
        port=3307,
        user="us@er",
        password="p/w:",
        database="a b",
        ssl="require",
        connections=3,
        timeout_s=1.5,
    )
    assert options.where == "mysql://db.example:3307/a b"
    assert "p/w" not in repr(options)


def test_defaults() -> None:
    options = parse_mysql_url("mysql://user@[::1]/d")
    assert (options.host, options.port, options.password, options.ssl) == ("::1", 3306, "", "prefer")
    assert options.where == "mysql://[::1]:3306/d"
    assert parse_mysql_url("mysql://user@h/d?ssl_ca=/a.pem").ssl == "verify"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://user:canary@h/d", "the url of the database is invalid: write mysql://user:password@host:port"),
        ("mysql:///d", "the url of the database is invalid"),
        ("mysql://h/d", "the url of the database is invalid"),
        ("mysql://user:canary@h/d#part", "write # as %23"),
        ("mysql://user:can#ary@h/d", "write # as %23"),
        ("mysql://user:can/ary@h/d", "percent-encode special characters"),
        ("mysql://user:can?ary@h/d", "percent-encode special characters"),
        ("mysql://user:can@ary@h/d", "percent-encode special characters"),
        ("mysql://user:canary/d", "the port of the database url is not a number"),
        ("mysql://user:canary@h:70000/d", "the port of the database url is not a number below 65536"),
        ("mysql://user:canary@h", "the url names no database"),
        ("mysql://user:canary@h/d/e", "the url names no database"),
        ("mysql://user:canary@h/d?conections=3", "unknown option: did you mean connections"),
        ("mysql://user:canary@h/d?ssl=off&ssl=off", "has an option twice"),
        ("mysql://user:canary@h/d?connections=0", "connections is a number from 1 to 1000"),
        ("mysql://user:canary@h/d?connections=many", "connections is a number from 1 to 1000"),
        ("mysql://user:canary@h/d?timeout=0", "timeout is a number of seconds"),
        ("mysql://user:canary@h/d?timeout=nan", "timeout is a number of seconds"),
        ("mysql://user:canary@h/d?ssl=yes", "ssl is one of off, prefer, require, verify"),
        ("mysql://user:canary@h/d?ssl_ca=", "ssl_ca is the path of a file"),
        ("mysql://user:canary@h/d?ssl=off&ssl_ca=/a", "ssl_ca has no effect without ssl=verify"),
    ],
)
def test_mistakes(url: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        parse_mysql_url(url)
    assert "canary" not in str(caught.value)


# --- pool -------------------------------------------------------------------------------------------------------------
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
def sessions() -> list[MysqlSession]:
    return []


@pytest.fixture
def pool(options: MysqlOptions, clock: MovableClock, sessions: list[MysqlSession]) -> Iterator[Pool[MysqlSession]]:
    def open_session() -> MysqlSession:
        sessions.append(connect(options, len(sessions)))
        return sessions[-1]

    made = Pool(open_session, 2, clock)
    yield made
    made.close()


def test_connections_are_used_again_the_last_one_first(pool: Pool[MysqlSession], sessions: list[MysqlSession]) -> None:
    with pool.lease(1) as one, pool.lease(1) as other:
        assert one is not other
    for _ in range(3):
        with pool.lease(1) as again:
            assert again is one
    assert len(sessions) == 2


def test_nobody_waits_for_ever(pool: Pool[MysqlSession]) -> None:
    with pool.lease(1), pool.lease(1):
        busy = pytest.raises(UnavailableError, match="all connections to the database are busy: allow more, or repeat")
        with busy, pool.lease(0.05):
            pass
    with pool.lease(0.05):
        pass


def test_who_waits_gets_the_next_one(pool: Pool[MysqlSession]) -> None:
    order = threading.Barrier(8)

    def use(_: int) -> int:
        order.wait(PATIENCE_S)
        with pool.lease(PATIENCE_S) as session:
            return int(session.send("SELECT 1")[0].rows[0][0])

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(use, range(8))) == 8


def test_an_error_rolls_back_and_a_broken_connection_is_dropped(
    pool: Pool[MysqlSession], sessions: list[MysqlSession]
) -> None:
    with suppress(KeyError), pool.lease(1) as session:
        session.run(["START TRANSACTION", "INSERT INTO holdfast_records VALUES ('a', 1, '', 0)"])
        raise KeyError
    with pool.lease(1) as again:
        assert again is session
        open_ones = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()"
        assert again.send(open_ones)[0].rows == ((0,),)
        assert again.send("SELECT COUNT(*) FROM holdfast_records")[0].rows == ((0,),)
        again.close()
    with pool.lease(1) as new:
        assert new is not session
    assert len(sessions) == 2


def test_a_connection_that_cannot_be_opened_leaves_its_place_free(options: MysqlOptions, clock: MovableClock) -> None:
    pool = Pool(lambda: connect(dataclasses.replace(options, password="wrong"), 1), 1, clock)
    for _ in range(3):
        with pytest.raises(pymysql.OperationalError), pool.lease(0.05):
            pass
    pool.close()


def test_idle_connections_are_replaced(
    pool: Pool[MysqlSession], clock: MovableClock, sessions: list[MysqlSession]
) -> None:
    with pool.lease(1), pool.lease(1):
        pass
    clock.forward_s += 31
    with pool.lease(1) as session:
        assert session is sessions[2]
    assert [one.is_open for one in sessions] == [False, False, True]


def test_a_closed_pool_closes_what_is_given_back(pool: Pool[MysqlSession], sessions: list[MysqlSession]) -> None:
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
    assert [one.is_open for one in sessions] == [False, False]


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
    with backend.begin_locking_transaction() as transaction:
        assert transaction.read([b"a"], exclusive=True).keys() == {b"a"}


_FORKING = """
import os, sys
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.mysql.connection import parse_mysql_url
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
