"""Connections: statements in packets, values as text, TLS, and what a server refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pymysql
import pytest

from holdfast.errors import AccessDeniedError, InvalidRequestError, NotFoundError, UnavailableError
from holdfast.s3_server import free_ports
from holdfast.transactions.base import MAX_VALUE_BYTES, Commit, Committed
from holdfast.transactions.mysql.connection import chunked, connect, literal
from holdfast.transactions.mysql.options import MysqlOptions, parse_mysql_url
from holdfast.transactions.mysql.reading import MysqlSnapshot
from holdfast.transactions.mysql.schema import prepare_database
from tests.databases import needs_mariadb
from tests.interrupts import InterruptError
from tests.servers.mariadb_server import MariadbServer
from tests.servers.tls import Authority
from tests.unit.transactions.mysql.conftest import Open


def test_values_travel_unchanged(options: MysqlOptions) -> None:
    link = connect(options, 1)
    try:
        for value in (b"", b"\0'\"\\\n\x1a;--", bytes(range(256)), b"\xff" * 64 * 1024, b"'" * (64 * 1024 + 1)):
            assert bytes(link.send(f"SELECT {literal(value)}")[0].rows[0][0]) == value
    finally:
        link.close()
        link.close()


def test_the_longest_value_fits_into_the_smallest_default_packet() -> None:
    assert len(literal(bytes(MAX_VALUE_BYTES))) < 16 * 1024 * 1024 - 4096


def test_statements_are_split_into_packets(options: MysqlOptions) -> None:
    link = connect(options, 1)
    try:
        large = f"SELECT LENGTH('{'x' * 3_000_000}')"
        statements = ["SELECT 1", large, "SELECT 2", large, "SELECT 3"]
        assert [packet.count("SELECT") for packet in link.packets(statements)] == [3, 2]
        assert [reply.rows[0][0] for reply in link.run(statements)] == [1, 3_000_000, 2, 3_000_000, 3]
        limit_bytes = link.send("SELECT @@max_allowed_packet")[0].rows[0][0]
        with pytest.raises(InvalidRequestError, match="set max_allowed_packet to at least 16M"):
            link.run(["SELECT 1", "x" * limit_bytes])
        assert link.run([]) == []
    finally:
        link.close()


def test_an_interrupt_before_the_reply_ends_the_connection(
    options: MysqlOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next statement would get the reply of this one."""
    link = connect(options, 1)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(link._raw, "_read_query_result", interrupt)
            with pytest.raises(InterruptError):
                link.send("SELECT 1")
        assert not link.is_open
        link.reset()
        with pytest.raises(pymysql.MySQLError):
            link.send("SELECT 2")
    finally:
        link.close()


def interrupt(*_: object, **__: object) -> None:
    raise InterruptError


def test_a_snapshot_may_be_idle_for_longer_than_a_transaction(options: MysqlOptions) -> None:
    query = "SELECT @@SESSION.wait_timeout"
    link = connect(options, 1)
    try:
        MysqlSnapshot.begin(link)
        assert link.send(query)[0].rows == ((3600,),)
        link.reset()
        assert link.send(query)[0].rows == ((60,),)
    finally:
        link.close()


def test_an_error_ends_a_packet_and_leaves_the_connection_usable(options: MysqlOptions) -> None:
    link = connect(options, 1)
    try:
        with pytest.raises(pymysql.ProgrammingError):
            link.run(["START TRANSACTION", "SELECT wrong FROM nowhere", "DROP TABLE holdfast_records"])
        assert link.run(["SELECT COUNT(*) FROM holdfast_records"])[0].rows == ((0,),)
        link.reset()
        assert link.is_open
    finally:
        link.close()


def test_chunks_have_a_limit_of_items_and_of_bytes() -> None:
    assert list(chunked([])) == []
    assert [len(chunk.split(",")) for chunk in chunked(str(i) for i in range(1001))] == [500, 500, 1]
    assert [len(chunk) for chunk in chunked(["x" * 200_000] * 3)] == [200_000] * 3


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
    absent = dataclasses.replace(options, port=free_ports(1)[0], timeout_s=0.05)
    with pytest.raises(UnavailableError, match="the database server cannot be reached"):
        prepare_database(absent, create=True)
    backend = opened(absent)
    with pytest.raises(UnavailableError, match="the database server cannot be reached"):
        backend.get_many([b"a"])
    with pytest.raises(UnavailableError, match="the database server cannot be reached"):
        backend.commit(Commit(puts={b"a": b""}))
    with pytest.raises(UnavailableError, match="the database server cannot be reached"), backend.locked():
        pass


def test_tls_is_refused_by_a_server_without_it(options: MysqlOptions, opened: Open) -> None:
    for ssl in ("require", "verify"):
        with pytest.raises(InvalidRequestError, match="the server has no TLS"):
            opened(dataclasses.replace(options, ssl=ssl)).get_many([b"a"])
    assert opened(dataclasses.replace(options, ssl="prefer")).get_many([b"a"]) == {}
    with pytest.raises(InvalidRequestError, match="certificates of ssl_ca cannot be read"):
        opened(dataclasses.replace(options, ssl="verify", ssl_ca="/absent.pem")).get_many([b"a"])


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
            link = connect(dataclasses.replace(options, ssl=ssl, ssl_ca=ca), 1)
            try:
                assert bool(link.send("SHOW STATUS LIKE 'Ssl_cipher'")[0].rows[0][1]) == encrypted
            finally:
                link.close()
        with pytest.raises(InvalidRequestError, match="the server failed the checks of TLS"):
            opened(dataclasses.replace(options, ssl="verify")).get_many([b"a"])
